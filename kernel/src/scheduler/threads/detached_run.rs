//! The run of a detached thread, as data: what runs, why the thread is [detached](super::detached), and what was
//! reported.

use std::time::{Duration, Instant};

use crate::{
    job::{JobPtr, JobRef, SeenHook},
    scheduler::threads::{priority::CpuShare, senders::Sends},
};

/// The run of a job on a detached thread.
pub(crate) struct DetachedRun {
    pub(crate) job: JobRef,
    pub(crate) activity: Activity,
    pub(crate) cause: Cause,
    /// When it began, as far as is known.
    pub(crate) since: Instant,
    pub(crate) sends: Sends,
    /// What ran when the thread was detached. If the run did not exceed the bound then: at the last check.
    pub(crate) code: RunningCode,
}

/// Which run of the list is meant.
#[derive(Clone, Copy)]
pub(crate) enum ListedRun {
    /// That of the thread of the pool with this number.
    OfThread(u32),
    /// That of this job on the thread in `block_on` with this number. Such a thread may have a second one: what a job
    /// leaves may call `block_on`, which runs local jobs.
    OfVisit(u32, JobPtr),
}

/// Which code of a job runs. A run that exceeds the bound is an offence of the job only if the job's own code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunningCode {
    Own,
    /// The panic hook, for a panic of the job. It may take long to print a backtrace.
    PanicHook,
}

impl RunningCode {
    /// What runs in `job` at this moment. To be asked while the run lasts: when a poll has ended, so has the hook.
    pub(crate) fn of(job: &JobRef) -> RunningCode {
        match job.header().is_in_panic_hook() {
            true => RunningCode::PanicHook,
            false => RunningCode::Own,
        }
    }

    /// As [`of`](Self::of), at a check of the monitor, which knows the hook at its next check.
    pub(crate) fn see(job: &JobRef) -> RunningCode {
        match job.header().see_panic_hook() {
            SeenHook::New | SeenHook::Again => RunningCode::PanicHook,
            SeenHook::None => RunningCode::Own,
        }
    }
}

/// Why a thread is detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The job announced that it blocks, or that it holds the thread in a wait: it is not reported.
    Announced,
    /// Its worker was retaken.
    Retaken,
    /// It runs a job of the quarantine.
    Quarantined,
    /// The job had announced that it blocks, and goes on since.
    Continued,
    /// It is pinned to a thread in `block_on`, which owns no worker.
    Visits,
}

/// What a detached thread does, according to the system when it was detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Block,
    /// It is in a fork, and keeps its priority. No more roots of forks than cores do.
    Fork,
    Compute,
    /// It computes and sends: it keeps its priority, with short slices.
    Send,
    /// It computes, at a lower priority.
    ComputeLowered(CpuShare),
}

/// A job that exceeds the bound on a detached thread.
pub(crate) struct Overdue {
    pub(crate) job: JobRef,
    /// How long it has held its thread.
    pub(crate) held: Duration,
    pub(crate) cause: Cause,
    /// What ran when it was first seen to exceed the bound.
    pub(crate) code: RunningCode,
    /// Whether it is an offence even if the job is in a fork.
    pub(crate) counts_in_fork: bool,
    /// How long ago it was asked to end, at least, if it was and has not come to a wait since.
    pub(crate) killed: Option<Duration>,
}

/// A job that was asked to end, and has not ended.
pub(crate) struct PendingKill {
    pub(crate) job: JobRef,
    /// How long ago it was asked, at least. If it has come to a wait since: how long it has been ending.
    pub(crate) pending: Duration,
    /// Whether it has come to a wait since, so that it is being ended, and a destructor holds the thread.
    pub(crate) has_come: bool,
}

/// A panic hook that was reported when it exceeded the bound, and still runs.
pub(crate) struct LongHook {
    /// The job whose panic it runs for.
    pub(crate) job: JobRef,
    /// How long ago it was reported.
    pub(crate) held: Duration,
}

/// What one check of the detached threads has found.
pub(crate) struct Round {
    /// How long a run may take.
    pub(super) bound: Duration,
    /// Threads in quarantine.
    pub(crate) quarantined: usize,
    /// Those of them that run and have not exceeded the bound, or that wait for a core.
    pub(crate) busy: usize,
    /// Jobs in quarantine whose own code has reached half the bound since the last check.
    pub(crate) long: Vec<JobRef>,
    /// The jobs to be reported.
    pub(crate) overdue: Vec<Overdue>,
    /// The panic hooks that no longer look like one that prints a backtrace.
    pub(crate) long_hooks: Vec<LongHook>,
    /// Those that were reported before they were asked to end, and have not ended within the bound.
    pub(crate) unended: Vec<PendingKill>,
}

impl Round {
    pub(super) fn new(bound: Duration) -> Round {
        Round {
            bound,
            quarantined: 0,
            busy: 0,
            long: Vec::new(),
            overdue: Vec::new(),
            long_hooks: Vec::new(),
            unended: Vec::new(),
        }
    }
}
