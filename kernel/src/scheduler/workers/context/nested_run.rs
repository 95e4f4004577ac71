//! Outer runs: the runs of jobs that wait on this thread while another run is nested in them. They form a list through
//! the frames that begin the nested runs, the latest first.
//!
//! None of them continues before the nested run ends or waits. So while the innermost job holds the thread, all of
//! them are held.

#![allow(unsafe_code)]

use std::{cell::Cell, ptr};

use crate::job::{JobPtr, JobRef};

/// A node of the list, in the frame that begins a nested run. It stays there until the outer run continues.
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

    /// A run is nested in that of `job`, if there is one.
    pub(super) fn push(&self, node: &OuterRun, job: Option<JobPtr>) {
        node.job.set(job);
        node.outer.set(self.0.replace(node));
    }

    /// The latest outer run continues.
    pub(super) fn pop(&self, node: &OuterRun) {
        self.0.set(node.outer.get());
    }

    /// Whether there are none.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.get().is_null()
    }

    /// Whether the run of `job` is one of them.
    pub(crate) fn contains(&self, job: JobPtr) -> bool {
        self.find(|outer| outer == job).is_some()
    }

    /// The first job for which `is_wanted` is true. Each lives during its call, because the thread is in the middle of
    /// its run.
    pub(crate) fn find(&self, mut is_wanted: impl FnMut(JobPtr) -> bool) -> Option<JobPtr> {
        let mut next = self.0.get();
        // SAFETY: as in `set_holds_in_wait`.
        while let Some(node) = unsafe { next.as_ref() } {
            let found = node.job.get().filter(|job| is_wanted(*job));
            if found.is_some() {
                return found;
            }
            next = node.outer.get();
        }
        None
    }

    /// The jobs.
    pub(crate) fn job_refs(&self) -> Vec<JobRef> {
        let mut jobs = Vec::new();
        let _none = self.find(|job| {
            // SAFETY: it lives during the call.
            jobs.push(unsafe { JobRef::new_for(job) });
            false
        });
        jobs
    }

    /// Notes on every outer job whether the running job, and so each of them, holds the thread in a wait.
    pub(crate) fn set_holds_in_wait(&self, holds: bool) {
        let mut next = self.0.get();
        // SAFETY: a node is in a frame that continues only after the nested run, whose end takes it out of the list.
        while let Some(node) = unsafe { next.as_ref() } {
            if let Some(job) = node.job.get() {
                // SAFETY: the thread is in the middle of its run, so it is alive.
                unsafe { job.header() }.set_holds_in_wait(holds);
            }
            next = node.outer.get();
        }
    }
}
