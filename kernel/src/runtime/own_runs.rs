//! The jobs that cannot end because their thread shuts the runtime down: those that run on it, the job whose closure of
//! [`blocking`](crate::blocking()) it runs, and the job that opened the fork whose part it runs. The shutdown waits for
//! none of them, nor for their threads, and does not name them.
//!
//! Where a part of a fork has forked again, and that part was stolen too, the jobs between it and the root of the fork
//! are not known. A shutdown in there waits for them until its deadline.

#![allow(unsafe_code)]

use std::sync::Arc;

use crate::{
    job::{JobPtr, JobRef},
    scheduler::{
        services::ThreadFork,
        threads::{
            blocking_call::{self, BlockingCall, Caller},
            pool::is_in_pool_of,
        },
        workers::{context, shared::Shared},
    },
};

/// See the head of the file. For the thread that made it.
pub(super) struct OwnRuns {
    /// The closure that the thread runs, if it belongs to the runtime.
    served: Option<Arc<BlockingCall>>,
    /// The root of the fork that the thread is in, if that is a job of the runtime that is not on this thread.
    root: Option<JobPtr>,
    is_in_pool: bool,
}

/// Whether the calling thread is in the middle of a run of `job`.
fn is_running_here(job: JobPtr) -> bool {
    let cx = context::here();
    cx.job() == Some(job) || cx.outer_runs.contains(job)
}

impl OwnRuns {
    pub(super) fn here(shared: &Shared) -> OwnRuns {
        let served = blocking_call::served_here();
        let root = context::here().thread_fork().and_then(ThreadFork::root_job);
        // SAFETY: the root of a fork waits for its parts.
        let is_of_runtime = |job: JobPtr| unsafe { job.header() }.runtime() == shared.id();
        OwnRuns {
            served: served.filter(|call| call.runtime() == shared.id()),
            root: root.filter(|job| is_of_runtime(*job) && !is_running_here(*job)),
            is_in_pool: is_in_pool_of(shared.id()),
        }
    }

    pub(super) fn contain(&self, job: &JobRef) -> bool {
        let caller = self.caller().map(JobRef::ptr);
        let jobs = [caller, self.root];
        is_running_here(job.ptr()) || jobs.contains(&Some(job.ptr()))
    }

    /// The job that waits for the closure.
    fn caller(&self) -> Option<&JobRef> {
        match self.served.as_ref()?.caller() {
            Caller::Job(job) => Some(job),
            Caller::Future { .. } | Caller::Operation(_) => None,
        }
    }

    /// How many closures of the runtime they are.
    pub(super) fn closures(&self) -> usize {
        usize::from(self.served.is_some())
    }

    /// How many threads of the runtime do not end before the caller returns.
    pub(super) fn threads(&self) -> usize {
        let held = [
            self.is_in_pool,
            self.served.is_some(),
            self.caller().is_some(),
            self.root.is_some(),
        ];
        held.into_iter().map(usize::from).sum()
    }
}
