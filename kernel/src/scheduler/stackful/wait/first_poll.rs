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
use crate::scheduler::{
    stackful::stack_context,
    workers::{
        context::{self, PollNotes},
        waker,
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
#[inline]
pub(crate) fn suspend(notes: &mut u8, site: &'static Location<'static>) -> bool {
    let mut cx = context::again();
    let Some(job) = cx.job() else {
        return false;
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    header.note_site(site);
    if header.extensions.tell_that_it_takes_long() {
        // What was told is user code, which may have waited, and a fiber may have migrated meanwhile.
        cx = context::again();
    }
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
