//! Shutdown in bounded time: close, drain, stop, and report which jobs did not stop.
//!
//! Steps:
//! 1. close: new jobs are refused; their handles return `Cancelled`.
//! 2. drain: jobs may end on their own. The drain ends when all jobs are done, when nothing runs any longer and every
//!    remaining job waits for something outside the runtime, or at the deadline. A job that was woken does not count as
//!    waiting, even before it reaches a queue.
//! 3. stop: workers end between two jobs. Every waiting job is cancelled, which runs its destructors
//!    here. A job that holds its thread beyond the deadline is named and left behind.
//!
//! The caller may be a job of the runtime itself. Nobody waits for that job or its thread then: it is cancelled like
//! the others, ends at its next wait, and its thread then ends what is pinned to it. Its worker goes to another thread
//! at once, as in [`blocking`].

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    observe::metrics::Metrics,
    report::{JobName, LateName},
    scheduler::{
        stackful::{pinned::PinnedQueue, wait::block::block_in_place},
        threads::pool::is_in_pool_of,
        workers::{cancel, config::FOREVER, context, shared::Shared},
    },
};

/// A runtime counts as drained after this long without a poll or a pending timer.
const QUIET: Duration = Duration::from_millis(2);

/// How long threads have to return from a cancelled wait, even beyond the deadline.
const GRACE: Duration = Duration::from_millis(50);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Jobs that had not ended when the runtime stopped, and that the stop cancelled: they waited, or had not had their
    /// turn.
    pub cancelled: usize,
    /// Jobs that still held a thread at the deadline, and closures of [`offload`](crate::offload()) that still ran,
    /// named by their site. They continue without a runtime until they return or the program exits. The job that shuts
    /// its own runtime down is not among them.
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
    block_in_place(|| run_here(shared, deadline, drains))
}

fn run_here(shared: &Arc<Shared>, deadline: Duration, drains: Drain) -> ShutdownReport {
    let deadline = Instant::now() + deadline.min(FOREVER);
    shared.close();
    if drains == Drain::Yes {
        drain(shared, deadline);
    }
    // Before the stop: from then on every thread cancels what it finds.
    let mut asked = shared.live_jobs();
    asked.retain(|job| !job.header().state.is_cancelled() && !is_running_here(job));
    shared.stop();
    // Threads inside `wait()` leave the wait only when their jobs are cancelled.
    end_waiting(shared);
    // A thread that leaves its wait only now gets the grace period, even if the drain used up the deadline.
    shared.await_threads(deadline.max(Instant::now() + GRACE));
    shared.cancel_injected();
    let is_left_to_caller = left_to_caller(shared);
    let not_stopped = loop {
        shared.cancel_in_workers();
        let ended = end_waiting(shared);
        shared.cancel_injected();
        let mut live = shared.live_jobs();
        live.retain(|job| !is_running_here(job) && !is_left_to_caller(job));
        // A destructor may have woken other jobs: look again, until none is left or a round ends none. The
        // jobs left then hold a thread.
        if live.is_empty() || ended == 0 {
            let jobs = live.iter().map(|job| JobName::of(job.header()));
            break jobs
                .chain(shared.blocking.offloaded().into_iter().map(LateName::now))
                .collect();
        }
    };
    shared.wake_leftovers();
    let is_cancelled = |job: &&JobRef| match job.header().state.is_done() {
        true => job.header().was_cancelled(),
        false => is_left_to_caller(job),
    };
    ShutdownReport {
        cancelled: asked.iter().filter(is_cancelled).count(),
        not_stopped,
    }
}

/// Whether the calling thread is in the middle of a run of `job`.
fn is_running_here(job: &JobRef) -> bool {
    let cx = context::here();
    cx.job() == Some(job.ptr()) || cx.outer_runs.contains(job.ptr())
}

/// Selects the jobs that will end on the caller's thread, once the job that runs there has ended: those pinned to that
/// thread, if it belongs to this runtime. Called when the other threads have had their time.
fn left_to_caller(shared: &Shared) -> impl Fn(&JobRef) -> bool {
    let own = is_in_pool_of(shared.id()).then(|| context::here().pinned());
    let own = own.flatten();
    let is_last = shared.pool.threads() == 1;
    move |job: &JobRef| {
        own.as_ref().is_some_and(|own| {
            // Which job has a suspended stack can be read only if no other thread is left.
            job.header().is_pinned_to(own) || is_last && job.header().has_own_stack()
        })
    }
}

/// Cancels every waiting job. Returns how many have ended already; a job with a suspended stack ends on its own
/// thread.
fn end_waiting(shared: &Shared) -> usize {
    let live = shared.live_jobs();
    cancel::cancel_waiting(&live);
    // Jobs that fork notice the cancel at their next fork.
    shared.forks.alert_all();
    live.iter()
        .filter(|job| job.header().state.is_done())
        .count()
}

/// Waits until every job is done, or every remaining job waits for something that no worker will cause.
fn drain(shared: &Arc<Shared>, deadline: Instant) {
    let mut last = None;
    while Instant::now() < deadline {
        let now = Metrics::of(shared);
        let asleep = now.sleeping == now.workers && now.runnable == 0 && now.timers == 0;
        let is_blocking = shared.blocking.calls() != (0, 0);
        if asleep && !is_blocking && last == Some(now.polls) && all_wait(shared) {
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

/// Whether every job waits. Exact, unlike the counts of the metrics: a job that was woken may be in no queue of a
/// worker, but on its way to the thread that it is pinned to.
fn all_wait(shared: &Shared) -> bool {
    // What is in the queue of the caller's thread cannot run before the caller returns.
    let own = match is_in_pool_of(shared.id()) {
        true => context::here().pinned_here().map_or(0, PinnedQueue::len),
        false => 0,
    };
    let live = shared.live_jobs();
    let is_awake = |job: &&JobRef| !job.header().state.is_waiting() && !is_running_here(job);
    live.iter().filter(is_awake).count() <= own
}
