//! The slices of a measurement, in which what is compared takes turns. The first one only warms up.

use std::time::{Duration, Instant};

/// How many there are after the first one, unless each would have more than [`SLICE`] requests.
const SLICES: usize = 4;
const SLICE: usize = 50_000;

/// Tells of each slice whether it counts.
#[derive(Debug)]
pub(super) struct Slices {
    /// How many requests each has.
    pub(super) each: usize,
    /// How many there are after the first one.
    count: usize,
    /// How many have begun.
    taken: usize,
    limit: Option<Duration>,
    /// When the second one began.
    begun: Instant,
}

impl Slices {
    /// Those of so many requests in all. None begins after `limit`, except the first two.
    pub(super) fn of(requests: usize, limit: Option<Duration>) -> Self {
        let each = requests.div_ceil(SLICES).clamp(1, SLICE);
        Self {
            each,
            count: requests.div_ceil(each),
            taken: 0,
            limit,
            begun: Instant::now(),
        }
    }
}

impl Iterator for Slices {
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        let at = self.taken;
        if at == 1 {
            self.begun = Instant::now();
        }
        let is_late = at > 1
            && self
                .limit
                .is_some_and(|limit| self.begun.elapsed() >= limit);
        if at > self.count || is_late {
            return None;
        }
        self.taken += 1;
        Some(at > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slice_does_not_count_and_one_counts_however_short_the_limit() {
        let slices = |requests, limit| {
            let slices = Slices::of(requests, limit);
            (slices.each, slices.collect::<Vec<_>>())
        };
        let counted = |count: usize| [vec![false], vec![true; count]].concat();
        assert_eq!(slices(8_000, None), (2_000, counted(4)));
        assert_eq!(slices(3, None), (1, counted(3)));
        assert_eq!(slices(1_000_000, None), (50_000, counted(20)));
        let limit = Some(Duration::ZERO);
        assert_eq!(slices(1_000_000, limit), (50_000, counted(1)));
    }
}
