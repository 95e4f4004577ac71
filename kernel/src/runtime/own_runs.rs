//! The jobs that cannot end because their thread shuts the runtime down. The shutdown waits for none of them, nor for
//! their threads, and does not name them. They are the jobs that run on that thread, the job whose closure of
//! [`blocking`](crate::blocking()) it runs, and those whose forks wait for the part of a fork that it runs.

use std::{collections::HashSet, sync::Arc};

use crate::{
    job::{JobPtr, JobRef},
    scheduler::{
        services::{HeldForker, ThreadFork},
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
    /// The jobs of the runtime whose forks wait for this thread, and that are not on it.
    forking: Vec<HeldForker>,
    is_in_pool: bool,
}

/// Whether the calling thread is in the middle of a run of `job`.
fn is_running_here(job: JobPtr) -> bool {
    let cx = context::here();
    cx.job() == Some(job) || cx.outer_runs.contains(job)
}

impl OwnRuns {
    pub(super) fn here(shared: &Shared) -> OwnRuns {
        let served = blocking_call::running_here();
        let fork = context::here().thread_fork();
        let mut forking = fork.map(ThreadFork::waiting_jobs).unwrap_or_default();
        forking.retain(|HeldForker { job, .. }| {
            job.header().runtime() == shared.id() && !is_running_here(job.ptr())
        });
        OwnRuns {
            served: served.filter(|call| call.runtime() == shared.id()),
            forking,
            is_in_pool: is_in_pool_of(shared.id()),
        }
    }

    /// Notes on these jobs that they end only after the shutdown: a scope does not wait for them.
    pub(super) fn note(&self, shared: &Shared) {
        let cx = context::here();
        let running = cx.job_ref().into_iter().chain(cx.outer_runs.job_refs());
        let forking = self.forking.iter().map(|waiting| waiting.job.clone());
        let jobs = running.chain(forking).chain(self.caller().cloned());
        for job in jobs.filter(|job| job.header().runtime() == shared.id()) {
            job.header().extensions.lock().shuts_down = true;
        }
    }

    pub(super) fn contain(&self, job: &JobRef) -> bool {
        let caller = self.caller().map(JobRef::ptr);
        let mut forking = self.forking.iter().map(|waiting| waiting.job.ptr());
        is_running_here(job.ptr())
            || caller == Some(job.ptr())
            || forking.any(|forking| forking == job.ptr())
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
        ];
        let held: usize = held.into_iter().map(usize::from).sum();
        let forking = self.forking.iter().map(|waiting| waiting.thread);
        held + forking.collect::<HashSet<_>>().len()
    }
}
