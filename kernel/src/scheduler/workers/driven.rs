//! A worker that the calling thread drives, one job at a time: that of a test runtime.

use crate::scheduler::workers::{
    worker::{Ended, Tenure},
    worker_core::Next,
};
use crate::{biased_lock::Lost, job::runnable::Runnable, report, scheduler::workers::search};

/// Runs one job of a runtime that the calling thread drives, if one is at hand; which, is drawn by
/// `chance`.
pub(crate) fn step(tenure: &Tenure<'_>, mut chance: impl FnMut(usize) -> usize) -> bool {
    let found = match search::look(tenure) {
        Ok(Some(job)) => tenure.announce(&job).map(|()| Some(job)),
        Ok(None) => tenure.pass_by_chance(&mut chance),
        Err(_) => Ok(None),
    };
    // A half last: what its owner waits for may come without it.
    let found = match found {
        Ok(None) => tenure
            .shared
            .forks
            .steal_for_driver(tenure.shared)
            .map(|half| tenure.announce(&half).map(|()| half))
            .transpose(),
        found => found,
    };
    match found {
        Ok(Some(job)) => tenure.run_from(job).is_ok(),
        Ok(None) => false,
        Err(Lost) => report::impossible("a test runtime's right was taken over"),
    }
}

impl Tenure<'_> {
    /// A passage in a test runtime.
    fn pass_by_chance(
        &self,
        chance: &mut impl FnMut(usize) -> usize,
    ) -> Result<Option<Runnable>, Lost> {
        self.enter()?.shuffle(chance);
        match self.pass(Ended::No)? {
            Next::Job(job) => Ok(Some(job)),
            Next::Look | Next::Empty | Next::Callbacks => Ok(None),
        }
    }
}
