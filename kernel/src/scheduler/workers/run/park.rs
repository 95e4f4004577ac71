//! Step 3 of a run: the job waits, or has yielded, and is parked or queued.

#![allow(unsafe_code)]

use super::survival::park_survivor;
use crate::{
    job::{
        runnable::Runnable,
        transition::{Listening, ParkOutcome},
    },
    scheduler::workers::{
        context::{Context, PollNotes},
        ready::ready_last,
    },
};

/// The caller gives up the runnable, and must not touch the job afterwards.
#[inline(always)]
pub(crate) fn park(cx: &Context, job: Runnable) {
    park_noted(cx, job, cx.noted());
}

/// [`park`], where the job's poll had noted this before another run began.
#[inline(always)]
pub(crate) fn park_noted(cx: &Context, job: Runnable, noted: PollNotes) {
    let state = &job.header().state;
    // Each with the bits of the state word as constants.
    let parked = match noted {
        PollNotes::LISTENS => state.park(Listening::Yes),
        PollNotes::NOTHING => state.park(Listening::No),
        noted if noted.has_panicked() => park_survivor(cx, job.header()),
        _yielded => ParkOutcome::Again,
    };
    match parked {
        ParkOutcome::Parked => {
            job.into_ptr();
        }
        ParkOutcome::Again => go_behind(cx, job),
    }
}

/// Parks or queues the fiber that has just switched to the running one. The first that a stack does on which a fiber
/// that migrates resumes: until then nobody may resume that other one, whose stack was still in use.
#[inline(always)]
pub(crate) fn settle_left(cx: &Context) {
    if let Some((job, noted)) = cx.take_left() {
        // SAFETY: one runner: that fiber gave up its right to run.
        park_noted(cx, unsafe { Runnable::new(job) }, noted);
    }
}

/// Queues the job that just ran here behind all others.
#[inline(always)]
fn go_behind(cx: &Context, job: Runnable) {
    match cx.pinned_here() {
        Some(pinned) if job.header().is_suspended_at(pinned) => pinned.push_own(job),
        _ => ready_last(job),
    }
}
