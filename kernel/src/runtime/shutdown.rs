//! Shutdown in bounded time: close, drain, stop, and report which jobs did not stop.
//!
//! Steps:
//! 1. close: new jobs are refused; their handles return `Cancelled`.
//! 2. drain: jobs may end on their own. The drain ends when all jobs are done, when nothing runs any
//!    longer and every remaining job waits for something outside the runtime, or at the deadline.
//! 3. stop: workers end between two jobs. Every waiting job is cancelled, which runs its destructors
//!    here. A job that holds its thread beyond the deadline is named and left behind.

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

/// A runtime counts as drained after this long without a poll or a pending timer.
const QUIET: Duration = Duration::from_millis(2);

/// How long threads have to return from a cancelled wait, even beyond the deadline.
const GRACE: Duration = Duration::from_millis(50);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Jobs that waited when the runtime stopped, and were cancelled.
    pub cancelled: usize,
    /// Jobs that still held a thread at the deadline, and closures of [`offload`](crate::offload()) that still ran,
    /// named by their site. They continue without a runtime until they
    /// return or the program exits.
    pub not_stopped: Vec<JobName>,
}

/// Whether a shutdown first waits for jobs that could end on their own.
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
    // Threads inside `wait()` leave it only when their jobs are cancelled.
    end_waiting(shared, &mut asked);
    // A thread that leaves its wait only now gets the grace period, even if the drain used up the deadline.
    shared.await_threads(deadline.max(Instant::now() + GRACE));
    shared.cancel_injected();
    let not_stopped = loop {
        shared.cancel_in_workers();
        let ended = end_waiting(shared, &mut asked);
        shared.cancel_injected();
        let live = shared.live_jobs();
        // A destructor may have woken other jobs: look again, until none is left or a round ends none. The
        // jobs left then hold a thread.
        if live.is_empty() || ended == 0 {
            let jobs = live.iter().map(|job| JobName::of(job.header()));
            break jobs.chain(shared.blocking.offloaded()).collect();
        }
    };
    shared.wake_leftovers();
    let has_ended = |job: &&JobRef| job.header().state.is_done();
    ShutdownReport {
        cancelled: asked.iter().filter(has_ended).count(),
        not_stopped,
    }
}

/// Cancels every waiting job, and adds to `asked` those that were not cancelled before. Returns how many have ended
/// already; a job with a suspended stack ends on its own thread.
fn end_waiting(shared: &Shared, asked: &mut Vec<JobRef>) -> usize {
    let live = shared.live_jobs();
    let is_new = |job: &&JobRef| {
        let state = &job.header().state;
        state.is_waiting() && !state.is_cancelled()
    };
    asked.extend(live.iter().filter(is_new).cloned());
    cancel::cancel_waiting(&live);
    // Jobs that fork notice the cancel at their next fork.
    shared.forks.ring_all();
    live.iter()
        .filter(|job| job.header().state.is_done())
        .count()
}

/// Waits until every job is done, or every remaining job waits for something that no worker will bring about.
fn drain(shared: &Arc<Shared>, deadline: Instant) {
    let mut last = None;
    while Instant::now() < deadline {
        let now = Metrics::of(shared);
        let asleep = now.sleeping == now.workers && now.runnable == 0 && now.timers == 0;
        let is_stuck = shared.detached.is_any_stuck() || shared.blocking.calls() != (0, 0);
        if asleep && !is_stuck && last == Some(now.polls) {
            return;
        }
        last = Some(now.polls);
        #[expect(
            clippy::disallowed_methods,
            reason = "the caller's own thread polls here, and no worker"
        )]
        std::thread::sleep(QUIET);
    }
}
