//! The budget in a thread's context: how many operations the running job may still complete before it yields.

#![allow(unsafe_code)]

use std::task::Waker;

use weald_sync::unit::{self, Unit};

use crate::{
    job::JobPtr,
    scheduler::workers::context::{Context, PollNotes},
};

impl Context {
    /// Spends one reduction, for a completed operation. False if the budget is used up.
    #[inline(always)]
    pub(crate) fn spend_if_any(&self) -> bool {
        unit::with(Unit::spend_if_any)
    }

    /// Spends one reduction, for an operation that is awaited with `waker`. False if the budget of this poll is used
    /// up: the operation must then not complete, and it will be polled again.
    #[inline(always)]
    pub(crate) fn spend(&self, waker: &Waker) -> bool {
        if self.spend_if_any() {
            return true;
        }
        if self.job.get().is_none() {
            return true;
        }
        self.yield_run(waker);
        false
    }

    /// The budget of a run that begins by a direct switch ([`crate::scheduler::stackful::direct`]). None if fibers must
    /// switch to the loop: what polls them is no loop that takes one job after the other.
    #[inline(always)]
    pub(crate) fn direct_budget(&self) -> Option<u32> {
        let budget = self.direct_budget.get();
        (budget != 0 && self.outer_runs.is_empty()).then_some(budget)
    }

    /// Sets the budget of a run that begins by a direct switch, or zero; returns what was set before.
    pub(crate) fn set_direct_budget(&self, budget: u32) -> u32 {
        self.direct_budget.replace(budget)
    }

    /// Gives the running job a fresh budget, because its thread waits in the middle of a poll.
    pub(crate) fn refill(&self, budget: u32) {
        unit::with(|unit| unit.refill(budget));
    }

    /// As [`begin_run`](Context::begin_run), where that is itself an operation by which the coarseness of the work is
    /// measured. Returns the number of operations.
    #[inline(always)]
    pub(crate) fn begin_counted_run(&self, job: JobPtr, budget: u32) -> u32 {
        self.job.set(Some(job));
        unit::with(|unit| {
            // SAFETY: as in `begin_run`.
            unsafe { unit.set_notes(PollNotes::NOTHING.to_bits()) };
            // SAFETY: as in `begin_run`.
            unsafe { unit.begin_counted(job.as_raw().as_ptr().expose_provenance(), budget) }
        })
    }
}
