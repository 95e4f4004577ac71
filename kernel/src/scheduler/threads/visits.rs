//! Visits: foreign threads in `block_on`, which run the jobs that are pinned to them.
//!
//! Such a thread owns no worker. A job that blocks or computes there stops only the other jobs of the thread, and the
//! future that the thread waits for. The monitor watches these runs all the same, so that the job is named, and those
//! that stand still with it. It changes no priority: that of the thread is the user's.
//!
//! When a run has lasted for half of `stuck_after`, the monitor puts the thread into the list of the
//! [detached](super::detached) ones, where it is judged by what the system says of it. The thread takes itself out when
//! the run ends.
//!
//! Called by the loop of the thread ([`begin_run`], [`end_run`]), by its announcements, and by the monitor ([`check`]).

use std::time::Instant;

use crate::{
    job::{JobPtr, JobRef},
    scheduler::{
        stackful::{
            pinned,
            visit_run::{SeenRun, VisitRun},
        },
        threads::{
            detached_end,
            detached_run::{Activity, Cause, DetachedRun, ListedRun, RunningCode},
            senders::Sends,
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
pub(super) fn must_look(shared: &Shared) -> bool {
    let mut must = false;
    shared
        .pool
        .look_at_visits(|_, visit, _| must |= visit.seen().is_unlisted());
    must
}

/// Called by the monitor each round.
pub(super) fn check(shared: &Shared) {
    let half = shared.config.stuck_after / 2;
    let mut long = Vec::new();
    shared.pool.look_at_visits(|pinned, visit, last| {
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
