//! The monitor's watch over one queue: how long its first job has waited there, although jobs are taken from it.
//!
//! A mark remembers where the queue ended at some time. While the first job is before the mark, it has waited since
//! then at least.

use std::time::Instant;

use crate::timer::clock::TICK;

/// The mark of one queue.
pub(super) struct OverdueWatch {
    position: u64,
    since: Instant,
}

impl OverdueWatch {
    /// For a queue from which `ends.0` jobs were ever taken, and into which `ends.1` were ever put.
    pub(super) fn new(ends: (u64, u64), now: Instant) -> OverdueWatch {
        OverdueWatch {
            position: ends.1,
            since: now,
        }
    }

    /// Looks at the queue again. True if its first job has waited for a tick and another worker `may_take` it; then the
    /// position is set anew.
    pub(super) fn is_overdue(&mut self, ends: (u64, u64), now: Instant, may_take: bool) -> bool {
        let (taken, put) = ends;
        let has_moved_on = taken >= self.position || taken == put;
        let waited = now.saturating_duration_since(self.since);
        let is_overdue = !has_moved_on && may_take && waited >= TICK;
        if has_moved_on || is_overdue {
            *self = OverdueWatch::new(ends, now);
        }
        is_overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_waits_for_a_tick_is_overdue_once_a_tick() {
        let start = Instant::now();
        let mut watch = OverdueWatch::new((0, 3), start);
        assert!(!watch.is_overdue((0, 4), start + TICK / 2, true));
        assert!(!watch.is_overdue((1, 9), start + TICK, false));
        assert!(watch.is_overdue((2, 9), start + TICK, true));
        assert!(!watch.is_overdue((2, 9), start + TICK, true));
        assert!(watch.is_overdue((8, 20), start + 2 * TICK, true));
    }

    #[test]
    fn a_queue_that_moves_on_or_is_empty_is_never_overdue() {
        let start = Instant::now();
        let mut watch = OverdueWatch::new((0, 0), start);
        for round in 1..100 {
            let ends = (u64::from(10 * round), u64::from(10 * round) + 10);
            assert!(!watch.is_overdue(ends, start + round * TICK, true));
        }
        assert!(!watch.is_overdue((999, 999), start + 200 * TICK, true));
        assert!(!watch.is_overdue((999, 999), start + 300 * TICK, true));
    }
}
