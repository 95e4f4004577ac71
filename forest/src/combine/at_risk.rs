//! How much a failure could lose: the numbers and the ids of nodes of commits that are visible and not durable.
//!
//! - Each opening leaves out [`LOST`] numbers of commits, and as many ids in each tree, because the opening before may
//!   have shown them and lost them. So never more than that may be visible and not durable.
//! - A commit that would exceed this is applied only when it is durable, and so are those behind it, in their order.
//! - Two windows count up to half as many each. When the newer window is full, all commits of the older one must be
//!   durable; then the newer becomes the older one.
//!
//! Called by the combiner only, for each commit when it is about to be applied.

use super::new_versions::Made;

/// How many numbers of commits, and ids in each tree, are left out at each opening.
pub(crate) const LOST: u64 = 1 << 20;

/// What one window counts.
const WINDOW: u64 = LOST / 2;

/// The two windows of commits that may not be durable.
pub(crate) struct AtRisk {
    /// The last commit of the older window.
    older: u64,
    /// What the newer window has counted.
    newer: u64,
}

impl AtRisk {
    /// The windows after an opening that begins behind a number, and whose record the journal has taken.
    pub(crate) fn after(number: u64) -> Self {
        let (older, newer) = (number, 0);
        Self { older, newer }
    }

    /// The windows after an opening whose record the journal has not taken. The next opening would begin at the same
    /// place, so nothing may be applied before something is durable.
    pub(crate) fn after_unnoted() -> Self {
        let (older, newer) = (u64::MAX, WINDOW);
        Self { older, newer }
    }

    /// Whether this many may be applied before they are durable; if so they are counted.
    #[inline]
    pub(super) fn takes(&mut self, count: u64) -> bool {
        let sum = self.newer.saturating_add(count);
        let has_room = sum <= WINDOW;
        if has_room {
            self.newer = sum;
        }
        has_room
    }

    /// The same when the newer window is full, for the commit of this number, and all up to `durable` is durable. If
    /// not, the commit is applied once it is durable.
    pub(super) fn takes_next(&mut self, count: u64, (number, durable): (u64, u64)) -> bool {
        let has_room = durable >= self.older && count <= WINDOW;
        (self.older, self.newer) = match has_room {
            true => (number - 1, count),
            false => (number, 0),
        };
        has_room
    }
}

impl Made {
    /// How many numbers and ids are given away when it is applied.
    pub(super) fn given(&self) -> u64 {
        let ids = match self {
            Self::One(state, new) => state.bring(new.last_id),
            Self::Many(versions) => {
                let ids = versions.iter().map(|(state, new)| state.bring(new.last_id));
                ids.fold(0, u64::saturating_add)
            }
            // If it is lost, no tree has its number again, so its ids are no other tree's.
            _ => 0,
        };
        ids.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies commits, while a journal makes some of them durable. Returns the most numbers and ids that were at risk.
    fn most_at_risk(counts: &[u64], mut durable: impl FnMut(u64) -> u64) -> (u64, usize) {
        let mut at_risk = AtRisk::after(0);
        let (mut shown, mut waits, mut most) = (Vec::new(), 0, 0);
        for (number, count) in (1..).zip(counts) {
            let settled = durable(number);
            let is_shown = at_risk.takes(*count) || at_risk.takes_next(*count, (number, settled));
            if is_shown {
                shown.push((number, *count));
            } else {
                waits += 1;
                shown.clear(); // It is durable, and so is what came before.
            }
            let sum = shown.iter().filter(|(number, _)| *number > settled);
            most = most.max(sum.map(|(_, count)| count).sum());
        }
        (most, waits)
    }

    #[test]
    fn never_is_more_at_risk_than_an_opening_leaves_out() {
        let counts: Vec<_> = (0..400_u64).map(|at| (at * 7919 + 13) % 60_000).collect();
        for delay in [0, 1, 5, 30, 400] {
            let (most, waits) = most_at_risk(&counts, |number| number.saturating_sub(delay + 1));
            assert!(most <= LOST, "{most} with a delay of {delay}");
            assert_eq!(waits > 0, delay > 10, "{waits} with a delay of {delay}");
        }
        let (most, waits) = most_at_risk(&[1, LOST, 1, WINDOW, 1], |_| 0);
        assert!(most <= LOST && waits == 2, "{most} {waits}");
        assert!(!AtRisk::after_unnoted().takes(1));
        assert!(!AtRisk::after_unnoted().takes_next(1, (8, 7)));
    }
}
