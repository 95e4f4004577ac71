//! A plain nested run: one that saves only what the thread's context has in the run of any job.

use weald_sync::unit::{self, Unit};

use crate::{
    job::JobPtr,
    scheduler::workers::context::{Context, OuterRun, PollNotes},
};

/// A nested run that its caller ends in every case: what it runs does not unwind.
#[must_use]
pub(crate) struct PlainNestedRun<'a> {
    node: &'a OuterRun,
    job: JobPtr,
    budget: u32,
    noted: PollNotes,
}

impl Context {
    /// Whether nothing is noted that a [plain nested run](Context::begin_plain_nested) would have to keep from the job
    /// that it runs. Such a job leaves nothing of the kind: each of these is noted for as long as some frame lasts, and
    /// taken off while that frame's stack is suspended.
    #[inline(always)]
    pub(crate) fn has_no_notes(&self) -> bool {
        !self.is_ending() && self.is_in_no_scope() && self.wanted_until.get().is_none()
    }

    /// Those of [`has_no_notes`](Context::has_no_notes) that are no obstacle beside the unit.
    #[inline(always)]
    pub(crate) fn is_in_no_scope(&self) -> bool {
        !self.dropping.get() && self.thread_fork.get().is_none()
    }

    /// As [`begin_nested`](Context::begin_nested), in the run of `job`, where there are [no
    /// notes](Context::has_no_notes).
    #[inline(always)]
    pub(crate) fn begin_plain_nested<'a>(
        &self,
        node: &'a OuterRun,
        job: JobPtr,
    ) -> PlainNestedRun<'a> {
        self.outer_runs.push(node, Some(job));
        PlainNestedRun {
            node,
            job,
            budget: unit::with(Unit::budget),
            noted: self.noted(),
        }
    }

    /// The outer run continues.
    #[inline(always)]
    pub(crate) fn end_plain_nested(&self, nested: PlainNestedRun<'_>) {
        self.outer_runs.pop(nested.node);
        self.begin_run(nested.job, nested.budget);
        self.set_noted(nested.noted);
    }
}
