//! Waits and yields in the caller's frame, for units whose waits end when a word in their own frame says so: those of
//! the C face.
//!
//! What a common wait or yield needs is asked once, before it begins. Everything from there to the switch is in one
//! frame, with what the caller saves; so is everything behind the switch that depends on the OS thread.

#![allow(unsafe_code)]

use std::task::Waker;

use super::{unwind_if_cancelled, yields::switch_yielding};
use crate::scheduler::workers::{
    context::{self, Left, PollNotes},
    waker,
};

pub use super::in_place::wait_on_until;

/// What came of a [wait at once](wait_at_once).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// Nothing was called: the job must wait in another way.
    Refused,
    /// It need not wait.
    Over,
    /// The wait has begun. The caller calls [`wait_on_until`].
    Begun,
    /// The stack was suspended until the job was woken, perhaps by something else. If the wait is not over, the caller
    /// calls [`wait_on_until`].
    Resumed,
}

/// The commonest wait, in the caller's frame: as [`wait_until`](crate::wait_until) if the job is a fiber that migrates,
/// and about which nothing is noted. If another such fiber may run next, switches to it, and returns when the job was
/// woken, and when `also` was called on the thread where its stack resumed.
///
/// # Safety
/// - The caller is a function that is not inlined, and that reads no thread-local after this call: it may be on another
///   thread then, and the compiler may keep the address of a thread-local over the call.
/// - `enqueue` does not wait, and runs no code that does.
///
/// # Panics
/// As [`wait_until`](crate::wait_until).
#[inline(always)]
pub unsafe fn wait_at_once(enqueue: impl FnOnce(&Waker) -> bool, also: impl FnOnce()) -> AtOnce {
    let cx = context::here();
    let Some((job, own)) = cx.common_migrating() else {
        return AtOnce::Refused;
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    // What has extensions may have to be told that it takes long.
    if header.state.is_cancelled() || !header.extensions.is_empty() {
        return AtOnce::Refused;
    }
    // In a forked process the general way panics.
    if !cx.shared().is_some_and(|shared| shared.process.is_here()) {
        return AtOnce::Refused;
    }
    // SAFETY: as above.
    let waker = unsafe { waker::borrowed(job) };
    if !enqueue(&waker) {
        return AtOnce::Over;
    }
    let noted = PollNotes::NOTHING;
    if !cx.switch_to_next_migrating(own, Left { job, noted }, also) {
        return AtOnce::Begun;
    }
    if header.state.is_cancelled() {
        unwind_if_cancelled(header);
    }
    AtOnce::Resumed
}

/// As [`yield_to_next_fiber`](crate::yield_to_next_fiber), for code that migrates, and without the questions that a
/// common yield need not ask. False also in a [jobless run](crate::run_jobless), or if there are
/// [lazy jobs](crate::LazyJob): then the caller must say first that it is [about to wait](crate::about_to_wait). When
/// the caller's stack has resumed, `also` is called on the thread where that is.
///
/// # Safety
/// The caller is a function that is not inlined, and that reads no thread-local after this call: it may be on another
/// thread then, and the compiler may keep the address of a thread-local over the call.
///
/// # Panics
/// As [`yield_with_stack`](crate::yield_with_stack).
#[inline(always)]
pub unsafe fn yield_at_once(also: impl FnOnce()) -> bool {
    let cx = context::here();
    cx.common_migrating()
        .is_some_and(|(job, own)| switch_yielding(cx, own, job, also))
}
