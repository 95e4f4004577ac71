//! Lazy jobs: code that its joiner mostly runs by itself ([`crate::queue::sharing::lazy_jobs`]).
//!
//! - *created*: [`push_lazy`] gives it to the worker, as the newest of its list;
//! - *joined there*: [`take_lazy`] takes it back, and the joiner runs it, as a [jobless run](crate::api::jobless);
//! - *its creator, or any code on that worker, is about to wait*: jobs are made of all ([`make_jobs_of_lazy`]), the
//!   oldest first;
//! - *the worker looks around*: the same ([`look`](crate::scheduler::workers::search::look));
//! - *another worker has nothing to do, and the oldest has waited for some microseconds when a younger one is added*:
//!   its owner makes a job of it, which the other one takes from the ring (`Worker::watch_lazy`);
//! - *another worker searches, the ring is [shared](crate::queue::sharing), and the oldest has waited for longer*: it
//!   takes the oldest, and makes jobs of them (`Worker::steal_lazy`). What shares the ring of a worker that computes is
//!   what shares it for jobs: a row of nested runs ([`has_time`](crate::api::jobless)), or the monitor after a tick. A
//!   worker that has jobs of its own takes some at its looks;
//! - *the system refuses what a job needs*: it and all behind it are the runtime's, whose workers try again at their
//!   looks, and before a sleep lasts for long ([`crate::queue::sharing::refused_lazy_jobs`]).
//!
//! So code that nobody joins runs as soon as a job in its place would have.

#![allow(unsafe_code)]

use std::ptr;

use crate::{
    queue::sharing::lazy_jobs::{LazyJob, MakeJob, TakenLazyJobs},
    report,
    scheduler::workers::{
        context::{self, Context},
        worker::lazy::refuse,
    },
};

/// Gives code to the worker of the calling thread. False if there is none, if the thread has lost it, or if the runtime
/// ends: then nothing has happened.
///
/// # Safety
/// - `lazy` stays where it is until [`take_lazy`] has returned true for it, or a job was made of it.
/// - `make` may be called with it until a job is made of it, on any thread of the runtime, inside or outside of a job.
///   It does not unwind, and does not wait.
#[inline(never)]
pub unsafe fn push_lazy(lazy: &LazyJob, make: MakeJob) -> bool {
    let cx = context::here();
    let Some((worker, lease)) = cx.worker() else {
        return false;
    };
    let Some(shared) = cx.shared().filter(|shared| !shared.is_closing()) else {
        return false;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(core) = (unsafe { worker.core.enter(lease) }) else {
        // Whoever owns the worker now may sleep, and nobody would wake it.
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe { worker.push_lazy((shared, core, lease), lazy, make) };
    true
}

/// For code of which the caller could make no job, after it has taken it back: the workers try it again at times, the
/// oldest first. Any thread of the runtime. Nothing happens if the runtime ends.
///
/// # Safety
/// As for [`push_lazy`].
#[cold]
pub unsafe fn put_back_lazy(lazy: &LazyJob, make: MakeJob) {
    let cx = context::here();
    let Some(shared) = cx.shared() else {
        report::impossible("a thread without a runtime has taken code from one");
    };
    lazy.set_make(make);
    // SAFETY: the caller's promise.
    let taken = unsafe { TakenLazyJobs::one(lazy) };
    // SAFETY: as above.
    unsafe { refuse(shared, taken) };
}

/// Takes code back, whichever worker of the caller's runtime has it, or if it was refused what it needs. False if
/// somebody makes, or has made, a job of it, and on threads that do not work for a runtime.
///
/// # Safety
/// If it was given to a worker, it was one of the caller's runtime: a worker of another one may have the same number.
#[inline(never)]
pub unsafe fn take_lazy(lazy: &LazyJob) -> bool {
    let cx = context::here();
    let Some((shared, place)) = cx.shared().zip(lazy.place()) else {
        return false;
    };
    let Some(worker) = shared.workers.get(place) else {
        return shared.refused_lazy.remove(lazy);
    };
    match cx.worker() {
        Some((own, lease)) if ptr::eq(own, worker) => {
            // SAFETY: *owner*: the worker of this thread's context.
            let entered = unsafe { worker.core.enter(lease) };
            entered.is_ok_and(|mut core| worker.remove_lazy(&mut core, lazy))
        }
        _ => worker.remove_lazy(&mut worker.core.enter_foreign(), lazy),
    }
}

/// Makes jobs of all lazy jobs of the caller's worker, because what runs there is about to wait.
#[inline(always)]
pub(super) fn make_jobs_of_lazy(cx: &Context) {
    if let Some((worker, lease)) = cx.worker()
        && worker.has_lazy_jobs()
        && let Some(shared) = cx.shared()
    {
        // If the lease was revoked, the worker's next owner makes them.
        let _revoked = worker.make_all_lazy(shared, lease);
    }
}
