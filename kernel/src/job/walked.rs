//! Jobs that a walk through all jobs of the program has found, each with a reference.
//!
//! Such a reference may be the last one, since the job may end meanwhile. But the user values that the job has left
//! must not be dropped by a thread that only read it, and that may belong to another runtime. They are dropped in
//! a job of their own ([`let_go`](crate::job::foreign_call::let_go)).

#![allow(unsafe_code)]

use std::{mem, ops::Deref};

use crate::{
    job::{JobRef, foreign_call},
    memory::JobWalk,
    report,
};

/// See the head of this file.
#[derive(Clone, Default)]
pub(crate) struct WalkedJobs(Vec<JobRef>);

impl WalkedJobs {
    pub(crate) fn new(jobs: Vec<JobRef>) -> WalkedJobs {
        WalkedJobs(jobs)
    }

    /// Lets go of those that `is_wanted` does not select.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&JobRef) -> bool) {
        let jobs = mem::take(&mut self.0).into_iter();
        let (wanted, others) = jobs.partition(is_wanted);
        self.0 = wanted;
        drop(WalkedJobs(others));
    }

    pub(crate) fn sort_by_cached_key<K: Ord>(&mut self, key: impl FnMut(&JobRef) -> K) {
        self.0.sort_by_cached_key(key);
    }
}

impl Deref for WalkedJobs {
    type Target = [JobRef];

    fn deref(&self) -> &[JobRef] {
        &self.0
    }
}

impl Drop for WalkedJobs {
    fn drop(&mut self) {
        self.0.drain(..).for_each(foreign_call::let_go);
    }
}

/// The jobs of these runtimes that are not done and that `is_wanted` selects, in the order of their addresses. Lets go
/// of the others after some hundred at a time: a thread that waits for a core in here would keep the memory of all jobs
/// that end meanwhile. Jobs that come or go meanwhile may be missed.
pub(crate) fn jobs_of(runtimes: &[u16], is_wanted: impl Fn(&JobRef) -> bool) -> WalkedJobs {
    let (mut walk, mut seen, mut wanted) = (JobWalk::default(), Vec::new(), Vec::new());
    let mut is_going_on = true;
    while is_going_on {
        is_going_on = walk.step(&mut seen, |block| {
            let mut runtimes = runtimes.iter();
            // SAFETY: job blocks stay mapped.
            runtimes.find_map(|runtime| unsafe { JobRef::from_block_of(block, *runtime) })
        });
        let live = seen.drain(..).filter(|job: &JobRef| {
            runtimes.contains(&job.header().runtime()) && !job.header().state.is_done()
        });
        // The last reference to another may go here, and its drop runs user code.
        report::without_user_code(|| wanted.extend(live.filter(&is_wanted)));
    }
    let address = |job: &JobRef| job.ptr().as_raw().addr();
    wanted.sort_unstable_by_key(address);
    // The walk may have come to one twice.
    wanted.dedup_by_key(|job| address(job));
    WalkedJobs::new(wanted)
}
