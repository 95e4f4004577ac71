//! The jobs that are held up: runnable, but pinned to an OS thread that another job holds.
//!
//! A started thread, a job in `wait()` and a local job run on one OS thread only. While another job blocks or computes
//! there, its worker goes to another thread, but these jobs stand still. The report about the holder names those that
//! are runnable by then. A report of their own names those that become runnable later, once for each holder; also those
//! of a holder about whom there is no report, because it is in a fork or waits for a core.
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
/// After how many times `stuck_after` there will be no report about the holder itself. Each round looks for one, and
/// rounds are much shorter.
const EXCUSED_AFTER: u32 = 4;

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
        jobs: jobs_of(&queues, &holder, usize::MAX),
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

/// At most `most` of the jobs that `holder` holds up.
fn jobs_of(queues: &Queues, holder: &Holder, most: usize) -> Vec<JobRef> {
    let queue = queues.get(&holder.number);
    queue.map_or_else(Vec::new, |queue| queue.runnable_jobs(most))
}

fn len_of(queues: &Queues, holder: &Holder) -> usize {
    queues.get(&holder.number).map_or(0, |queue| queue.len())
}

/// The jobs that `job`, whose thread was just detached, holds up, for its report; none if it holds up none yet.
pub(crate) fn take_names_for(shared: &Shared, job: &JobRef) -> LateNames {
    let (queues, holders) = queues_and_holders(shared);
    let holder = holders.iter().find(|holder| holder.job.ptr() == job.ptr());
    holder.map_or_else(LateNames::none, |holder| {
        take_names(shared, &queues, holder)
    })
}

/// The names of the jobs that `holder` holds up. If there are any, they are about to be reported. The monitor calls
/// this, so only the jobs that are named are looked at: there may be a hundred thousand.
fn take_names(shared: &Shared, queues: &Queues, holder: &Holder) -> LateNames {
    let jobs = jobs_of(queues, holder, NAMED);
    if !jobs.is_empty() {
        shared.detached.set_held_up_reported(holder.number);
    }
    let all = match jobs.len() {
        NAMED => len_of(queues, holder),
        fewer => fewer,
    };
    let first = jobs.iter().map(|job| LateName::of(job.header()));
    LateNames::of_first(first.collect(), all)
}

/// When the monitor last looked for jobs that are held up. A look goes through all threads, which may be many.
#[derive(Default)]
pub(super) struct LastLook {
    at: Option<Instant>,
    is_soon: bool,
}

impl LastLook {
    /// Calls [`report()`], unless it was called a moment ago. Called by the monitor each round.
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
        if !is_due(&holder, held, shared.config.stuck_after) {
            is_soon = true;
            continue;
        }
        let names = take_names(shared, &queues, &holder);
        if names.all() > 0 {
            report::holds_up(LateName::of(holder.job.header()), held, names);
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

/// Whether the jobs that are held up get a report of their own, which the one about their holder would otherwise name.
fn is_due(holder: &Holder, held: Duration, stuck_after: Duration) -> bool {
    match holder.is_reported {
        true => held >= stuck_after,
        false => held >= EXCUSED_AFTER * stuck_after,
    }
}

fn is_unreported(holder: &Holder) -> bool {
    !holder.held_up_reported && !holder.job.header().state.is_waiting()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::testing;

    #[test]
    fn jobs_that_are_held_up_have_no_report_of_their_own_before_that_about_their_holder() {
        let bound = Duration::from_millis(10);
        let is_due = |is_reported, held| {
            let holder = Holder {
                number: 1,
                job: testing::job(),
                since: Instant::now(),
                is_reported,
                held_up_reported: false,
            };
            super::is_due(&holder, held, bound)
        };
        assert!(is_due(true, bound) && !is_due(true, bound / 2));
        assert!(!is_due(false, bound) && is_due(false, 4 * bound));
    }
}
