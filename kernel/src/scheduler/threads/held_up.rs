//! The jobs that are held up: runnable, but pinned to an OS thread that another job holds, or the future of `block_on`.
//!
//! A started thread, a job in `wait()` and a local job run on one OS thread only. While another job blocks or computes
//! there, its worker goes to another thread, but these jobs stand still. So do those of a thread in `block_on` while
//! the future of `block_on` blocks or computes ([`visits`]). The report about the holder names those that
//! are runnable by then. A report of their own names those that become runnable later, once for each holder; also those
//! of a holder about whom there is no report, because it is in a fork, waits for a core, or is a future of `block_on`.
//! [`Metrics`](crate::Metrics) counts them, and [`Waits`](crate::Waits) lists them.
//!
//! A job that holds its thread because it waits there is reported by the wait itself.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    report::{self, LateName, LateNames},
    scheduler::{
        stackful::{pinned::PinnedQueue, visit_run::main_poll::MainFuture},
        threads::visits::{self, LongPoll},
        workers::shared::Shared,
    },
};

/// The time between two checks of the monitor.
const BETWEEN_CHECKS: Duration = Duration::from_millis(5);
/// How many jobs a report names at most.
const NAMED: usize = 3;
/// After how many times `stuck_after` there will be no report about the holder itself. Each round looks for one, and
/// rounds are much shorter.
const EXCUSED_AFTER: u32 = 4;

/// The jobs that are held up by one and the same.
pub(crate) struct HeldUp {
    pub(crate) by: LateName,
    /// Not empty.
    pub(crate) jobs: Vec<JobRef>,
}

/// What holds a thread.
enum HeldBy {
    Job(JobRef),
    /// A thread in `block_on` polls its future.
    Poll(LongPoll),
}

/// A thread that is held, and to which runnable jobs are pinned; and what holds it.
struct Held {
    by: HeldBy,
    number: u32,
    queue: Arc<PinnedQueue>,
    since: Instant,
    /// Whether the holder was reported, or need not be at present.
    is_reported: bool,
    /// Whether a report has named the jobs that it holds up.
    held_up_reported: bool,
}

impl Held {
    fn name(&self) -> LateName {
        match &self.by {
            HeldBy::Job(job) => LateName::of(job.header()),
            HeldBy::Poll(LongPoll { future, .. }) => future.name(),
        }
    }
}

impl MainFuture {
    fn name(&self) -> LateName {
        LateName::of_main_future(self.site, self.type_name)
    }
}

/// All jobs that are held up now.
pub(crate) fn all(shared: &Shared) -> Vec<HeldUp> {
    let held_up = holders(shared).into_iter().map(|holder| HeldUp {
        jobs: holder.queue.runnable_jobs(usize::MAX),
        by: holder.name(),
    });
    held_up.filter(|held_up| !held_up.jobs.is_empty()).collect()
}

/// How many jobs are held up now.
pub(crate) fn count(shared: &Shared) -> usize {
    holders(shared)
        .iter()
        .map(|holder| holder.queue.len())
        .sum()
}

/// The holders of threads whose queues are not empty. Most detached threads have an empty queue.
fn holders(shared: &Shared) -> Vec<Held> {
    let queues = shared.pool.pinned_queues(|_, queue| queue.len() > 0);
    if queues.is_empty() {
        return Vec::new();
    }
    let detached = shared
        .detached
        .holders(|number| queues.contains_key(&number));
    let jobs = detached.into_iter().filter_map(|holder| {
        Some(Held {
            by: HeldBy::Job(holder.job),
            number: holder.number,
            queue: queues.get(&holder.number)?.clone(),
            since: holder.since,
            is_reported: holder.is_reported,
            held_up_reported: holder.held_up_reported,
        })
    });
    let polls = visits::polls_that_hold_up(shared).into_iter();
    let polls = polls.map(|poll| Held {
        number: poll.number,
        queue: poll.pinned.clone(),
        since: poll.since,
        is_reported: poll.is_stuck,
        held_up_reported: poll.is_reported,
        by: HeldBy::Poll(poll),
    });
    jobs.chain(polls).collect()
}

/// The jobs that `job`, whose thread was just detached, holds up, for its report; none if it holds up none yet.
pub(crate) fn take_names_for(shared: &Shared, job: &JobRef) -> LateNames {
    let is_of_job =
        |holder: &&Held| matches!(&holder.by, HeldBy::Job(holds) if holds.ptr() == job.ptr());
    let holders = holders(shared);
    let holder = holders.iter().find(is_of_job);
    holder.map_or_else(LateNames::none, |holder| take_names(shared, holder))
}

/// The names of the jobs that `holder` holds up. If there are any, they are about to be reported. The monitor calls
/// this, so only the jobs that are named are read: there may be a hundred thousand.
fn take_names(shared: &Shared, holder: &Held) -> LateNames {
    let jobs = holder.queue.runnable_jobs(NAMED);
    if !jobs.is_empty() {
        match &holder.by {
            HeldBy::Job(_) => shared.detached.set_held_up_reported(holder.number),
            HeldBy::Poll(poll) => visits::set_poll_reported(shared, poll),
        }
    }
    let all = match jobs.len() {
        NAMED => holder.queue.len(),
        fewer => fewer,
    };
    let first = jobs.iter().map(|job| LateName::of(job.header()));
    LateNames::of_first(first.collect(), all)
}

/// When the monitor last checked for jobs that are held up. A check goes through all threads, which may be many.
#[derive(Default)]
pub(super) struct LastCheck {
    at: Option<Instant>,
    is_soon: bool,
}

impl LastCheck {
    /// Calls [`report()`], unless it was called a moment ago. Called by the monitor each round.
    pub(super) fn report_at_times(&mut self, shared: &Shared) -> bool {
        if self.at.is_none_or(|at| at.elapsed() >= BETWEEN_CHECKS) {
            self.is_soon = report(shared);
            self.at = Some(Instant::now());
        }
        self.is_soon
    }
}

/// Reports jobs that are held up. Returns whether some must be reported soon.
fn report(shared: &Shared) -> bool {
    let mut is_soon = false;
    for holder in holders(shared).into_iter().filter(is_unreported) {
        let held = Instant::now().saturating_duration_since(holder.since);
        if !is_due(&holder, held, shared.config.stuck_after) {
            is_soon = true;
            continue;
        }
        let names = take_names(shared, &holder);
        if names.all() == 0 {
            continue;
        }
        match &holder.by {
            HeldBy::Job(_) => report::holds_up(holder.name(), held, names),
            HeldBy::Poll(_) => report::main_future_holds_up(holder.name(), held, names),
        }
    }
    is_soon
}

/// Whether the monitor must not sleep, because it must soon report what another job holds up. If not, a job that is
/// held up from now on wakes the monitor. For futures of `block_on`: [`visits::must_check`].
pub(crate) fn must_watch(shared: &Shared) -> bool {
    let mut unreported = shared.detached.holders(|_| true);
    unreported.retain(|holder| !holder.held_up_reported && !is_waiting(&holder.job));
    if unreported.is_empty() {
        return false;
    }
    let numbers: HashSet<u32> = unreported.iter().map(|holder| holder.number).collect();
    let is_held = |number| numbers.contains(&number);
    let queues = shared.pool.pinned_queues(|number, _| is_held(number));
    // Before the check: a job that comes later wakes the monitor.
    queues.values().for_each(|queue| queue.watch());
    queues.values().any(|queue| queue.len() > 0)
}

/// Whether the jobs that are held up get a report of their own, which the one about their holder would otherwise name.
fn is_due(holder: &Held, held: Duration, stuck_after: Duration) -> bool {
    match holder.is_reported {
        true => held >= stuck_after,
        false => held >= EXCUSED_AFTER * stuck_after,
    }
}

fn is_unreported(holder: &Held) -> bool {
    let waits = matches!(&holder.by, HeldBy::Job(job) if is_waiting(job));
    !holder.held_up_reported && !waits
}

fn is_waiting(job: &JobRef) -> bool {
    job.header().state.is_waiting()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::testing;

    #[test]
    fn jobs_that_are_held_up_have_no_report_of_their_own_before_that_about_their_holder() {
        let bound = Duration::from_millis(10);
        let is_due = |is_reported, held| {
            let holder = Held {
                by: HeldBy::Job(testing::job()),
                number: 1,
                queue: Arc::new(PinnedQueue::new()),
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
