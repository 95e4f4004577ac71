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
    scheduler::{stackful::stack_context, workers::context},
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
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    let Some((own, next)) = cx.yield_directly(job) else {
        if header.body_bits() & body_bit::MIGRATING == 0 || !yield_migrating(job) {
            yield_in_general(job);
        }
        return true;
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

/// [`yield_with_stack`] of a fiber that migrates, as a direct switch. False if there can be none: the fiber still runs,
/// and at most the first job of the ring has come to the next slot.
#[inline(never)]
fn yield_migrating(job: JobPtr) -> bool {
    let Some((own, next)) = context::here().yield_migrating(job) else {
        return false;
    };
    let onto = Onto::Ours(next.newest().stack());
    // SAFETY: as in `yield_with_stack`.
    unsafe { stack::switch(own.saved_sp.as_ptr(), next.saved_sp.get(), onto, 0) };
    // Perhaps another thread's.
    let cx = context::again();
    cx.set_stack_context(own);
    cx.settle_left();
    // SAFETY: as in `yield_with_stack`.
    unwind_if_cancelled(unsafe { job.header() });
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
