//! A worker that the calling thread drives, one job at a time: that of a test runtime.

use crate::scheduler::workers::{
    worker::{RunEnd, WorkerLoop},
    worker_core::Pick,
};
use crate::{biased_lock::Revoked, job::runnable::Runnable, report, scheduler::workers::search};

/// Runs one job of a runtime that the calling thread drives, if one is at hand; which, is drawn by
/// `chance`.
pub(crate) fn step(worker_loop: &WorkerLoop<'_>, mut chance: impl FnMut(usize) -> usize) -> bool {
    let found = match search::look(worker_loop) {
        Ok(Some(job)) => worker_loop.announce(&job).map(|()| Some(job)),
        Ok(None) => worker_loop.take_next_by_chance(&mut chance),
        Err(_) => Ok(None),
    };
    // A half last: what its owner waits for may come without it.
    let found = match found {
        Ok(None) => worker_loop
            .shared
            .forks
            .steal_for_driver(worker_loop.shared)
            .map(|half| worker_loop.announce(&half).map(|()| half))
            .transpose(),
        found => found,
    };
    match found {
        Ok(Some(job)) => worker_loop.run_from(job).is_ok(),
        Ok(None) => false,
        Err(Revoked) => report::impossible("a test runtime's right was taken over"),
    }
}

impl WorkerLoop<'_> {
    /// A passage in a test runtime.
    fn take_next_by_chance(
        &self,
        chance: &mut impl FnMut(usize) -> usize,
    ) -> Result<Option<Runnable>, Revoked> {
        self.enter()?.shuffle(chance);
        match self.take_next(RunEnd::No)? {
            Pick::Job(job) => Ok(Some(job)),
            Pick::Look | Pick::Empty | Pick::Callbacks => Ok(None),
        }
    }
}
