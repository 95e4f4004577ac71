//! Shutdown in bounded time: close, drain, stop, and report which jobs did not stop.
//!
//! Steps:
//! 1. close: new jobs are refused; their handles return `Cancelled`.
//! 2. drain: jobs may end on their own. The drain ends when all jobs are done, when nothing runs any longer and every
//!    remaining job waits for something outside the runtime, or at the deadline. A job that was woken does not count as
//!    waiting, even before it reaches a queue.
//! 3. cancel: every job is cancelled, and the workers run the destructors. They are still watched, so one that blocks
//!    is retaken and named, and holds up no other one.
//! 4. stop, when that is done or at the deadline: workers end between two jobs. A job that has not ended by then, for
//!    example because it has not begun, is ended on a thread of the shutdown itself. A job that holds a thread beyond
//!    the deadline is named and left behind, and so is that thread if a destructor holds it. Closures of callbacks that
//!    have not run are dropped, and foreign wakers called, on threads for
//!    [leftovers](crate::scheduler::threads::leftovers).
//!
//! The caller may be a job of the runtime itself, or a closure that a job waits for ([`crate::runtime::own_runs`]). The
//! shutdown then does not wait for that job or its thread. The job is cancelled like the others, ends at its next wait,
//! and its thread then ends what is pinned to it. Its worker goes to another thread at once, as in
//! [`blocking`](crate::blocking()).

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    job::{JobRef, walked::WalkedJobs},
    observe::metrics::Metrics,
    report::JobName,
    runtime::{holders::Holders, own_runs::OwnRuns},
    scheduler::{
        stackful::{pinned::PinnedQueue, wait::block::block_in_place},
        threads::pool::is_in_pool_of,
        workers::{cancel, config::FOREVER, context, shared::Shared},
    },
};

/// A runtime counts as drained after this long without a poll or a pending timer.
const QUIET: Duration = Duration::from_millis(2);

/// The first pause while the workers end the jobs.
const SHORT: Duration = Duration::from_micros(50);

/// How long threads have to return from a cancelled wait, even beyond the deadline.
const GRACE: Duration = Duration::from_millis(50);

/// How long a shutdown waits for the end of what is being ended, before it takes that for something that holds a
/// thread.
const BRIEF: Duration = Duration::from_millis(20);

/// How much longer the shutdown's own thread has, beyond the deadline, for each job that the workers left to it.
const PER_JOB: Duration = Duration::from_micros(10);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Jobs that had not ended after the drain, and that the shutdown cancelled: they waited, or had not begun.
    pub cancelled: usize,
    /// Jobs that still held a thread at the deadline, or can run only on a thread that another job held, and closures
    /// of [`offload`](crate::offload()) that still ran, named by their site. Also closures of callbacks, wakers of
    /// other executors and descriptions of ended jobs whose drop or call held a thread. They continue without a runtime
    /// until they return or the program exits. The job that shuts its own runtime down is not among them. A job with a
    /// [description](crate::Spawn::described_by) has the name that it was given at spawn.
    pub not_stopped: Vec<JobName>,
    /// How many jobs, closures, wakers and descriptions held no thread at the deadline, and still had to be ended,
    /// dropped or called, because they are very many, or because some of `not_stopped` hold the threads that do it.
    /// These threads go on with it when they can.
    pub left: usize,
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
    let own = &OwnRuns::here(shared);
    own.note(shared);
    shared.close();
    if drains == Drain::Yes {
        drain(shared, own, deadline);
    }
    let mut found = shared.live_jobs();
    let mut asked = found.clone();
    asked.retain(|job| !job.header().state.is_cancelled() && !own.contain(job));
    shared.begin_to_cancel();
    // A job that sees its cancel only now gets the grace period, even if the drain used up the deadline.
    let time_limit = || deadline.max(Instant::now() + GRACE);
    if !shared.is_driven() && has_other_workers(shared) {
        cancel_on_workers(shared, own, &mut found, time_limit());
    }
    // From here on every thread cancels what it finds.
    shared.stop();
    // Threads inside `wait()` leave the wait only when their jobs are woken. This runs no destructor.
    cancel::cancel_waiting(&found, |job| shared.inject_stopped(job));
    shared.await_threads(own.threads(), time_limit());
    let mut live = end_leftovers(shared, own, time_limit());
    if !live.is_empty() {
        shared.note_left_jobs();
    }
    let is_left_to_caller = left_to_caller(shared);
    live.retain(|job| !own.contain(job) && !is_left_to_caller(job));
    let holders = Holders::of(shared);
    let mut held = live.clone();
    held.retain(|job| holders.contain(job));
    // The end of most takes a moment only.
    let end = Instant::now() + BRIEF;
    while held.iter().any(|job| holders.contain_ending(job)) && Instant::now() < end {
        poll_after(SHORT);
    }
    let is_unended = |job: &&JobRef| !job.header().state.is_done();
    held.retain(|job| is_unended(&job));
    let mut left = live.iter().filter(is_unended).count();
    left = left.saturating_sub(held.len());
    let mut ending = holders.into_ending(|job| own.contain(job));
    ending.retain(|job| held.iter().all(|other| other.ptr() != job.ptr()));
    let held = held.iter().chain(ending.iter()).map(name_of_held);
    let offloaded = shared.blocking.offloaded().into_iter();
    let offloaded = offloaded.map(|name| name.known().clone());
    let mut not_stopped: Vec<JobName> = held.chain(offloaded).collect();
    let is_cancelled = |job: &&JobRef| match job.header().state.is_done() {
        true => job.header().was_cancelled(),
        false => is_left_to_caller(job),
    };
    let cancelled = asked.iter().filter(is_cancelled).count();
    // The wakers first, because somebody waits for them.
    shared.wake_leftovers();
    // The last references to most jobs. The user values that those have left may block when they are dropped.
    drop((found, asked));
    let leftovers = shared.leftovers.await_all(time_limit());
    not_stopped.extend(leftovers.held);
    left += leftovers.left;
    ShutdownReport {
        cancelled,
        not_stopped,
        left,
    }
}

/// The name of a job that holds a thread. One that blocks or computes may have noted a wait earlier in the same poll.
/// Its description is not asked: it may want what the job holds, and the shutdown would wait for that.
fn name_of_held(job: &JobRef) -> JobName {
    let header = job.header();
    let mut name = JobName::without_description(header);
    let extensions = header.extensions.lock_existing();
    // It is cancelled, so its state does not say that it blocks in a destructor.
    let is_blocked = extensions.is_some_and(|extensions| extensions.blocked.is_some());
    let waits = is_blocked || header.state.is_waiting();
    name.waits_for = name.waits_for.filter(|_| waits);
    name
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

/// Whether somebody runs jobs while the caller shuts down. A caller that no spare thread could replace keeps its
/// worker.
fn has_other_workers(shared: &Shared) -> bool {
    shared.workers.len() > 1 || context::here().worker_of(shared.id()).is_none()
}

/// Cancels the jobs in `live`, and lets the workers end them, until none is left that they can end, or until
/// `deadline`. Those that have ended leave the list. The runtime is closed, so there are no others but jobs that run
/// parts of a fork: those that begin from now on are ended with what is left over. A runner that has not begun is
/// cancelled, too, and a destructor that waits for one of its parts may then wait until the runtime has stopped.
fn cancel_on_workers(
    shared: &Arc<Shared>,
    own: &OwnRuns,
    live: &mut WalkedJobs,
    deadline: Instant,
) {
    let others = live.iter().filter(|job| !own.contain(job));
    others.for_each(cancel::cancel_alone);
    // Jobs that fork notice the cancel at their next fork.
    shared.forks.alert_all();
    let mut pause = SHORT;
    while Instant::now() < deadline {
        live.retain(|job| !job.header().state.is_done());
        // A cancel ends every wait except those of destructors. The workers' timers and descriptors may end these.
        let waits_in_destructor = |job: &JobRef| {
            let state = &job.header().state;
            state.is_waiting() && state.is_cancelled() && !own.contain(job)
        };
        if all_wait(shared, own, live) && !live.iter().any(waits_in_destructor) {
            return;
        }
        poll_after(pause);
        pause = (2 * pause).min(QUIET);
    }
}

/// Ends what the workers have not ended, on a thread of its own: a destructor may block for ever. Returns when nothing
/// is left to do; or at `deadline` if a destructor holds the thread for a grace period, and somewhat later, by the
/// number of jobs, in any case. Returns the jobs that are left.
fn end_leftovers(shared: &Arc<Shared>, own: &OwnRuns, deadline: Instant) -> WalkedJobs {
    let live = shared.live_jobs();
    if live.iter().all(|job| own.contain(job)) {
        return live;
    }
    match shared.is_driven() {
        true => end_rounds(shared),
        false => end_rounds_apart(shared, deadline, live.len()),
    }
    shared.live_jobs()
}

/// As [`end_rounds`], on a thread of its own. `left`: how many jobs are left.
fn end_rounds_apart(shared: &Arc<Shared>, deadline: Instant, mut left: usize) {
    let (ended, is_over) = mpsc::channel();
    let of_thread = shared.clone();
    let thread = thread::Builder::new().name("weald-shutdown".to_owned());
    let started = thread.spawn(move || {
        let _reports = of_thread.subscriber.enter();
        end_rounds(&of_thread);
        let _nobody_waits = ended.send(());
    });
    if started.is_err() {
        // No thread can be started, so a destructor that blocks here delays the shutdown.
        return end_rounds(shared);
    }
    // Very many jobs take their time, and get it. Many destructors that each take long do not.
    let end = deadline + PER_JOB * u32::try_from(left).unwrap_or(u32::MAX);
    loop {
        let now = Instant::now();
        let time_left = deadline.saturating_duration_since(now).max(GRACE);
        let time_left = time_left.min(end.saturating_duration_since(now));
        if is_over.recv_timeout(time_left) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        // As long as they become fewer, none holds the thread.
        let now = shared.live_jobs().len();
        if now >= left || Instant::now() >= end {
            return;
        }
        left = now;
    }
}

/// Ends every job that nobody runs. A destructor may wake other jobs. So this is repeated until no job is left, or a
/// round ends none. The jobs left then hold a thread.
fn end_rounds(shared: &Arc<Shared>) {
    loop {
        shared.cancel_injected();
        shared.cancel_in_workers();
        let ended = end_waiting(shared);
        shared.cancel_injected();
        if ended == 0 || shared.live_jobs().is_empty() {
            return;
        }
    }
}

/// Cancels every waiting job. Returns how many have ended already; a job with a suspended stack ends on its own
/// thread.
fn end_waiting(shared: &Shared) -> usize {
    let live = shared.live_jobs();
    cancel::cancel_waiting(&live, drop);
    // Jobs that fork notice the cancel at their next fork.
    shared.forks.alert_all();
    live.iter()
        .filter(|job| job.header().state.is_done())
        .count()
}

/// Waits until every job is done, or every remaining job waits for something that no worker will cause.
fn drain(shared: &Arc<Shared>, own: &OwnRuns, deadline: Instant) {
    let mut last = None;
    while Instant::now() < deadline {
        let now = Metrics::of(shared);
        let asleep = now.sleeping == now.workers && now.runnable == 0 && now.timers == 0;
        let is_blocking = shared.blocking.calls() != (own.closures(), 0);
        if asleep
            && !is_blocking
            && last == Some(now.polls)
            && all_wait(shared, own, &shared.live_jobs())
        {
            return;
        }
        last = Some(now.polls);
        poll_after(QUIET);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the caller's own thread polls here, and no worker"
)]
fn poll_after(pause: Duration) {
    thread::sleep(pause);
}

/// Whether every job in `live` waits. Exact, unlike the counts of the metrics: a job that was woken may be in no queue
/// of a worker, but on its way to the thread that it is pinned to.
fn all_wait(shared: &Shared, own: &OwnRuns, live: &[JobRef]) -> bool {
    // What is in the queue of the caller's thread cannot run before the caller returns.
    let is_of_runtime = context::here().shared().map(Shared::id) == Some(shared.id());
    let behind = match is_of_runtime {
        true => context::here().pinned_here().map_or(0, PinnedQueue::len),
        false => 0,
    };
    let is_awake = |job: &&JobRef| !job.header().state.is_waiting() && !own.contain(job);
    live.iter().filter(is_awake).count() <= behind
}
