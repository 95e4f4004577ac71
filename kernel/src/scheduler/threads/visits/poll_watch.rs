//! What the monitor knows of a thread in `block_on` that polls the future of `block_on`: since when it has seen this
//! poll, and whether the thread has blocked or computed since, or only waits for a core.

use std::time::{Duration, Instant};

use crate::scheduler::{
    stackful::visit_run::main_poll::SeenPoll, threads::thread_times::ThreadTimes,
};

/// See the head of this file.
pub(in crate::scheduler::threads) struct PollWatch {
    seen: SeenPoll,
    pub(in crate::scheduler::threads) since: Instant,
    /// What the system reported of the thread at the last look at a long poll.
    last: Option<ThreadTimes>,
    /// How long the thread had run by the first of these looks which found that it runs.
    settled: Option<Duration>,
    /// Whether it has blocked or computed in the poll.
    pub(in crate::scheduler::threads) is_stuck: bool,
    /// Whether a report has named the jobs that the poll holds up.
    pub(in crate::scheduler::threads) is_reported: bool,
}

impl PollWatch {
    /// A poll that is seen for the first time.
    pub(in crate::scheduler::threads) fn new(seen: SeenPoll) -> PollWatch {
        PollWatch {
            seen,
            since: Instant::now(),
            last: None,
            settled: None,
            is_stuck: false,
            is_reported: false,
        }
    }

    /// A look has found `seen`. Returns whether the system must be asked about the thread. `bound`: how long a run may
    /// take.
    #[must_use]
    pub(in crate::scheduler::threads) fn check(&mut self, seen: SeenPoll, bound: Duration) -> bool {
        match seen.is_same(self.seen) {
            true => self.seen = seen,
            false => *self = PollWatch::new(seen),
        }
        self.lasts(seen, bound) && !self.is_stuck && !self.is_reported
    }

    /// Whether `seen` is the poll that is watched, and lasts for so long that what it keeps from running is held up.
    pub(in crate::scheduler::threads) fn lasts(&self, seen: SeenPoll, bound: Duration) -> bool {
        seen.may_hold_up() && seen.is_same(self.seen) && self.since.elapsed() >= bound / 2
    }

    /// Whether a report has named what this poll holds up.
    pub(in crate::scheduler::threads) fn is_reported_of(&self, seen: SeenPoll) -> bool {
        self.is_reported && seen.is_same(self.seen)
    }

    /// What the system says of the thread, if it says anything.
    pub(in crate::scheduler::threads) fn judge(
        &mut self,
        now: Option<ThreadTimes>,
        bound: Duration,
    ) {
        let Some(now) = now else {
            self.is_stuck = true;
            return;
        };
        let Some(last) = self.last.replace(now) else {
            return;
        };
        if now.is_blocked {
            // At a single look it may be in a page fault.
            self.is_stuck = last.is_blocked && last.ran == now.ran;
            return;
        }
        match self.settled {
            Some(then) => self.is_stuck = now.ran.saturating_sub(then) >= bound / 4,
            // The system reports late how long a thread has run, so the first look may not count time before the poll.
            None => self.settled = (now.ran != last.ran).then_some(now.ran),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_millis(8);

    fn judged(looks: &[(u64, bool)]) -> bool {
        let mut watch = PollWatch::new(SeenPoll::NONE);
        for (ran_ms, is_blocked) in looks {
            let ran = Duration::from_millis(*ran_ms);
            let is_blocked = *is_blocked;
            watch.judge(Some(ThreadTimes { ran, is_blocked }), BOUND);
        }
        watch.is_stuck
    }

    #[test]
    fn a_thread_that_waits_for_a_core_is_not_stuck_and_one_that_blocks_or_computes_is() {
        assert!(!judged(&[(5, false), (5, false), (5, false)]), "no core");
        assert!(!judged(&[(0, false), (40, false)]), "from before the poll");
        assert!(!judged(&[(5, false), (5, true)]), "a page fault");
        assert!(judged(&[(5, true), (5, true)]), "it blocks");
        assert!(judged(&[(0, false), (4, false), (6, false)]), "it computes");
        let mut unknown = PollWatch::new(SeenPoll::NONE);
        unknown.judge(None, BOUND);
        assert!(unknown.is_stuck, "the system does not tell");
    }
}
