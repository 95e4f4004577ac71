//! What a job asks of its worker before it yields: to steal, or whether there is anything to yield to.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::{
    job::JobPtr,
    scheduler::{
        stackful::pinned::PinnedQueue,
        workers::{context, search::take_half},
    },
};

/// The running job's worker steals from the first other worker that has jobs or [lazy jobs](crate::LazyJob) to spare,
/// and queues them behind its own. For a job that is about to yield; outside of jobs it does nothing. It also takes
/// from a private ring.
pub fn prefer_stealing() {
    let cx = context::again();
    let (Some((worker, lease)), Some(shared)) = (cx.worker(), cx.shared()) else {
        return;
    };
    let victims = (1..shared.workers.len()).map(|distance| worker.index + distance);
    let mut victims = victims.map(|victim| &shared.workers[victim % shared.workers.len()]);
    // A revoked lease is noticed when the thread next takes the lock.
    let _found = victims.any(|victim| {
        matches!(take_half((worker, lease), victim), Ok(true)) || victim.steal_lazy(shared)
    });
}

/// The running job's worker takes one job, or lazy job, from another worker, which runs before all others. For a job
/// that is about to yield. Returns whether there was one; it does not look if a job was just woken here, which would
/// have to wait. Outside of jobs it does nothing.
pub fn steal_next() -> bool {
    let cx = context::again();
    let (Some((worker, lease)), Some(shared)) = (cx.worker(), cx.shared()) else {
        return false;
    };
    // SAFETY: *owner*: the worker of this thread's context. The lock first, as in `take_half`.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        return false;
    };
    if core.next.is_some() {
        return false;
    }
    let victims = (1..shared.workers.len()).map(|distance| worker.index + distance);
    let victims = victims.map(|victim| &shared.workers[victim % shared.workers.len()]);
    let stolen = victims
        .clone()
        .find_map(|victim| NonNull::new(victim.thief.steal_one()?));
    // The ring held the job's right to run, which is the slot's now.
    core.next = stolen.map(JobPtr::from_raw);
    drop(core);
    // A job that is made of a lazy one goes to the next slot, too.
    stolen.is_some() || victims.clone().any(|victim| victim.steal_one_lazy(shared))
}

/// Whether another job waits for its turn at the running job's worker, or is pinned to this thread. False outside of
/// jobs.
pub fn has_local_jobs() -> bool {
    let cx = context::again();
    let Some((worker, lease)) = cx.worker() else {
        return cx.job().is_some();
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(core) = (unsafe { worker.core.enter(lease) }) else {
        return true;
    };
    core.has_jobs() || cx.pinned_here().is_some_and(PinnedQueue::has_runnable)
}

/// Spends a reduction of the running job, for an operation that is not awaited. False if its budget is used up: then it
/// must yield. False outside of jobs.
///
/// In a frame of its own: a caller that yields in a loop may go on with another thread, and would otherwise keep the
/// address of the first one's unit.
#[inline(never)]
pub fn spend_reduction() -> bool {
    context::again().spend_if_any()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        job::testing,
        scheduler::workers::{
            config::Config, shared::Shared, worker::WorkerLoop, worker_core::Behind,
        },
        timer::clock::ClockKind,
    };

    #[test]
    fn one_job_is_stolen_for_the_next_slot_unless_that_has_one() {
        let config = Config {
            workers: 2,
            ..Config::new()
        };
        let (shared, handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        let pinned = PinnedQueue::new();
        let [mine, theirs] = <[_; 2]>::try_from(handoffs).ok().unwrap();
        let jobs = [(); 2].map(|()| testing::runnable().into_ptr());
        context::with(|cx| {
            let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
            let outer = cx.set_shared(std::sync::Arc::as_ptr(&shared));
            worker_loop.begin(&shared.workers[mine.worker], mine.lease);
            assert!(!steal_next() && !has_local_jobs(), "there is no job");
            // SAFETY: *owner*: the lease of that worker, which no thread serves.
            let mut other =
                unsafe { shared.workers[theirs.worker].core.enter(theirs.lease) }.unwrap();
            for job in jobs {
                assert!(other.push_last(job, Behind::Ring).is_none());
            }
            drop(other);
            assert!(steal_next() && has_local_jobs());
            assert!(!steal_next(), "the next slot has a job");
            assert!(worker_loop.enter().unwrap().next.take() == Some(jobs[0]));
            assert!(steal_next());
            assert!(worker_loop.enter().unwrap().next.take() == Some(jobs[1]));
            worker_loop.end();
            cx.set_shared(outer);
        });
    }
}
