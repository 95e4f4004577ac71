//! The jobs that are held up: runnable, but pinned to an OS thread that another job holds.
//!
//! A started thread, a job in `wait()` and a local job run on one OS thread only. While another job blocks or computes
//! there, its worker goes to another thread, but these jobs stand still. Each is named: by the report about the job
//! that holds the thread, if they were runnable then, or else by a report of their own when they appear, once for each
//! holder; and in [`Metrics`](crate::Metrics) and [`Waits`](crate::Waits).
//!
//! A job that holds its thread because it waits there is reported by the wait itself.

use std::{collections::HashMap, sync::Arc, time::Instant};

use crate::{
    job::JobRef,
    report::{self, JobName},
    scheduler::{
        stackful::pinned::PinnedQueue, threads::detached::Holder, workers::shared::Shared,
    },
};

/// How many names a report has.
const NAMED: usize = 3;

/// The jobs that one job holds up.
pub(crate) struct HeldUp {
    pub(crate) by: JobRef,
    /// Not empty.
    pub(crate) jobs: Vec<JobRef>,
}

/// All jobs that are held up now.
pub(crate) fn all(shared: &Shared) -> Vec<HeldUp> {
    let queues = shared.pool.pinned_queues();
    let holders = shared.detached.holders().into_iter();
    let held_up = holders.map(|holder| HeldUp {
        jobs: jobs_of(&queues, &holder),
        by: holder.job,
    });
    held_up.filter(|held_up| !held_up.jobs.is_empty()).collect()
}

/// How many jobs are held up now.
pub(crate) fn count(shared: &Shared) -> usize {
    let holders = shared.detached.holders();
    if holders.is_empty() {
        return 0;
    }
    let queues = shared.pool.pinned_queues();
    holders.iter().map(|holder| len_of(&queues, holder)).sum()
}

/// The pinned queues of the threads, by the system's number of the thread.
type Queues = HashMap<u32, Arc<PinnedQueue>>;

fn jobs_of(queues: &Queues, holder: &Holder) -> Vec<JobRef> {
    let queue = queues.get(&holder.number);
    queue.map_or_else(Vec::new, |queue| queue.runnable_jobs())
}

fn len_of(queues: &Queues, holder: &Holder) -> usize {
    queues.get(&holder.number).map_or(0, |queue| queue.len())
}

/// A sentence about the jobs that `job`, whose thread was just detached, holds up, for its report; empty if it holds up
/// none yet.
pub(crate) fn sentence_for(shared: &Shared, job: &JobRef) -> String {
    let holders = shared.detached.holders();
    let holder = holders.iter().find(|holder| holder.job.ptr() == job.ptr());
    holder.map_or_else(String::new, |holder| {
        take_sentence(shared, &shared.pool.pinned_queues(), holder)
    })
}

fn take_sentence(shared: &Shared, queues: &Queues, holder: &Holder) -> String {
    let jobs = jobs_of(queues, holder);
    if jobs.is_empty() {
        return String::new();
    }
    shared.detached.set_reported(holder.number);
    let names: Vec<JobName> = jobs.iter().map(|job| JobName::of(job.header())).collect();
    let names = report::names(&names, NAMED);
    match jobs.len() {
        1 => format!(" 1 thread waits for it: {names}."),
        n => format!(" {n} threads wait for it: {names}."),
    }
}

/// Reports jobs that are held up, and closures that wait for a blocking thread. Returns whether some must be reported
/// soon. Called by the monitor each round.
pub(crate) fn report(shared: &Shared) -> bool {
    let mut is_soon = shared
        .blocking
        .report_if_full(shared.config.blocking_threads);
    let unreported: Vec<Holder> = unreported(shared).collect();
    if unreported.is_empty() {
        return is_soon;
    }
    let queues = shared.pool.pinned_queues();
    for holder in unreported {
        if let Some(queue) = queues.get(&holder.number) {
            // Before the look: a job that comes later wakes the monitor.
            queue.watch();
        }
        if len_of(&queues, &holder) == 0 {
            continue;
        }
        let held = Instant::now().saturating_duration_since(holder.since);
        if held < shared.config.stuck_after {
            is_soon = true;
            continue;
        }
        let sentence = take_sentence(shared, &queues, &holder);
        if !sentence.is_empty() {
            report::holds_up(&JobName::of(holder.job.header()), held, &sentence);
        }
    }
    is_soon
}

/// Whether the monitor must not sleep, because it must report something soon.
pub(crate) fn must_watch(shared: &Shared) -> bool {
    let unreported: Vec<Holder> = unreported(shared).collect();
    if shared.blocking.is_unreported() || unreported.is_empty() {
        return shared.blocking.is_unreported();
    }
    let queues = shared.pool.pinned_queues();
    unreported.iter().any(|holder| len_of(&queues, holder) > 0)
}

fn unreported(shared: &Shared) -> impl Iterator<Item = Holder> {
    let holders = shared.detached.holders().into_iter();
    holders.filter(|holder| !holder.is_reported && !holder.job.header().state.is_waiting())
}
