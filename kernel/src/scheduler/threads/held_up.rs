//! The jobs that are held up: runnable, but pinned to an OS thread that another job holds.
//!
//! A started thread, a job in `wait()` and a local job run on one OS thread only. While another job blocks or computes
//! there, its worker goes to another thread, but these jobs stand still. The report about the holder names those that
//! are runnable by then. A report of their own names those that become runnable later, once for each holder.
//! [`Metrics`](crate::Metrics) counts them, and [`Waits`](crate::Waits) lists them.
//!
//! A job that holds its thread because it waits there is reported by the wait itself.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    report::{self, LateName, LateNames},
    scheduler::{
        stackful::pinned::PinnedQueue, threads::detached::Holder, workers::shared::Shared,
    },
};

/// The time between two looks of the monitor.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// How many jobs a report names at most.
const NAMED: usize = 3;

/// The jobs that one job holds up.
pub(crate) struct HeldUp {
    pub(crate) by: JobRef,
    /// Not empty.
    pub(crate) jobs: Vec<JobRef>,
}

/// All jobs that are held up now.
pub(crate) fn all(shared: &Shared) -> Vec<HeldUp> {
    let (queues, holders) = queues_and_holders(shared);
    let held_up = holders.into_iter().map(|holder| HeldUp {
        jobs: jobs_of(&queues, &holder),
        by: holder.job,
    });
    held_up.filter(|held_up| !held_up.jobs.is_empty()).collect()
}

/// How many jobs are held up now.
pub(crate) fn count(shared: &Shared) -> usize {
    let (queues, holders) = queues_and_holders(shared);
    holders.iter().map(|holder| len_of(&queues, holder)).sum()
}

/// The queues that are not empty, and the holders of their threads. Most detached threads have an empty queue.
fn queues_and_holders(shared: &Shared) -> (Queues, Vec<Holder>) {
    let queues = shared.pool.pinned_queues(|_, queue| queue.len() > 0);
    let holders = match queues.is_empty() {
        true => Vec::new(),
        false => shared
            .detached
            .holders(|number| queues.contains_key(&number)),
    };
    (queues, holders)
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

/// The jobs that `job`, whose thread was just detached, holds up, for its report; none if it holds up none yet.
pub(crate) fn take_names_for(shared: &Shared, job: &JobRef) -> LateNames {
    let (queues, holders) = queues_and_holders(shared);
    let holder = holders.iter().find(|holder| holder.job.ptr() == job.ptr());
    let jobs = holder.map_or_else(Vec::new, |holder| take_jobs(shared, &queues, holder));
    names(&jobs)
}

/// The jobs that `holder` holds up. If there are any, they are about to be reported.
fn take_jobs(shared: &Shared, queues: &Queues, holder: &Holder) -> Vec<JobRef> {
    let jobs = jobs_of(queues, holder);
    if !jobs.is_empty() {
        shared.detached.set_reported(holder.number);
    }
    jobs
}

fn names(jobs: &[JobRef]) -> LateNames {
    LateNames::of(jobs.iter().map(|job| LateName::of(job.header())), NAMED)
}

/// When the monitor last looked for jobs that are held up. A look goes through all threads, which may be many.
#[derive(Default)]
pub(super) struct LastLook {
    at: Option<Instant>,
    is_soon: bool,
}

impl LastLook {
    /// Calls [`report`], unless it was called a moment ago. Called by the monitor each round.
    pub(super) fn report_at_times(&mut self, shared: &Shared) -> bool {
        if self.at.is_none_or(|at| at.elapsed() >= BETWEEN_LOOKS) {
            self.is_soon = report(shared);
            self.at = Some(Instant::now());
        }
        self.is_soon
    }
}

/// Reports jobs that are held up. Returns whether some must be reported soon.
fn report(shared: &Shared) -> bool {
    let mut is_soon = false;
    let (queues, holders) = queues_and_holders(shared);
    for holder in holders.into_iter().filter(is_unreported) {
        let held = Instant::now().saturating_duration_since(holder.since);
        if held < shared.config.stuck_after {
            is_soon = true;
            continue;
        }
        let jobs = take_jobs(shared, &queues, &holder);
        if !jobs.is_empty() {
            report::holds_up(LateName::of(holder.job.header()), held, names(&jobs));
        }
    }
    is_soon
}

/// Whether the monitor must not sleep, because it must report something soon. If not, a job that is held up from now on
/// wakes the monitor.
pub(crate) fn must_watch(shared: &Shared) -> bool {
    let mut unreported = shared.detached.holders(|_| true);
    unreported.retain(is_unreported);
    if unreported.is_empty() {
        return false;
    }
    let is_held = |number| unreported.iter().any(|holder| holder.number == number);
    let queues = shared.pool.pinned_queues(|number, _| is_held(number));
    // Before the look: a job that comes later wakes the monitor.
    queues.values().for_each(|queue| queue.watch());
    queues.values().any(|queue| queue.len() > 0)
}

fn is_unreported(holder: &Holder) -> bool {
    !holder.is_reported && !holder.job.header().state.is_waiting()
}
