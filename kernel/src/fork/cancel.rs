//! How a cancel reaches forked work.
//!
//! A cancel of a job alerts the owners of the fork deques of everything that the job forked ([`crate::fork::deque`]
//! says what that does). The owner of an alerted deque unwinds at its next fork, once, as it would at a wait. Each join
//! on the way drops its stack job, or cancels the stolen job and waits for it; so the unwinding leaves nothing behind.
//!
//! Thieves take the oldest stack job, which the unwinding reaches last. So the owner first withdraws them all
//! ([`begin_unwinding`]). Otherwise other threads would begin, one after the other, what it is about to drop. Stack
//! jobs that its destructors push later can be stolen, and the cancel does not reach them.

#![allow(unsafe_code)]

use crate::{
    fork::fork_deque::{self, ForkDeque},
    report::payload::{self, Payload},
    scheduler::services::ThreadFork,
    scheduler::workers::{
        cancel,
        context::{self, Context},
        run,
    },
};

/// Whether the root job of `fork_deque` is cancelled.
fn root_is_cancelled(fork_deque: &ForkDeque) -> bool {
    fork_deque.root().canceller().is_some_and(|root| {
        // SAFETY: the root job runs the deque's root fork, or waits, through its joins, for the stolen job that does.
        unsafe { root.header() }.state.is_cancelled()
    })
}

/// A stolen job begins: if its root job is already cancelled, the stolen job is cancelled too.
pub(super) fn inherit(fork_deque: &ForkDeque) {
    if root_is_cancelled(fork_deque)
        && let Some(job) = context::here().job_ref()
    {
        cancel::cancel_alone(&job);
    }
}

/// A job that runs parts of what a destructor forks begins: its waits last to their end, as the destructor's do. A
/// shutdown cancels every job, and a cancel that unwound the part would be raised in the destructor, which ends the
/// program if that unwinds already.
pub(super) fn shield_to_the_end(here: &Context) {
    if let Some(job) = here.job_ref() {
        let mut extensions = job.header().extensions.lock();
        // Not one more for each part: a runner runs many, all of one scope.
        extensions.shields = extensions.shields.max(1);
    }
}

/// A part of a fork has run as a job of its own. If it noted a panic and `returned`, some code of its own has caught
/// that, so the unit that forked has survived it; otherwise the join raises the panic again, and notes it there.
pub(super) fn tell_if_survived(returned: bool) {
    let cx = context::again();
    if !cx.noted().has_panicked() {
        return;
    }
    match cx.unit_ref() {
        Some(unit) if returned && !unit.header().state.is_cancelled() => {
            run::tell_survived(cx, unit.header());
        }
        _ => cx.forget_panic(),
    }
}

/// Whether `payload` unwinds the running job for its own cancel, or for that of its root job.
pub(super) fn is_own_cancel(payload: &Payload) -> bool {
    if !payload::is_cancel(payload) {
        return false;
    }
    if let Some(fork_deque) = fork_deque::of(context::here()) {
        // The payload may have come from a stolen half, which notices the cancel before this job does.
        inherit(fork_deque);
    }
    run::is_own_cancel(payload)
}

/// A root fork begins: if its job is already cancelled, the job unwinds at its first fork.
pub(super) fn alert_if_cancelled(here: &Context, fork_deque: &ForkDeque) {
    if is_cancelled(here) {
        fork_deque.deque.alert();
    }
}

/// Whether the running job is cancelled.
pub(super) fn is_cancelled(here: &Context) -> bool {
    here.job().is_some_and(|job| {
        // SAFETY: the thread that runs a job keeps it alive.
        unsafe { job.header() }.state.is_cancelled()
    })
}

/// Unwinds the running job if it is cancelled and has not unwound before.
pub(super) fn unwind_if_cancelled(fork_deque: &ForkDeque) {
    let here = context::here();
    let Some(job) = here.job_ref() else { return };
    inherit(fork_deque);
    if !job.header().state.is_cancelled() || here.is_panicking() || here.is_dropping() {
        return;
    }
    if job.header().waits_to_the_end() {
        return;
    }
    if fork_deque.is_of_destructor() {
        return shield_to_the_end(here);
    }
    drop(job);
    begin_unwinding(fork_deque);
    run::unwind_cancelled();
}

/// A cancel begins to unwind the running job, whose root fork is that of `fork_deque`: because the job notices the
/// cancel, or because a part that another thread ran has noticed it first. Does nothing if it unwinds the job already.
pub(super) fn begin_unwinding(fork_deque: &ForkDeque) {
    let Some(job) = context::again().job_ref() else {
        return;
    };
    if !job.header().waits_to_the_end() {
        // First: from then on a cancel does not reach what is stolen from this deque.
        fork_deque.withdraw();
        job.header().extensions.lock().unwound = true;
    }
}
