//! A runner of a scope: a job that runs the scope's parts, one after the other.

use std::{mem, sync::Arc};

use crate::{
    fork::{
        fork_deque::Ancestry,
        fork_deques::{self, relief::Relief},
        root_fork::{Origin, RootFork},
        scope::{ScopeParts, Taken},
    },
    report,
    scheduler::workers::{context, shared::Shared},
    sys::lock,
};

/// A job that runs parts until there are none, or until enough other runners are at work.
pub(super) struct PartRunner {
    pub(super) parts: Arc<ScopeParts>,
    /// Whether the scope's count of runners includes it.
    pub(super) counted: bool,
    /// Ends when the runner begins.
    pub(super) relief: Option<Relief>,
}

impl PartRunner {
    pub(super) fn run(mut self) {
        let mut relieves = self.relief.take().is_some();
        while let Some(taken) = self.take(mem::take(&mut relieves)) {
            // The part's root fork ends before the part's end is counted, because the root job waits only until then.
            let is_cancelled = self.run_in_root_fork(taken);
            self.parts.count_end();
            if is_cancelled {
                return;
            }
        }
    }

    /// The next part. If there is none, the runner is no longer counted, so that the next part gets a new runner.
    /// `relieves`: those that count as working wait for a thread.
    fn take(&mut self, relieves: bool) -> Option<Taken> {
        // Others may have taken its place while its last part waited.
        let most = context::here().shared()?.workers.len();
        let mut inner = lock(&self.parts.inner);
        let taken = match inner.working() > most && !relieves {
            true => None,
            false => inner.take(),
        };
        if taken.is_none() {
            self.counted = false;
            inner.runners -= 1;
        }
        taken
    }

    /// The ancestry of a part.
    fn ancestry(&self, shared: &Shared) -> Ancestry {
        let inherited = self.parts.of_owner.iter().flat_map(|steals| steals.iter());
        let own = [self.parts.number, fork_deques::of(shared).number()];
        inherited.copied().chain(own).collect()
    }

    /// Runs a part as a fork of the scope's owner. Returns whether the runner is cancelled.
    fn run_in_root_fork(&self, taken: Taken) -> bool {
        let here = context::here();
        let (Some(shared), Some(job)) = (here.shared(), here.job_ref()) else {
            report::impossible("a runner is no job");
        };
        let origin = Origin {
            root: self.parts.root,
            ancestry: self.ancestry(shared),
        };
        lock(&self.parts.inner).at_work.push(job.clone());
        let root_fork = RootFork::enter(here, shared, self.parts.site, Some(origin));
        root_fork.fork_deque.begin_part(self.parts.clone());
        self.parts.run(taken);
        root_fork.fork_deque.end_part();
        lock(&self.parts.inner)
            .at_work
            .retain(|other| other.ptr() != job.ptr());
        job.header().state.is_cancelled()
    }
}

impl Drop for PartRunner {
    fn drop(&mut self) {
        if self.counted {
            lock(&self.parts.inner).runners -= 1;
        }
    }
}
