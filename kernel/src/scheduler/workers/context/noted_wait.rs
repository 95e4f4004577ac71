//! What the running job notes of its wait, for reports: what it waits for, at which line, and whether that is all.

#![allow(unsafe_code)]

use std::{panic::Location, task::Waker};

use weald_sync::reason::{self, Reason};

use crate::scheduler::workers::{context::with, waker};

/// Notes what the running job waits for, for reports.
#[inline(always)]
pub fn note_wait(what: Reason) {
    with(|cx| {
        if let Some(job) = cx.job() {
            let word = reason::beside_others(what.to_word_with_site());
            // SAFETY: the thread that runs a job keeps it alive.
            unsafe { job.header() }.set_waits_for(word);
        }
    });
}

/// As [`note_wait`], of a wait that was polled with `waker`. It is known to be the job's only one if the waker is the
/// job's, and the job has noted none before in this poll.
#[inline(always)]
pub(crate) fn note_wait_of(what: Reason, waker: &Waker) {
    with(|cx| {
        if let Some(job) = cx.job() {
            // SAFETY: as above.
            let header = unsafe { job.header() };
            let word = what.to_word_with_site();
            header.set_waits_for(match waker::is_of(waker, job) && !header.has_noted_wait() {
                true => word,
                false => reason::beside_others(word),
            });
        }
    });
}

/// Adds the line of the wait to what the running job waits for, unless it has one.
pub(crate) fn note_site(site: &'static Location<'static>) {
    with(|cx| {
        if let Some(job) = cx.job() {
            // SAFETY: as above.
            unsafe { job.header() }.note_site(site);
        }
    });
}
