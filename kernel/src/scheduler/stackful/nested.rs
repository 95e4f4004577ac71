//! A nested run: a job that is about to join a fresh fiber runs it first, in the middle of its own run.
//!
//! If the fiber has not started, and would be the next to run on this worker anyway, the job that joins calls it as a
//! subroutine: on the fiber's own stack, but without a return to the loop, a park and a wake. If the fiber waits, the
//! call returns at once, and both jobs are in the same state as if the loop had run the fiber. So nothing ever runs on
//! top of a stack that it blocks, except the code that runs when the fiber ends; a wait in that code holds the OS
//! thread.
//!
//! A nested run costs a reduction, so that a job that does nothing else still yields.

#![allow(unsafe_code)]

use crate::{
    biased_lock::Revoked,
    job::{JobPtr, JobRef, runnable::Runnable, unseen::Unseen},
    scheduler::workers::{
        context::{self, Context},
        run::{self, Polled},
        run_word::RunWord,
        worker::Worker,
    },
};

/// Runs `job`, which is a fiber, once, if it is the next one to run on the calling worker. Returns it if it has ended and
/// nobody else knows it; then the reference `job` is gone.
///
/// # Safety
/// `job` is the reference of the job's join handle, which the caller forgets if the job is returned.
pub(crate) unsafe fn run_if_next(job: &JobRef) -> Option<Unseen> {
    let cx = context::again();
    let (worker, _) = cx.worker()?;
    if cx.job().is_none() || cx.is_panicking() || !cx.spend_if_any() {
        return None;
    }
    let before = worker.running();
    let mut fiber = take_if_next(cx, worker, job.ptr())?;
    let budget = cx
        .shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget);
    // The caller does not compute meanwhile.
    let parked = cx.fork_wait();
    let outer = context::nested_run::OuterRun::new();
    let nested = cx.begin_nested(&outer);
    // The fiber's own code has its own stack. Everything else below runs on the caller's stack: destructors of a
    // cancelled fiber, exit hooks. It must not suspend that stack in the fiber's name.
    let ending = cx.set_ending(true);
    let ended = match run::poll(cx, &mut fiber, budget) {
        Polled::Waits => {
            run::park(cx, fiber);
            NestedEnd::Waits
        }
        Polled::Ended(None) if fiber.is_unseen() => NestedEnd::Unseen(fiber),
        Polled::Ended(panic) => NestedEnd::Seen(run::finish(fiber, panic)),
    };
    cx.set_ending(ending);
    drop(nested);
    drop(parked);
    // Before the fiber's reference is dropped: until then the run word names the fiber, and a foreign thread may follow
    // it.
    restore(cx, before, u64::from(!matches!(ended, NestedEnd::Waits)));
    match ended {
        NestedEnd::Waits | NestedEnd::Seen(_) => None,
        // SAFETY: the caller's promise.
        NestedEnd::Unseen(fiber) => match unsafe { fiber.end_unseen() } {
            Ok(unseen) => Some(unseen),
            // A walk over all jobs has seen it after all.
            Err(fiber) => {
                drop(run::finish(fiber, None));
                None
            }
        },
    }
}

/// How a nested run ended.
enum NestedEnd {
    /// The fiber waits.
    Waits,
    /// It has ended, as any job does. The reference is its own.
    Seen(#[expect(dead_code, reason = "it is only dropped")] JobRef),
    /// Its code has ended, and its joiner alone seems to know it.
    Unseen(Runnable),
}

/// Takes `job` out of the next slot, if it is there and no look is due. The run word then names it.
fn take_if_next(cx: &Context, worker: &Worker, job: JobPtr) -> Option<Runnable> {
    let (_, lease) = cx.worker()?;
    // SAFETY: *owner*: the worker of this thread's context.
    let mut core = unsafe { worker.core.enter(lease) }.ok()?;
    if !core.take_if_next(job) {
        return None;
    }
    worker.set_running(job, core.polls());
    // SAFETY: the slot held the job's right to run.
    Some(unsafe { Runnable::new(job) })
}

/// Makes the run word name the outer job again, and counts the jobs that have `ended`.
fn restore(cx: &Context, before: RunWord, ended: u64) {
    let Some((worker, lease)) = cx.worker() else {
        return run::count_ends(cx, ended);
    };
    // SAFETY: *owner*: the worker of this thread's context.
    match unsafe { worker.core.enter(lease) } {
        Ok(mut core) => {
            core.ended += ended;
            worker.restore_running(before);
        }
        Err(Revoked) => {
            cx.clear_worker();
            run::count_ends(cx, ended);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        job::testing,
        scheduler::{
            stackful::pinned::PinnedQueue,
            workers::{config::Config, shared::Shared, worker::WorkerLoop},
        },
        timer::clock::ClockKind,
    };

    /// What the run word of the calling thread's worker names.
    fn named() -> Option<JobPtr> {
        let (worker, _) = context::here().worker()?;
        worker.running().job()
    }

    #[test]
    fn the_run_word_names_the_nested_job_and_then_the_outer_run_again() {
        let config = Config {
            workers: 1,
            ..Config::new()
        };
        let (shared, mut handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        let handoff = handoffs.pop().unwrap();
        let pinned = PinnedQueue::new();
        let outer = testing::runnable();
        let (told, tells) = std::sync::mpsc::channel();
        let (inner, joined) = testing::job_of(async move { told.send(named()).unwrap() });
        // Somebody else knows it.
        let known = joined.clone();
        context::with(|cx| {
            let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
            worker_loop.begin(&shared.workers[handoff.worker], handoff.lease);
            worker_loop.set_running_job(&outer).unwrap();
            let before = worker_loop.worker().running();
            cx.begin_run(outer.ptr(), 2);
            let mut core = worker_loop.enter().unwrap();
            core.set_until_look(1);
            core.next = Some(inner.into_ptr());
            drop(core);
            // SAFETY: the reference stands for the job's handle, and nobody else has one.
            assert!(unsafe { run_if_next(&joined) }.is_none());
            assert!(tells.recv() == Ok(Some(joined.ptr())));
            assert!(joined.header().state.is_done());
            assert!(cx.job() == Some(outer.ptr()));
            // Not another run of it: the monitor times the outer run from its begin.
            assert_eq!(worker_loop.worker().running(), before);
            worker_loop.worker().set_running_none();
            worker_loop.end();
            cx.set_job(None);
        });
        drop(known);
        // It never ran.
        outer.into_ptr();
    }
}
