//! The priorities of closures that compute: at the priority of the workers they would take the cores from them.
//!
//! A closure may compute for as long as it likes, and nobody waits for its thread. But fifty that do leave a worker a
//! small part of its core. So a closure counts as one that computes when it has held its thread for the bound and the
//! system said at two checks in a row that the thread runs, until two checks in a row find it blocked. Where cores are
//! short, the priority of its thread is lowered while it counts, as that of a [detached
//! thread](crate::scheduler::threads::detached). A thread that was lowered stays so until its closure has ended,
//! because others cannot raise it without privilege.
//!
//! Hundreds of closures may block, and a check takes 10 µs: each check of a closure comes when it has held its thread
//! for twice as long as at the last one; at one that counts, each second at the latest. If those that do not count were
//! asked as often, one that computes now and then would be found to run twice in a row some day, and would stay lowered
//! for ever.
//!
//! Called by the monitor ([`crowd`](crate::scheduler::threads::crowd)).

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::{
    scheduler::threads::{
        blocking_pool::{BlockingPool, Running},
        priority::{self, CpuShare},
        thread_times::ThreadTimes,
    },
    sys::lock,
};

/// The longest time between two checks of a closure that computes.
const RARELY: Duration = Duration::from_secs(1);

/// What the monitor knows of a thread that runs a closure.
pub(super) struct ClosureThread {
    /// The system's number of the thread.
    number: u32,
    /// How long the closure must have held it when the system is asked next what it does.
    asked_at: Duration,
    /// Whether it ran at the last check.
    ran: bool,
    computes: bool,
    lowered: Option<CpuShare>,
}

impl ClosureThread {
    /// The calling thread begins a closure.
    pub(super) fn here() -> ClosureThread {
        let number = rustix::thread::gettid().as_raw_nonzero().get();
        ClosureThread::new(number.unsigned_abs())
    }

    fn new(number: u32) -> ClosureThread {
        ClosureThread {
            number,
            asked_at: Duration::ZERO,
            ran: false,
            computes: false,
            lowered: None,
        }
    }

    pub(super) fn is_lowered(&self) -> bool {
        self.lowered.is_some()
    }

    fn is_due(&self, held: Duration, bound: Duration) -> bool {
        held >= self.asked_at.max(bound / 2)
    }

    fn check(&mut self, times: Option<ThreadTimes>, held: Duration, bound: Duration) {
        let runs = times.is_some_and(|times| !times.is_blocked);
        if runs == self.ran {
            self.computes = runs && held >= bound;
        }
        self.ran = runs;
        let next_in = match self.computes {
            true => held.min(RARELY),
            false => held,
        };
        self.asked_at = (held + next_in).max(bound);
    }
}

impl Running {
    fn held(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

impl BlockingPool {
    /// Checks the closures that have held their threads for long. Returns how many compute.
    pub(in crate::scheduler::threads) fn count_computing(&self, bound: Duration) -> usize {
        let now = Instant::now();
        let due: Vec<u32> = {
            let inner = lock(&self.inner);
            let due = inner.running.iter();
            let due = due.filter(|running| running.thread.is_due(running.held(now), bound));
            due.map(|running| running.thread.number).collect()
        };
        // Read without the lock: each closure takes it when it begins and ends.
        let times: HashMap<u32, Option<ThreadTimes>> = due
            .into_iter()
            .map(|number| (number, ThreadTimes::of(number)))
            .collect();
        let mut inner = lock(&self.inner);
        for running in &mut inner.running {
            let held = running.held(now);
            // Not one that began meanwhile on the same thread.
            let is_due = running.thread.is_due(held, bound);
            if let Some(times) = times.get(&running.thread.number).filter(|_| is_due) {
                running.thread.check(*times, held, bound);
            }
        }
        let running = inner.running.iter();
        running.filter(|running| running.thread.computes).count()
    }

    /// Lowers those that compute, whose normal priority is `normal`, to this share of the cores. Under the lock, so
    /// that no thread is lowered after it has restored its priority.
    pub(in crate::scheduler::threads) fn lower_computing(&self, normal: i32, share: CpuShare) {
        for Running { thread, .. } in &mut lock(&self.inner).running {
            if thread.computes && thread.lowered < Some(share) {
                priority::lower(thread.number, normal, share);
                thread.lowered = Some(share);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_millis(10);
    const COMPUTING: ThreadTimes = ThreadTimes {
        ran: Duration::ZERO,
        is_blocked: false,
    };
    const BLOCKED: ThreadTimes = ThreadTimes {
        is_blocked: true,
        ..COMPUTING
    };

    #[test]
    fn a_closure_computes_if_it_ran_at_two_checks_the_second_beyond_the_bound() {
        let mut thread = ClosureThread::new(0);
        assert!(!thread.is_due(BOUND / 4, BOUND) && thread.is_due(BOUND / 2, BOUND));
        thread.check(Some(COMPUTING), BOUND / 2, BOUND);
        assert!(!thread.is_due(BOUND - BOUND / 4, BOUND) && thread.is_due(BOUND, BOUND));
        thread.check(Some(BLOCKED), BOUND, BOUND);
        assert!(!thread.is_due(BOUND, BOUND) && thread.is_due(2 * BOUND, BOUND));
        thread.check(Some(COMPUTING), 2 * BOUND, BOUND);
        assert!(!thread.computes);
        thread.check(Some(COMPUTING), 4 * BOUND, BOUND);
        assert!(thread.computes && thread.is_due(8 * BOUND, BOUND));
    }

    #[test]
    fn a_closure_that_computed_counts_no_longer_when_it_was_found_blocked_twice() {
        let mut thread = ClosureThread::new(0);
        for held in [BOUND, 2 * BOUND] {
            thread.check(Some(COMPUTING), held, BOUND);
        }
        assert!(thread.computes);
        thread.check(Some(BLOCKED), 4 * BOUND, BOUND);
        assert!(thread.computes, "it may have been a page fault");
        thread.check(Some(COMPUTING), 8 * BOUND, BOUND);
        thread.check(Some(BLOCKED), 16 * BOUND, BOUND);
        assert!(thread.computes);
        thread.check(Some(BLOCKED), 32 * BOUND, BOUND);
        assert!(!thread.computes);
        thread.check(Some(COMPUTING), 10 * RARELY, BOUND);
        assert!(!thread.is_due(20 * RARELY - BOUND, BOUND));
        thread.check(Some(COMPUTING), 20 * RARELY, BOUND);
        assert!(thread.computes);
        assert!(!thread.is_due(21 * RARELY - BOUND, BOUND));
        assert!(thread.is_due(21 * RARELY, BOUND));
    }
}
