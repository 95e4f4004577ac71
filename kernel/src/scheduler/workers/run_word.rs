//! The run word: what a worker's owner runs, in one word that other threads may load.

use crate::job::{Header, JobPtr};

/// A value of the run word: which job, and in which run of the worker; zero if none runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunWord(pub(crate) usize);

impl RunWord {
    pub(crate) const NONE: RunWord = RunWord(0);
    const ADDRESS_BITS: u32 = 48;

    /// `job`, in the worker's run number `run`.
    pub(crate) fn new(job: JobPtr, run: u64) -> RunWord {
        let address = job.as_raw().as_ptr().expose_provenance();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low 16 bits tell runs apart"
        )]
        let run = (run as usize) << Self::ADDRESS_BITS;
        RunWord(address | run)
    }

    /// The same job, in another run.
    pub(crate) fn next(self) -> RunWord {
        RunWord(self.0.wrapping_add(1 << Self::ADDRESS_BITS))
    }

    /// The word of the same run from now on: a part of the run begins that the monitor times by itself. Neither the
    /// next run nor [`next`](Self::next) has this word.
    pub(crate) fn renewed(self) -> RunWord {
        RunWord(self.0 ^ (1 << (usize::BITS - 1)))
    }

    /// The job, if one runs.
    pub(crate) fn job(self) -> Option<JobPtr> {
        let address = self.0 & ((1 << Self::ADDRESS_BITS) - 1);
        let job = std::ptr::with_exposed_provenance_mut::<Header>(address);
        std::ptr::NonNull::new(job).map(JobPtr::from_raw)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{
        job::testing,
        scheduler::{
            stackful::pinned::PinnedQueue,
            workers::{config::Config, context, shared::Shared, worker::WorkerLoop},
        },
        timer::clock::ClockKind,
    };

    #[test]
    fn two_runs_of_one_job_have_different_words() {
        let config = Config {
            workers: 1,
            ..Config::new()
        };
        let (shared, mut handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        let handoff = handoffs.pop().unwrap();
        let pinned = PinnedQueue::new();
        let job = testing::runnable();
        context::with(|cx| {
            let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
            worker_loop.begin(&shared.workers[handoff.worker], handoff.lease);
            let [first, second] = [(); 2].map(|()| {
                worker_loop.set_running_job(&job).unwrap();
                worker_loop.worker().running()
            });
            worker_loop.worker().set_running_none();
            worker_loop.end();
            assert!([first, second].map(super::RunWord::job) == [Some(job.ptr()); 2]);
            // Otherwise the monitor would take a job that runs often for one that is stuck.
            assert!(first != second);
        });
        // It never ran.
        job.into_ptr();
    }
}
