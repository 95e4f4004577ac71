//! The jobs in the middle of whose runs another one runs on the same thread: a list through the frames of those who
//! set them aside, the latest first.
//!
//! None of them goes on before the running one: what holds the thread for that one holds it for all of them.

#![allow(unsafe_code)]

use std::{cell::Cell, ptr};

use crate::job::JobPtr;

/// A place in the list, in the frame of who sets a run aside: it stays there until that run goes on.
pub(crate) struct OuterRun {
    job: Cell<Option<JobPtr>>,
    outer: Cell<*const OuterRun>,
}

impl OuterRun {
    pub(crate) fn new() -> OuterRun {
        OuterRun {
            job: Cell::new(None),
            outer: Cell::new(ptr::null()),
        }
    }
}

/// The list.
pub(crate) struct OuterRuns(Cell<*const OuterRun>);

impl OuterRuns {
    pub(super) const fn new() -> OuterRuns {
        OuterRuns(Cell::new(ptr::null()))
    }

    /// `job`, if there is one, is interrupted.
    pub(super) fn push(&self, place: &OuterRun, job: Option<JobPtr>) {
        place.job.set(job);
        place.outer.set(self.0.replace(place));
    }

    /// What was interrupted last goes on.
    pub(super) fn pop(&self, place: &OuterRun) {
        self.0.set(place.outer.get());
    }

    /// The running job joins others, holding the thread. Notes of all whether what is joined waits.
    pub(crate) fn set_joins_waiting(&self, does: bool) {
        let mut next = self.0.get();
        // SAFETY: a place is in a frame that goes on only after what runs now, which takes it out of the list.
        while let Some(place) = unsafe { next.as_ref() } {
            if let Some(job) = place.job.get() {
                // SAFETY: the thread is in the middle of its run, so it is alive.
                unsafe { job.header() }.set_joins_waiting(does);
            }
            next = place.outer.get();
        }
    }
}
