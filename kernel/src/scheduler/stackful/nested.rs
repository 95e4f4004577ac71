//! Running a fresh fiber in the middle of another job's run, by who is about to wait for it.
//!
//! A thread that joins another one which has not begun, and which would be the next to run here anyway, calls it
//! as a subroutine: on the other one's own stack, but without going back to the loop, parking, and being woken. If
//! the other one waits, it comes back at once, and both are as if the loop had run it. So nothing ever runs on top
//! of a stack that cannot go on before it, but for what ends with the other one; a wait in that holds the OS thread.
//!
//! A run like this costs a reduction, so that a job that does nothing else still gives way.

#![allow(unsafe_code)]

use crate::{
    job::{JobPtr, JobRef, runnable::Runnable},
    scheduler::workers::{
        context::{self, Context},
        run::{self, Polled},
        run_word::RunWord,
        worker::Worker,
    },
};

/// Runs `job`, which is a fiber, once, if it is the next one to run on the calling worker.
pub(crate) fn run_if_next(job: &JobRef) {
    let cx = context::again();
    let Some((worker, _)) = cx.worker() else {
        return;
    };
    if cx.job().is_none() || cx.is_panicking() || !cx.spend_if_any() {
        return;
    }
    let before = worker.running();
    let Some(fiber) = take_if_next(cx, worker, job.ptr()) else {
        return;
    };
    let budget = cx
        .shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget);
    // Who calls it does not compute meanwhile.
    let parked = cx.fork_wait();
    let outer = context::nested_run::OuterRun::new();
    let nested = cx.begin_nested(&outer);
    // But for the fiber's own code, which has its own stack, all that follows runs on the caller's: a destructor of
    // a fiber that was cancelled, what ends with it. It must not leave that stack in the fiber's name.
    let ending = cx.set_ending(true);
    let ended = match run::poll(cx, &fiber, budget) {
        Polled::Waits => {
            run::park(cx, fiber);
            None
        }
        Polled::Ended(panic) => Some(run::finish(fiber, panic)),
    };
    cx.set_ending(ending);
    drop(nested);
    drop(parked);
    // Before the fiber's reference goes: until then the run word names it, and an outsider may look.
    restore(cx, before, u64::from(ended.is_some()));
    drop(ended);
}

/// Takes `job` out of the next slot, if it lies there and no look around is due; the run word names it then.
fn take_if_next(cx: &Context, worker: &Worker, job: JobPtr) -> Option<Runnable> {
    let (_, lease) = cx.worker()?;
    let mut core = worker.core.enter(lease).ok()?;
    if !core.take_if_next(job) {
        return None;
    }
    worker.set_running_nested(job, core.polls());
    // SAFETY: the slot held the job's right to run.
    Some(unsafe { Runnable::new(job) })
}

/// The run word names the job again that goes on; so many have ended meanwhile.
fn restore(cx: &Context, before: RunWord, ended: u64) {
    let Some((worker, lease)) = cx.worker() else {
        return;
    };
    match worker.core.enter(lease) {
        Ok(mut core) => {
            core.ended += ended;
            worker.restore_running(before);
        }
        Err(_lost) => cx.clear_worker(),
    }
}
