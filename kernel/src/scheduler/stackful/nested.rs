//! A nested run: a job that is about to join a fresh fiber runs it first, in the middle of its own run.
//!
//! If the fiber has not started, and would be the next to run on this worker anyway, the job that joins calls it as a
//! subroutine: on the fiber's own stack, but without a return to the loop, a park and a wake. If the fiber waits, the
//! call returns at once, and both jobs are in the same state as if the loop had run the fiber. So nothing ever runs on
//! top of a stack that it blocks, except the code that runs when the fiber ends; a wait in that code holds the OS
//! thread.
//!
//! If the fiber ends, its output is the joiner's, and its block, too, if nobody else knows it
//! ([`end_unseen`](crate::job::unseen)). What is not common about such a join is in `run_in_general`.
//!
//! A nested run costs a reduction, so that a job that does nothing else still yields.
//!
//! An *eager* joiner does the same with a fiber that is not the next to run, but was queued last: a recursion that
//! forks in two then runs its halves as calls, the newest first, and leaves the oldest to thieves.

#![allow(unsafe_code)]

use crate::{
    biased_lock::Revoked,
    job::{JobPtr, JobRef, body::FreshRun, runnable::Runnable},
    scheduler::workers::{
        context::{self, Context, OuterRun},
        run::{self, Polled},
        run_word::RunWord,
        worker::Worker,
    },
};

/// What came of a fiber that its joiner may run.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Nothing, or it has run: it waits, or has ended as any job does.
    Known,
    /// It has ended, and its output is where the joiner wants it. The reference of the join handle is gone.
    Gone,
    /// As `Gone`, but somebody else knows it, and the joiner still has the reference.
    Taken,
}

/// Runs `job`, which is a fiber, once, if it is the next one to run on the calling worker; by an `EAGER` joiner also
/// if it was the last to be queued there, and even if a look is due.
///
/// # Safety
/// `job` is the reference of the job's join handle, and `place` has room for the output. If the output is put there,
/// the caller takes none from the job, and forgets the reference if it is [`Gone`](Joined::Gone).
pub(crate) unsafe fn run_if_next<const EAGER: bool>(job: &JobRef, place: *mut ()) -> Joined {
    let cx = context::again();
    let (Some((worker, _)), Some(outer)) = (cx.worker(), cx.job()) else {
        return Joined::Known;
    };
    if cx.is_panicking() || !cx.spend_if_any() {
        return Joined::Known;
    }
    let before = worker.running();
    let Some(fiber) = take::<EAGER>(cx, worker, job.ptr()) else {
        return Joined::Known;
    };
    let budget = cx
        .shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget);
    match fiber.header().vtable.run_fresh {
        Some(run) if cx.has_no_notes() && fiber.header().is_untouched() => {
            let node = OuterRun::new();
            let nested = cx.begin_plain_nested(&node, outer);
            cx.begin_run(fiber.ptr(), budget);
            // SAFETY: one runner; the caller's promise.
            match unsafe { run(fiber.ptr().as_raw(), place) } {
                FreshRun::Ended if !fiber.is_unseen() => {
                    let own = tell_of_end(cx, fiber);
                    cx.end_plain_nested(nested);
                    restore(cx, before, 1);
                    drop(own);
                    return Joined::Taken;
                }
                FreshRun::Ended => {
                    cx.end_plain_nested(nested);
                    // SAFETY: the caller's promise, and it has taken the output.
                    return unsafe { end(cx, before, fiber) };
                }
                FreshRun::Waits => {
                    wait(cx, fiber);
                    cx.end_plain_nested(nested);
                    restore(cx, before, 0);
                    return Joined::Known;
                }
                FreshRun::Declined => cx.end_plain_nested(nested),
                FreshRun::Unwound => {
                    cx.end_plain_nested(nested);
                    collect(cx, before, fiber);
                    return Joined::Known;
                }
            }
        }
        _ => {}
    }
    run_in_general(cx, before, |cx| {
        let mut fiber = fiber;
        (run::poll(cx, &mut fiber, budget), fiber)
    });
    Joined::Known
}

/// The fiber waits. What has to be done for that runs on the joiner's stack, which it must not suspend in the fiber's
/// name.
pub(crate) fn wait(cx: &Context, mut fiber: Runnable) {
    let ending = cx.set_ending(true);
    if cx.noted().needs_care() {
        let _waits = run::take_care(cx, &mut fiber);
    }
    run::park(cx, fiber);
    cx.set_ending(ending);
}

/// The fiber has ended, its joiner has taken the output, and others are to learn of the end: its exit hooks, its
/// callbacks and its attachments are user code, which runs as the fiber, while the run word names it.
#[cold]
fn tell_of_end(cx: &Context, fiber: Runnable) -> impl Sized {
    let ending = cx.set_ending(true);
    let own = run::finish(fiber, None);
    cx.set_ending(ending);
    own
}

/// The fiber has ended, its joiner has taken the output, and nobody else knew it a moment ago.
///
/// # Safety
/// As [`run_if_next`].
#[inline(always)]
unsafe fn end(cx: &Context, before: RunWord, fiber: Runnable) -> Joined {
    // Before the fiber's reference is dropped: until then the run word names the fiber, and a foreign thread may follow
    // it.
    restore(cx, before, 1);
    // SAFETY: the caller's promise.
    match unsafe { fiber.end_unseen() } {
        Ok(()) => Joined::Gone,
        // A walk over all jobs has seen it since. It has left nothing to tell of but a reference.
        Err(fiber) => {
            drop(run::finish(fiber, None));
            Joined::Taken
        }
    }
}

/// The code of the fiber has ended, and its result is to be collected.
pub(crate) fn collect(cx: &Context, before: RunWord, fiber: Runnable) {
    let budget = cx
        .shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget);
    run_in_general(cx, before, |cx| {
        run::begin(cx, &fiber, budget);
        (run::call(&fiber), fiber)
    });
}

/// Runs the fiber by `poll`, as a loop does.
#[inline(never)]
fn run_in_general(
    cx: &Context,
    before: RunWord,
    poll: impl FnOnce(&Context) -> (Polled, Runnable),
) {
    // The caller does not compute meanwhile.
    let fork_wait = cx.fork_wait();
    let outer = OuterRun::new();
    let nested = cx.begin_nested(&outer);
    // The fiber's own code has its own stack. Everything else below runs on the caller's stack: destructors of a
    // cancelled fiber, exit hooks. It must not suspend that stack in the fiber's name.
    let ending = cx.set_ending(true);
    let ended = match poll(cx) {
        (Polled::Waits, fiber) => {
            run::park(cx, fiber);
            None
        }
        (Polled::Ended(panic), fiber) => Some(run::finish(fiber, panic)),
    };
    cx.set_ending(ending);
    drop(nested);
    drop(fork_wait);
    // As in `end`.
    restore(cx, before, u64::from(ended.is_some()));
}

/// Takes `job` out of the next slot, if it is there and no look is due, and by an eager joiner from the end of the
/// ring, too. The run word then names it.
#[inline(always)]
fn take<const EAGER: bool>(cx: &Context, worker: &Worker, job: JobPtr) -> Option<Runnable> {
    let (_, lease) = cx.worker()?;
    // SAFETY: *owner*: the worker of this thread's context.
    let mut core = unsafe { worker.core.enter(lease) }.ok()?;
    if !core.take_if_next(job) {
        drop(core);
        return EAGER.then(|| take_eagerly(cx, worker, job)).flatten();
    }
    worker.set_running(job, core.polls());
    // SAFETY: the slot held the job's right to run.
    Some(unsafe { Runnable::new(job) })
}

/// [`take`] by an eager joiner, where the job is not in the next slot, or a look is due.
///
/// Nested runs are in the middle of others, of which a look would make jobs that wait for each other: so they put it
/// off for a while. What has been in the ring meanwhile is worth the journey to another worker.
#[inline(never)]
fn take_eagerly(cx: &Context, worker: &Worker, job: JobPtr) -> Option<Runnable> {
    let (shared, (_, lease)) = (cx.shared()?, cx.worker()?);
    if shared.is_driven() {
        return None;
    }
    // SAFETY: *owner*: the worker of this thread's context.
    let mut core = unsafe { worker.core.enter(lease) }.ok()?;
    let is_used_up = core.is_used_up();
    if is_used_up && !core.put_off(shared.clock.now(), |_| true) {
        return None;
    }
    let before = match core.take_if_next(job) {
        true => core.ring.len() as u64,
        false => core.take_if_last(job)?,
    };
    worker.set_running(job, core.polls());
    drop(core);
    if before > 0 {
        if is_used_up && !worker.sharing.is_shared() {
            worker.sharing.share();
            shared.wake_one();
        } else if worker.sharing.is_shared() {
            // They were out of the ring for a moment, in which a thief may have gone to sleep.
            shared.wake_one_for_own_ring();
        }
    }
    // SAFETY: the queue held the job's right to run.
    Some(unsafe { Runnable::new(job) })
}

/// Makes the run word name the outer job again, and counts the jobs that have `ended`.
#[inline(always)]
pub(crate) fn restore(cx: &Context, before: RunWord, ended: u64) {
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
            let place = std::ptr::from_mut(&mut ()).cast();
            // SAFETY: the reference stands for the job's handle, and nobody else has one.
            let known_as = unsafe { run_if_next::<false>(&joined, place) };
            assert_eq!(known_as, Joined::Known);
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
