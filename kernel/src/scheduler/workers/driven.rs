//! The worker of a test runtime, which the calling thread drives one job at a time.

use crate::scheduler::workers::{
    worker::{RunEnd, WorkerLoop},
    worker_core::Pick,
};
use crate::{biased_lock::Revoked, job::runnable::Runnable, report, scheduler::workers::search};

/// Runs one job of a runtime that the calling thread drives, if one is runnable; `chance` draws which. Returns
/// whether one ran.
pub(crate) fn step(worker_loop: &WorkerLoop<'_>, mut chance: impl FnMut(usize) -> usize) -> bool {
    let found = match search::look(worker_loop) {
        Ok(Some(job)) => worker_loop.set_running_job(&job).map(|()| Some(job)),
        Ok(None) => worker_loop.take_next_by_chance(&mut chance),
        Err(_) => Ok(None),
    };
    // Steals come last: the job that a fork's owner waits for may be reached without one.
    let found = match found {
        Ok(None) => worker_loop
            .shared
            .forks
            .steal_for_driver(worker_loop.shared)
            .map(|stolen| worker_loop.set_running_job(&stolen).map(|()| stolen))
            .transpose(),
        found => found,
    };
    match found {
        Ok(Some(job)) => worker_loop.run_from(job).is_ok(),
        Ok(None) => false,
        Err(Revoked) => report::impossible("a test runtime's worker was retaken"),
    }
}

impl WorkerLoop<'_> {
    /// [`take_next`](WorkerLoop::take_next) in an order that `chance` draws.
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
