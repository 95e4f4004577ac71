//! The budget in a thread's context: how many operations the running job may still complete before it yields.

use std::task::Waker;

use weald_sync::unit::{self, Unit};

use crate::scheduler::workers::context::Context;

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

    /// Gives the running job a fresh budget, because its thread waits in the middle of a poll.
    pub(crate) fn refill(&self, budget: u32) {
        unit::with(|unit| unit.begin(unit.id(), budget));
    }
}
