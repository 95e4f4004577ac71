//! The common way to wait with the stack: the first poll, and the suspensions and polls behind it.
//!
//! A lock that is free, or a channel with a value, ends its wait at the first poll. The general way
//! ([`wait_in_job`](super::wait_in_job)) first finds out whether and how the stack may be suspended. Here the job only
//! polls, as it would in an `async` function. If the wait has not ended then, [`suspend`] suspends the stack, and the
//! same code polls again: so a future is polled by code that knows its type. Whatever is not common is left to the
//! general way, which continues behind the polls that were made here.

#![allow(unsafe_code)]

use std::panic::Location;

use weald_sync::hooks::FirstPoll;

use super::{may_suspend, unwind_if_cancelled};
use crate::{
    job::{Header, JobPtr},
    scheduler::{
        stackful::stack_context,
        workers::{
            context::{self, Context, PollNotes},
            waker,
        },
    },
};

/// Allows the running job a first poll, unless it is cancelled, or something is to be done or restored at the beginning
/// of a wait, or the wait would hold the thread, which polls with another waker. None outside of jobs.
#[inline(always)]
pub(crate) fn begin() -> Option<FirstPoll> {
    let cx = context::again();
    let job = cx.job()?;
    // SAFETY: the caller runs the job.
    let is_cancelled = unsafe { job.header() }.state.is_cancelled();
    if is_cancelled
        || cx.noted().has_panicked()
        || cx.wanted_until().is_some()
        || !may_suspend(cx)
        || stack_context::root(cx).is_none()
    {
        return None;
    }
    let before = cx.begin_wait();
    cx.begin_poll_of_wait();
    Some(FirstPoll {
        // SAFETY: the caller runs the job; the waker leaves the poll only as clones with counts of their own.
        waker: unsafe { waker::borrowed(job) },
        notes: before.to_bits(),
    })
}

/// The last poll has not ended the wait, which is at the line `site`: suspends the stack until the job is woken, and
/// allows another poll. False, before anything is suspended, if there is no stack for a loop: then the wait continues
/// in the general way.
///
/// # Panics
/// Does not return to a job that is cancelled, unless it is shielded.
// Not inlined: it may resume on another thread.
#[inline(never)]
pub(crate) fn suspend(notes: &mut u8, site: &'static Location<'static>) -> bool {
    let cx = context::here();
    let Some(job) = cx.job() else {
        return false;
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    header.note_site(site);
    match header.extensions.is_empty() {
        true => suspend_told(cx, (job, header), notes),
        false => tell_and_suspend((job, header), notes),
    }
}

/// [`suspend`] of a job to which it must perhaps be told that it takes long.
#[inline(never)]
fn tell_and_suspend((job, header): (JobPtr, &Header), notes: &mut u8) -> bool {
    header.extensions.tell_that_it_takes_long();
    // What was told is user code, which may have waited, and a fiber may have migrated meanwhile.
    suspend_again((job, header), notes)
}

/// [`suspend_told`], perhaps on another thread than the caller began on.
#[inline(never)]
fn suspend_again(job: (JobPtr, &Header), notes: &mut u8) -> bool {
    suspend_told(context::here(), job, notes)
}

/// [`suspend`], where nothing is to be told any more.
// Inlined into frames that read a thread-local only before it.
#[inline(always)]
fn suspend_told(cx: &Context, (job, header): (JobPtr, &Header), notes: &mut u8) -> bool {
    let before = PollNotes::of_bits(*notes);
    let is_common = before.leaves_nothing() && cx.noted().only_waits();
    if !is_common || !cx.switch_to_next_pinned((job, header)) {
        return suspend_in_general((job, header), notes);
    }
    // It is pinned, so this is the same thread.
    cx.begin_poll_of_wait();
    *notes = before.after_suspension().to_bits();
    if header.state.is_cancelled() {
        unwind_if_cancelled(header);
    }
    true
}

/// [`suspend`] of a fiber that is not pinned yet, or has something to restore, or cannot switch to another one; and of
/// any other job.
#[inline(never)]
fn suspend_in_general((job, header): (JobPtr, &Header), notes: &mut u8) -> bool {
    let cx = context::again();
    debug_assert!(may_suspend(cx), "a poll changes nothing of what allowed it");
    let Some(root) = stack_context::root(cx) else {
        return false;
    };
    if let Some(shared) = cx.shared() {
        shared.process.assert_here();
    }
    cx.end_poll_of_wait();
    let before = PollNotes::of_bits(*notes);
    if !cx.suspend_if_migrating(root, (job, before)) {
        let fork_wait = cx.fork_wait();
        let suspended = stack_context::suspend(cx, root, (job, before));
        drop(fork_wait);
        if suspended.is_err() {
            context::again().begin_poll_of_wait();
            return false;
        }
    }
    context::again().begin_poll_of_wait();
    *notes = before.after_suspension().to_bits();
    unwind_if_cancelled(header);
    true
}

/// The last poll has ended the wait, or panics; or the wait unwinds the job.
#[inline(always)]
pub(crate) fn end(notes: u8) {
    let cx = context::again();
    cx.end_wait(PollNotes::of_bits(notes), false);
    if let Some(job) = cx.job() {
        // The job continues, and its next wait may be one that notes nothing.
        // SAFETY: the caller runs the job.
        unsafe { job.header() }.set_waits_for(0);
    }
}
