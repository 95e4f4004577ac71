//! The first poll of a wait with the stack: without what only a wait that suspends the stack needs.
//!
//! A lock that is free, or a channel with a value, ends its wait at the first poll. The general way
//! ([`wait_in_job`](super::wait_in_job)) first finds out whether and how the stack may be suspended. Here the job only polls,
//! as it would in an `async` function; if the wait has not ended then, it continues in the general way, behind its first poll.

#![allow(unsafe_code)]

use weald_sync::hooks::FirstPoll;

use super::may_suspend;
use crate::scheduler::{
    stackful::stack_context,
    workers::{
        context::{self, PollNotes},
        waker,
    },
};

/// Allows the running job a first poll, unless it is cancelled, or something is to be done or restored at the beginning of
/// a wait, or the wait would hold the thread, which polls with another waker. None outside of jobs.
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

/// The poll has ended the wait, or panics.
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
