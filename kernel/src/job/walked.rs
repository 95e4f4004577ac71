//! Jobs that a walk through all jobs of the program has found, each with a reference.
//!
//! Such a reference may be the last one, since the job may end meanwhile. But the user values that the job has left
//! must not be dropped by a thread that only read it, and that may belong to another runtime. They are dropped in
//! a job of their own ([`let_go`](crate::job::foreign_call::let_go)).

use std::{mem, ops::Deref};

use crate::job::{JobRef, foreign_call};

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
