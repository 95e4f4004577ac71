//! Which of the jobs that a shutdown has not ended hold a thread. The others are only very many, or wait behind a job
//! that holds the thread which ends them: the shutdown counts them, and names none.

use std::collections::HashSet;

use crate::{
    job::{JobRef, walked::WalkedJobs},
    scheduler::{threads::monitor, workers::shared::Shared},
};

/// The jobs that hold a thread of a runtime at a moment.
pub(super) struct Holders<'a> {
    shared: &'a Shared,
    /// Those that run on threads of the pool, or on one in `block_on` for long.
    running: WalkedJobs,
    addresses: HashSet<usize>,
}

impl Holders<'_> {
    pub(super) fn of(shared: &Shared) -> Holders<'_> {
        let mut running = shared.detached.jobs();
        // Without a monitor, or without a spare thread, one that holds a worker was not detached.
        running.extend(monitor::jobs_on_workers(shared));
        let addresses = running.iter().map(address).collect();
        Holders {
            shared,
            running: WalkedJobs::new(running),
            addresses,
        }
    }

    /// Whether `job`, which has not ended, holds a thread, or can run only on a thread that another job holds. The
    /// latter has run there before.
    pub(super) fn contain(&self, job: &JobRef) -> bool {
        // The thread may run a part of its fork, on top of it.
        let forks = || job.header().is_part() || self.shared.forks.is_forking(job);
        self.has(job) || is_being_ended(job) || forks()
    }

    /// Whether `job` has not ended and only its end holds a thread, which may belong to no pool, such as the
    /// shutdown's.
    pub(super) fn contain_ending(&self, job: &JobRef) -> bool {
        !job.header().state.is_done() && !self.has(job) && is_being_ended(job)
    }

    fn has(&self, job: &JobRef) -> bool {
        !job.header().runs_anywhere() || self.addresses.contains(&address(job))
    }

    /// The jobs whose future is gone, and that hold a thread all the same: in an exit hook, or in the destructor of the
    /// output.
    pub(super) fn into_ending(mut self, is_own: impl Fn(&JobRef) -> bool) -> WalkedJobs {
        self.running
            .retain(|job| job.header().state.is_done() && !is_own(job));
        self.running
    }
}

fn is_being_ended(job: &JobRef) -> bool {
    job.header().is_being_ended() || job.header().waits_to_the_end()
}

fn address(job: &JobRef) -> usize {
    job.ptr().as_raw().as_ptr().addr()
}
