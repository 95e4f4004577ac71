//! The monitor's check of a [blocking pool](super): threads for closures that wait because others hold theirs for long,
//! an end of the wait for those that get none, and reports about operations that last although nobody waits for them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    report,
    scheduler::threads::{
        blocking_call::{BlockingCall, CallEnd},
        blocking_pool::{BlockingPool, LASTS},
    },
    sys::lock,
};

/// A closure that waits this long for a thread is reported, or gets none.
pub(super) const THREAD_IS_LATE: Duration = Duration::from_secs(1);
/// The most threads that one check starts: a thread takes some 30 µs to start, and the monitor has other duties.
const STARTS_PER_CHECK: usize = 64;

/// What a check of a pool found.
#[derive(Default)]
pub(in crate::scheduler::threads) struct PoolCheck {
    /// The numbers of threads that must start; they are counted.
    pub(in crate::scheduler::threads) starts: Vec<usize>,
    /// Whether the monitor must check again soon.
    pub(in crate::scheduler::threads) is_soon: bool,
}

impl BlockingPool {
    /// Whether the monitor must check the pool.
    pub(in crate::scheduler::threads) fn must_check(&self) -> bool {
        let inner = lock(&self.inner);
        let is_late = !inner.queue.is_empty() && (!inner.is_reported || self.bounds.held > 0);
        is_late || !inner.abandoned.is_empty()
    }

    /// Gives threads to closures that wait because others hold theirs for long, and reports or ends those that wait too
    /// long; reports operations that last. Called by the monitor each round.
    pub(in crate::scheduler::threads) fn check(&self) -> PoolCheck {
        let is_any_abandoned = self.check_abandoned();
        let mut found = self.check_queue();
        found.is_soon |= is_any_abandoned;
        found
    }

    /// Reports the operations that last although nobody waits for them. Returns whether others may come to that.
    fn check_abandoned(&self) -> bool {
        let mut inner = lock(&self.inner);
        if inner.abandoned.is_empty() {
            return false;
        }
        let now = Instant::now();
        let mut due = Vec::new();
        inner.abandoned.retain(|it| {
            let lasted = now.saturating_duration_since(it.since);
            if lasted >= LASTS
                && let Some(operation) = it.call.begin_report()
            {
                due.push((operation.clone(), lasted));
            }
            it.call.may_last()
        });
        let is_any_left = !inner.abandoned.is_empty();
        // While it is locked, no operation begins or ends, and a report may start a thread.
        drop(inner);
        for (operation, lasted) in due {
            report::abandoned_operation(&operation, lasted);
        }
        is_any_left
    }

    fn check_queue(&self) -> PoolCheck {
        let mut inner = lock(&self.inner);
        let Some((_, first)) = inner.queue.first_key_value() else {
            return PoolCheck::default();
        };
        let (now, since) = (Instant::now(), first.call.since);
        inner.excuse(self.bounds, now);
        let most = if inner.is_refused {
            1
        } else {
            STARTS_PER_CHECK
        };
        let starts: Vec<usize> = std::iter::from_fn(|| inner.count_new(self.bounds))
            .take(most)
            .collect();
        let late = now.saturating_duration_since(since);
        let rests = inner
            .moved
            .map(|moved| now.saturating_duration_since(moved));
        let is_operation = self.bounds.held > 0;
        let nobody_comes = starts.is_empty() && inner.lacks_thread();
        let is_stuck = (nobody_comes || inner.is_refused)
            && late >= THREAD_IS_LATE
            && (!is_operation || rests.is_none_or(|rests| rests >= THREAD_IS_LATE));
        if !is_stuck {
            let is_soon = is_operation || !inner.is_reported;
            return PoolCheck { starts, is_soon };
        }
        if !std::mem::replace(&mut inner.is_reported, true) {
            let (queued, running) = (inner.queue.len(), inner.names());
            drop(inner);
            match is_operation {
                true => report::operations_hold_threads(
                    self.bounds.counted + self.bounds.held,
                    queued,
                    running,
                ),
                false => report::no_free_thread(self.bounds.counted, queued, late, running),
            }
        } else {
            drop(inner);
        }
        if is_operation {
            let is_late = |call: &Arc<BlockingCall>| {
                now.saturating_duration_since(call.since) >= THREAD_IS_LATE
            };
            self.refuse_queued(CallEnd::NoFreeThread, is_late);
        }
        PoolCheck {
            starts,
            is_soon: is_operation,
        }
    }
}
