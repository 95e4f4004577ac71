//! The monitor's watch over one queue: how long its first job has waited there, although jobs are taken from it.
//!
//! A watch remembers where the queue ended at some time. While the first job is before that position, the job has
//! waited since that time at least.

use std::time::Instant;

use crate::{queue::queue_counts::QueueCounts, timer::clock::TICK};

/// Where one queue ended, and when.
pub(super) struct OverdueWatch {
    position: u64,
    since: Instant,
}

impl OverdueWatch {
    /// For a queue with these counts at this time.
    pub(super) fn new(counts: QueueCounts, now: Instant) -> OverdueWatch {
        OverdueWatch {
            position: counts.put,
            since: now,
        }
    }

    /// Checks the queue again. True if its first job has waited for a tick and another worker `may_take` it; then
    /// the watch begins again, where the queue ends now.
    pub(super) fn is_overdue(&mut self, counts: QueueCounts, now: Instant, may_take: bool) -> bool {
        let QueueCounts { taken, put } = counts;
        let has_moved_on = taken >= self.position || taken == put;
        let waited = now.saturating_duration_since(self.since);
        let is_overdue = !has_moved_on && may_take && waited >= TICK;
        if has_moved_on || is_overdue {
            *self = OverdueWatch::new(counts, now);
        }
        is_overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(taken: u64, put: u64) -> QueueCounts {
        QueueCounts { taken, put }
    }

    #[test]
    fn a_job_that_waits_for_a_tick_is_overdue_once_a_tick() {
        let start = Instant::now();
        let mut watch = OverdueWatch::new(counts(0, 3), start);
        assert!(!watch.is_overdue(counts(0, 4), start + TICK / 2, true));
        assert!(!watch.is_overdue(counts(1, 9), start + TICK, false));
        assert!(watch.is_overdue(counts(2, 9), start + TICK, true));
        assert!(!watch.is_overdue(counts(2, 9), start + TICK, true));
        assert!(watch.is_overdue(counts(8, 20), start + 2 * TICK, true));
    }

    #[test]
    fn a_queue_that_moves_on_or_is_empty_is_never_overdue() {
        let start = Instant::now();
        let mut watch = OverdueWatch::new(counts(0, 0), start);
        for round in 1..100 {
            let taken = u64::from(10 * round);
            assert!(!watch.is_overdue(counts(taken, taken + 10), start + round * TICK, true));
        }
        assert!(!watch.is_overdue(counts(999, 999), start + 200 * TICK, true));
        assert!(!watch.is_overdue(counts(999, 999), start + 300 * TICK, true));
    }
}
