//! Shutdown that ends: close, drain, stop, and a list of what did not.
//!
//! Steps:
//! 1. close: new jobs are refused (their handles say cancelled).
//! 2. drain: jobs that are on their way to an end reach it; waits until all are done, or nothing
//!    moves any more and only jobs that wait for an outsider are left, or the deadline.
//! 3. stop: workers end between two jobs; every job that waits is cancelled, which runs its
//!    destructors here; a job that holds its thread beyond the deadline is named and left behind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    observe::metrics::Metrics,
    report::JobName,
    scheduler::workers::config::FOREVER,
    scheduler::workers::{cancel, shared::Shared},
};

/// How long a runtime must be without a poll and without a pending timer to count as drained.
const QUIET: Duration = Duration::from_millis(2);

/// What threads get to come back from a wait that was ended, beyond the deadline if need be.
const GRACE: Duration = Duration::from_millis(50);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Jobs that waited when the runtime stopped, and were cancelled.
    pub cancelled: usize,
    /// Jobs that still held a thread at the deadline. They go on, without a runtime, until they
    /// return; a process that ends ends them.
    pub not_stopped: Vec<JobName>,
}

/// Whether a shutdown waits for jobs that could still end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    Yes,
    No,
}

/// Shuts `shared` down. Any thread; a second call finds nothing left to do.
pub(crate) fn run(shared: &Arc<Shared>, deadline: Duration, drains: Drain) -> ShutdownReport {
    let deadline = Instant::now() + deadline.min(FOREVER);
    shared.close();
    if drains == Drain::Yes {
        drain(shared, deadline);
    }
    shared.stop();
    let mut asked = Vec::new();
    // Threads that are in `wait()` leave it only when their jobs are cancelled.
    end_waiting(shared, &mut asked);
    // Who leaves its wait only now gets a moment for it, whatever the drain has used up.
    shared.await_threads(deadline.max(Instant::now() + GRACE));
    shared.cancel_injected();
    let not_stopped = loop {
        shared.cancel_in_workers();
        let ended = end_waiting(shared, &mut asked);
        shared.cancel_injected();
        let live = shared.live_jobs();
        // A destructor may have woken others: look again, unless nothing moves any more, and only
        // jobs are left that hold a thread.
        if live.is_empty() || ended == 0 {
            break live.iter().map(|job| JobName::of(job.header())).collect();
        }
    };
    shared.close_timers();
    shared.reactor.close();
    let has_ended = |job: &&JobRef| job.header().state.is_done();
    ShutdownReport {
        cancelled: asked.iter().filter(has_ended).count(),
        not_stopped,
    }
}

/// Cancels every job that waits, and adds to `asked` those that nobody had cancelled before. Returns how many have
/// ended already; one whose stack stands does so on its own thread.
fn end_waiting(shared: &Shared, asked: &mut Vec<JobRef>) -> usize {
    let live = shared.live_jobs();
    let is_news = |job: &&JobRef| {
        let state = &job.header().state;
        state.is_waiting() && !state.is_cancelled()
    };
    asked.extend(live.iter().filter(is_news).cloned());
    cancel::cancel_waiting(&live);
    // Those that fork see it at their next fork.
    shared.forks.ring_all();
    live.iter()
        .filter(|job| job.header().state.is_done())
        .count()
}

/// Waits until every job is done, or the rest waits for something that no worker will bring about.
fn drain(shared: &Arc<Shared>, deadline: Instant) {
    let mut last = None;
    while Instant::now() < deadline {
        let now = Metrics::of(shared);
        let asleep = now.sleeping == now.workers && now.runnable == 0 && now.timers == 0;
        if asleep && !shared.detached.is_any_stuck() && last == Some(now.polls) {
            return;
        }
        last = Some(now.polls);
        std::thread::sleep(QUIET);
    }
}
