//! Visits: foreign threads in `block_on`, which run the jobs that are pinned to them.
//!
//! Such a thread owns no worker. A job that blocks or computes there stops only the other jobs of the thread, and the
//! future that the thread waits for. The monitor watches these runs all the same, so that the job is named, and those
//! that stand still with it. It changes no priority: that of the thread is the user's.
//!
//! The thread's own future holds these jobs up, too, while the thread polls it. The monitor sees that a poll lasts
//! ([`main_poll`](crate::scheduler::stackful::visit_run::main_poll)); [`held_up`](super::held_up) counts and names
//! those that stand still.
//!
//! When a run has lasted for half of `stuck_after`, the monitor puts the thread into the list of the
//! [detached](super::detached) ones, where it is judged by what the system says of it. The thread takes itself out when
//! the run ends.
//!
//! Called by the loop of the thread ([`begin_run`], [`end_run`]), by its `block_on` ([`set_polling`]), by its
//! announcements, and by the monitor ([`check`]).

pub(super) mod poll_watch;

use std::{collections::HashMap, sync::Arc, time::Instant};

use crate::{
    job::{JobPtr, JobRef},
    scheduler::{
        stackful::{
            pinned::{self, PinChange, PinnedQueue},
            visit_run::{SeenRun, VisitRun, main_poll::MainFuture},
        },
        threads::{
            detached_end,
            detached_run::{Activity, Cause, DetachedRun, ListedRun, RunningCode},
            senders::Sends,
            thread_times::ThreadTimes,
            visits::poll_watch::PollWatch,
        },
        workers::{context::Context, shared::Shared},
    },
};

/// The visit that the calling thread is on. None for a thread of the pool.
pub(crate) fn here(cx: &Context) -> Option<(&VisitRun, &Shared)> {
    cx.pinned_here()?.visit().zip(cx.shared())
}

/// A run of `job` begins, and the one before has ended.
pub(crate) fn begin_run((visit, shared): (&VisitRun, &Shared), job: JobPtr) {
    end_run((visit, shared));
    visit.begin(job);
    // It may sleep, because until now there was nothing to watch.
    shared.monitor.worker_woke();
}

/// The run has ended, if there was one.
pub(crate) fn end_run((visit, shared): (&VisitRun, &Shared)) {
    if let Some(job) = visit.end() {
        // Nothing has changed its priority.
        let _may_serve = detached_end::end(shared, ListedRun::OfVisit(visit.thread, job));
    }
}

/// What a thread in `block_on` does with the future of `block_on`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polling {
    /// It polls it.
    Begins,
    /// It parks, or runs other jobs, although a poll may go on further out.
    Interrupted,
}

/// While it lives, the thread does this; after that, what it did before. None for a thread that is not in `block_on`.
pub(crate) struct PollingNow<'a> {
    shared: &'a Shared,
    pinned: &'a PinnedQueue,
    visit: &'a VisitRun,
    before: bool,
}

/// The calling thread, whose pinned queue is `pinned`, does this from now on.
#[inline]
pub(crate) fn set_polling<'a>(
    shared: &'a Shared,
    pinned: &'a PinnedQueue,
    polling: Polling,
) -> Option<PollingNow<'a>> {
    let visit = pinned.visit()?;
    Some(PollingNow {
        shared,
        pinned,
        visit,
        before: change(shared, pinned, visit, polling == Polling::Begins),
    })
}

impl Drop for PollingNow<'_> {
    #[inline]
    fn drop(&mut self) {
        change(self.shared, self.pinned, self.visit, self.before);
    }
}

/// Returns whether it polled before.
#[inline]
fn change(shared: &Shared, pinned: &PinnedQueue, visit: &VisitRun, polls: bool) -> bool {
    let has_pinned = pinned.has_pinned_jobs();
    let before = visit.main.set(polls, has_pinned);
    if polls && has_pinned {
        // It may sleep, because until now there was nothing to watch.
        shared.monitor.begin_to_watch();
    }
    before
}

/// A job is spawned that is pinned to the calling thread, whose pinned queue is `pinned`.
pub(crate) fn pin_spawned(shared: &Shared, pinned: &PinnedQueue) {
    pinned.count_pinned(PinChange::Pinned);
    if let Some(visit) = pinned.visit() {
        visit.main.pinned();
        // As in `change`.
        shared.monitor.begin_to_watch();
    }
}

/// The running job announces that it blocks. False if that was announced before, or if the job is a part of a fork:
/// nobody would take its entry out of the list.
pub(crate) fn announce((visit, shared): (&VisitRun, &Shared), job: JobRef) -> bool {
    if !visit.is_run_of(job.ptr()) {
        return false;
    }
    let listed = ListedRun::OfVisit(visit.thread, job.ptr());
    let run = detached_run(job, Instant::now());
    shared
        .detached
        .add_if(visit.thread, run, || visit.list_own());
    shared.detached.announce(listed)
}

/// Whether the monitor must see how a run goes on.
pub(super) fn must_check(shared: &Shared) -> bool {
    let mut must = false;
    shared.pool.each_visit(|_, visit, last| {
        let poll = visit.main.seen();
        must |= visit.seen().is_unlisted();
        must |= poll.may_hold_up() && !last.poll.is_reported_of(poll);
    });
    must
}

/// Called by the monitor each round.
pub(super) fn check(shared: &Shared) {
    let bound = shared.config.stuck_after;
    let half = bound / 2;
    let (mut long, mut long_polls) = (Vec::new(), Vec::new());
    shared.pool.each_visit(|pinned, visit, last| {
        if last.poll.check(visit.main.seen(), bound) {
            long_polls.push(visit.thread);
        }
        let seen = visit.seen();
        if seen != last.run {
            (last.run, last.since) = (seen, Instant::now());
        } else if seen.is_unlisted() && last.since.elapsed() >= half {
            long.push((pinned.clone(), seen, last.since));
        }
    });
    // Outside of that lock, because to find the job takes another.
    for (pinned, seen, since) in long {
        if let Some(visit) = pinned.visit() {
            list(shared, visit, seen, since);
        }
    }
    judge_polls(shared, &long_polls);
}

/// Asks the system about the threads with these numbers.
fn judge_polls(shared: &Shared, numbers: &[u32]) {
    if numbers.is_empty() {
        return;
    }
    // Read without the lock, for which threads in `block_on` wait.
    let asked = numbers
        .iter()
        .map(|number| (*number, ThreadTimes::of(*number)));
    let times: HashMap<u32, Option<ThreadTimes>> = asked.collect();
    let bound = shared.config.stuck_after;
    shared.pool.each_visit(|_, visit, last| {
        if let Some(now) = times.get(&visit.thread)
            && last.poll.lasts(visit.main.seen(), bound)
        {
            last.poll.judge(*now, bound);
        }
    });
}

/// A thread that has polled the future of its `block_on` for long, while jobs are pinned to it.
pub(super) struct LongPoll {
    /// The system's number of the thread.
    pub(super) number: u32,
    pub(super) future: MainFuture,
    pub(super) pinned: Arc<PinnedQueue>,
    pub(super) since: Instant,
    /// As in [`PollWatch`].
    pub(super) is_stuck: bool,
    pub(super) is_reported: bool,
}

/// The long polls that keep a job from running.
pub(super) fn polls_that_hold_up(shared: &Shared) -> Vec<LongPoll> {
    let bound = shared.config.stuck_after;
    let mut polls = Vec::new();
    shared.pool.each_visit(|pinned, visit, last| {
        if pinned.len() > 0 && last.poll.lasts(visit.main.seen(), bound) {
            polls.push(LongPoll {
                number: visit.thread,
                future: visit.main.future,
                pinned: pinned.clone(),
                since: last.poll.since,
                is_stuck: last.poll.is_stuck,
                is_reported: last.poll.is_reported,
            });
        }
    });
    polls
}

/// Notes that a report names the jobs which the poll holds up. Called by the monitor.
pub(super) fn set_poll_reported(shared: &Shared, poll: &LongPoll) {
    shared.pool.each_visit(|pinned, _, last| {
        let PollWatch {
            since, is_reported, ..
        } = &mut last.poll;
        *is_reported |= Arc::ptr_eq(pinned, &poll.pinned) && *since == poll.since;
    });
}

/// Puts the thread into the list, if it is still in this run: not if it has left `block_on` meanwhile.
fn list(shared: &Shared, visit: &VisitRun, seen: SeenRun, since: Instant) {
    // The run may be over, and the job gone. If the run is not, the block holds this job.
    let job = seen
        .job()
        .and_then(|job| pinned::job_in(job.as_raw().cast()));
    if let Some(job) = job {
        let run = detached_run(job, since);
        shared
            .detached
            .add_if(visit.thread, run, || visit.list(seen));
    }
}

fn detached_run(job: JobRef, since: Instant) -> DetachedRun {
    DetachedRun {
        code: RunningCode::see(&job),
        job,
        activity: Activity::Compute,
        cause: Cause::Visits,
        since,
        sends: Sends::at_first(0),
    }
}
