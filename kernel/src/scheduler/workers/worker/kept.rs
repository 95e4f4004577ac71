//! What a worker's loop does with a job that must not run on a worker: it puts the job into quarantine.

use crate::{
    biased_lock::Revoked,
    job::runnable::Runnable,
    scheduler::workers::{
        worker::{RunEnd, WorkerLoop},
        worker_core::Pick,
    },
};

impl WorkerLoop<'_> {
    /// Whether `job` must not run on a worker at present.
    #[cold]
    pub(super) fn is_kept(&self, job: &Runnable) -> bool {
        self.suspects.includes(job.header(), &self.shared.suspects)
    }

    /// Puts `job` into quarantine, and takes the next one, which the run word names before others can take `job`.
    #[cold]
    pub(super) fn quarantine(&self, job: Runnable) -> Result<Pick, Revoked> {
        self.cx.set_job(None);
        let next = self.take_next(RunEnd::No);
        if next.is_err() {
            self.cx.clear_worker();
        }
        self.shared.quarantine.push(job, &self.shared.suspects);
        next
    }
}
