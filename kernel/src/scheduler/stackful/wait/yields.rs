//! A yield with the stack: the running job goes behind all others, on its own stack.
//!
//! Most yields are between fibers that wait on one thread, and are a direct switch
//! ([`crate::scheduler::stackful::direct`]) in the frame of the call. In all others the stack is
//! suspended as in a wait, and the job is queued instead of parked.

#![allow(unsafe_code)]

use std::thread;

use super::{SavedFlags, block::block_in_place, may_suspend, unwind_if_cancelled};
use crate::{
    job::{JobPtr, body_bit},
    scheduler::{
        stackful::stack_context::{self, StackContext},
        workers::context::{self, Context, Left, PollNotes},
    },
    stack::{self, Onto},
};

/// Yields with the stack: the running job goes behind all others, and resumes after they had their turn. Where its
/// stack must not be suspended (while it unwinds), it hands its worker to another thread instead. Outside of jobs it
/// does nothing, and returns false.
///
/// # Panics
/// Does not return to a job that is cancelled: its stack is unwound.
// Not inlined: a fiber that migrates may yield in a loop, and must not keep the address of a thread-local.
#[inline(never)]
pub fn yield_with_stack() -> bool {
    let cx = context::here();
    let Some(job) = cx.job() else { return false };
    if !yield_directly(cx, job) {
        yield_in_general(job);
    }
    true
}

/// As [`yield_with_stack`], if the next job of the caller's worker, or the next one that is pinned to its OS thread, is
/// a fiber to which the caller can switch. False elsewhere: then the caller has not yielded.
///
/// # Panics
/// As [`yield_with_stack`].
// Not inlined, as above.
#[inline(never)]
pub fn yield_to_next_fiber() -> bool {
    let cx = context::here();
    cx.job().is_some_and(|job| yield_directly(cx, job))
}

/// Yields by a direct switch. False if there can be none.
#[inline(always)]
fn yield_directly(cx: &Context, job: JobPtr) -> bool {
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    let Some((own, next)) = cx.yield_directly(job) else {
        return header.body_bits() & body_bit::MIGRATING != 0 && yield_migrating(job);
    };
    let onto = Onto::Ours(next.newest().stack());
    // SAFETY: *its stack* ([`fiber`](crate::scheduler::stackful::fiber)): the next fiber is suspended there, and the
    // job's next run resumes here.
    unsafe { stack::switch(own.saved_sp.as_ptr(), next.saved_sp.get(), onto, 0) };
    // It is pinned, so this is the same thread.
    cx.set_stack_context(own);
    unwind_if_cancelled(header);
    true
}

/// [`yield_with_stack`] of a fiber that migrates, as a direct switch. False if there can be none, as of
/// [`switch_to_next_migrating`](Context::switch_to_next_migrating).
// Not inlined: it resumes on another thread.
#[inline(never)]
fn yield_migrating(job: JobPtr) -> bool {
    let cx = context::here();
    match cx.plain_migrating() {
        Some(own) => yield_on(cx, own, job),
        None => false,
    }
}

/// [`yield_migrating`] of the fiber on this stack.
// Inlined into frames that read a thread-local only before it.
#[inline(always)]
fn yield_on(cx: &Context, own: &StackContext, job: JobPtr) -> bool {
    if !cx.noted().leaves_nothing() || cx.is_panicking() {
        return false;
    }
    switch_yielding(cx, own, job, || {})
}

/// [`yield_on`] of a fiber about which nothing is noted.
#[inline(always)]
pub(super) fn switch_yielding(
    cx: &Context,
    own: &StackContext,
    job: JobPtr,
    also: impl FnOnce(),
) -> bool {
    let noted = PollNotes::of_yield();
    if !cx.switch_to_next_migrating(own, Left { job, noted }, also) {
        return false;
    }
    // SAFETY: as in `yield_with_stack`.
    let header = unsafe { job.header() };
    if header.state.is_cancelled() {
        unwind_if_cancelled(header);
    }
    true
}

/// [`yield_with_stack`] through the loop, or while the stack unwinds.
#[cold]
#[inline(never)]
fn yield_in_general(job: JobPtr) {
    let cx = context::again();
    let root = match stack_context::root(cx) {
        Some(root) if may_suspend(cx) => root,
        _ => {
            block_in_place(thread::yield_now);
            return;
        }
    };
    // SAFETY: as in `yield_with_stack`.
    unwind_if_cancelled(unsafe { job.header() });
    let mut saved = SavedFlags::begin(cx);
    cx.yield_job();
    // Without a stack for a loop, no other job can run.
    saved.suspended = stack_context::suspend(cx, root, (job, saved.before)).is_ok();
    drop(saved);
    // SAFETY: as above.
    unwind_if_cancelled(unsafe { job.header() });
}
