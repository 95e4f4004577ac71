//! Holding the OS thread: `block_in_place`, and waits whose stack must not be suspended.
//!
//! The worker is handed to a spare thread first, so that no other job waits.

use std::{
    cell::OnceCell,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use weald_sync::hooks::Parker;

use crate::{
    FEATURES,
    job::{Header, JobRef},
    report::{self, LateName, NoSpareThread},
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            wait::{
                is_unwinding, panic_hook, poll_in_own_frame, tell_if_survived, unwind_if_cancelled,
            },
        },
        threads::{
            detached_round,
            detached_run::{Activity, Cause, DetachedRun, ListedRun, RunningCode},
            pool::Handoff,
            senders::Sends,
            serve, visits,
        },
        workers::{context, ready, shared::Shared},
    },
    sys::{Ordering, lock},
};

/// How often a job that holds its thread checks whether other jobs must run there, at first.
pub(super) const RECHECK: Duration = Duration::from_millis(10);
/// How often it does so when it has held its thread for long: hundreds may wait for the parts of one fork.
const RECHECK_AT_LAST: Duration = Duration::from_millis(40);
/// Between the two it checks after this part of the time for which it has held the thread.
const RECHECKED_PART: u32 = 8;

/// Runs `f` on the calling OS thread, which it may block, or compute on for long. Another thread serves the worker
/// meanwhile, but not the jobs that are pinned to the caller's OS thread: started threads, jobs in
/// [`wait()`](crate::Wait::wait) and local jobs stand still until `f` has ended. A report names them.
/// [`blocking`](crate::blocking()) avoids this, for a closure that is `Send`. Outside of a job it just runs `f`.
///
/// A cancel of the caller does nothing before the next wait. A panic of `f` is the caller's.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(weald::spawn(async {
/// let text = weald::block_in_place(|| std::fs::read_to_string("/proc/version"));
/// # drop(text);
/// # })).unwrap();
/// ```
pub fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    let job = context::with(|cx| cx.job_ref());
    let _announced = job.map(|job| hand_off_worker(job, WhyHeld::Closure));
    // Inside a fork, another thread may take what this one might wait for.
    let _fork_wait = context::again().fork_wait();
    f()
}

/// What a job is about to hold its thread for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhyHeld {
    /// A closure of the user that may block.
    Closure,
    /// A wait. Its thread does not count against the bound of spare threads ([`Waiting`]).
    Wait(HeldFor),
}

/// An announcement that the running job may block, until this is dropped. Only the outermost one counts.
struct Announced {
    is_outermost: bool,
}

impl Drop for Announced {
    fn drop(&mut self) {
        if self.is_outermost {
            end_announcement();
        }
    }
}

/// The running job no longer does what it had announced.
// Not inlined: see `hold_in_job`.
#[inline(never)]
fn end_announcement() {
    context::with(|cx| {
        // A thread that serves a worker, or none of the runtime, is not detached.
        let is_listed = || cx.outbox().is_some() || visits::here(cx).is_some();
        let detached = cx.shared().filter(|_| cx.worker().is_none() && is_listed());
        if let (Some(shared), Some(job)) = (detached, cx.job_ref()) {
            let is_forking = shared.forks.is_forking(&job);
            let listed = match visits::here(cx) {
                Some((visit, _)) => ListedRun::OfVisit(visit.thread, job.ptr()),
                None => ListedRun::OfThread(shared.thread_number()),
            };
            shared.detached.end_announcement(listed, is_forking);
            // It may sleep, because until now there was nothing to watch.
            shared.monitor.begin_to_watch();
        }
    });
}

/// Hands the worker of the calling thread, which runs `job`, to a spare thread, if the thread still owns it.
// Not inlined: see `hold_in_job`.
#[inline(never)]
fn hand_off_worker(job: JobRef, why: WhyHeld) -> Announced {
    if job.header().state.is_done() {
        // Others may wait for what is left to do at its end.
        job.header().extensions.tell_that_it_takes_long();
    }
    let is_outermost = context::with(|cx| {
        let Some((worker, lease)) = cx.worker() else {
            return match visits::here(cx) {
                Some(visit) => visits::announce(visit, job),
                None => announce_detached(cx),
            };
        };
        let Some(shared) = cx
            .shared()
            .map(Shared::id)
            .and_then(crate::scheduler::workers::shared::find)
        else {
            return false;
        };
        if shared.is_driven() {
            return false;
        }
        if !shared.pool.has_spare_thread(&shared) {
            let bound = shared.config.spare_threads;
            serve::report_no_spare_thread(&shared, bound, NoSpareThread::WorkerIsStuck);
            return false;
        }
        let handoff = serve::renew_lease(&shared, worker.index, lease);
        cx.clear_worker();
        let Some(handoff) = handoff else {
            // The monitor has retaken the worker meanwhile.
            return announce_detached(cx);
        };
        let run = DetachedRun {
            job: job.clone(),
            activity: Activity::Block,
            cause: Cause::Announced,
            since: Instant::now(),
            sends: Sends::here(),
            code: RunningCode::Own,
        };
        shared.detached.add(shared.thread_number(), run);
        shared.counters.announced.fetch_add(1, Ordering::Relaxed);
        match why {
            WhyHeld::Closure => detached_round::note_announced(&shared, &job),
            WhyHeld::Wait(HeldFor::Wait) => detached_round::note_held(&shared, &job),
            WhyHeld::Wait(HeldFor::Join) => {}
        }
        hand_off_or_orphan(&shared, handoff);
        true
    });
    Announced { is_outermost }
}

/// As `hand_off_worker`, for a thread that is detached already, or serves no worker for another reason. False if that
/// was announced before, or is not watched.
fn announce_detached(cx: &context::Context) -> bool {
    let (Some(shared), Some(outbox)) = (cx.shared(), cx.outbox()) else {
        return false;
    };
    ready::inject_all(shared, outbox.take());
    let is_new = shared
        .detached
        .announce(ListedRun::OfThread(shared.thread_number()));
    let announced = &shared.counters.announced;
    announced.fetch_add(u64::from(is_new), Ordering::Relaxed);
    is_new
}

fn hand_off_or_orphan(shared: &Arc<Shared>, handoff: Handoff) {
    if let Err(refused) = serve::hand_off(shared, handoff) {
        report::no_thread(refused.error.as_ref());
        // The monitor tries again each round, and fires the timers of this worker, which the caller may wait for.
        lock(&shared.orphans).push(refused.handoff);
    }
}

/// Runs `future` to its end in the running job, and holds the OS thread meanwhile.
#[cold]
pub(super) fn block_in_job<F: Future>(future: Pin<&mut F>) -> F::Output {
    match hold_in_job(future, HeldFor::Wait, &|| false) {
        Some(output) => output,
        None => report::impossible("a wait without an alternative gave way"),
    }
}

/// What a job holds its thread for, in a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldFor {
    /// Forked work, which may compute.
    Join,
    /// Anything else. Who joins the job takes it for one whose stack is suspended, after a while: it may wait for a job
    /// that is pinned to the joining thread.
    Wait,
}

/// As [`block_in_job`], but calls `gives_way` from time to time, and returns `None` once it is true.
// Its loop keeps no address of a thread-local over a poll, whatever that does: it asks `again`, and what reads one is
// in a frame of its own.
#[cold]
pub(super) fn hold_in_job<F: Future>(
    mut future: Pin<&mut F>,
    why: HeldFor,
    gives_way: &dyn Fn() -> bool,
) -> Option<F::Output> {
    let job = context::with(|cx| cx.job_ref()).expect("the caller runs a job");
    let parker = Parker::woken();
    let waker = parker.waker();
    let mut held = HeldWait::begin();
    let in_hook = OnceCell::new();
    tell_if_survived(context::again());
    loop {
        unwind_if_cancelled(job.header());
        if parker.take() {
            refill();
            if let Poll::Ready(output) =
                poll_in_own_frame(future.as_mut(), &mut Context::from_waker(&waker))
            {
                job.header().set_waits_for(0);
                return Some(output);
            }
            continue;
        }
        if is_driving() {
            // A job that unwinds waits to the end, so its cancel must not end the driving: time would never advance.
            let is_over = || {
                let header = job.header();
                parker.is_woken() || !is_unwinding(header) && header.state.is_cancelled()
            };
            panic_hook::drive_until(&in_hook, &is_over);
            continue;
        }
        if gives_way() {
            return None;
        }
        if let Some(shared) = context::again().shared() {
            shared.process.assert_here();
        }
        let _waiting = Waiting::begin(&job);
        let _shown = (why == HeldFor::Wait).then(|| Shown::begin(&job));
        let _fork_wait = context::again().fork_wait();
        let _announced = hand_off_worker(job.clone(), WhyHeld::Wait(why));
        park_thread_in_job(&job, &parker, &mut held, gives_way);
    }
}

/// Gives the next poll of the wait a fresh budget.
// Not inlined: see `hold_in_job`.
#[inline(never)]
fn refill() {
    let here = context::here();
    here.refill(
        here.shared()
            .map_or(u32::MAX, |shared| shared.config.poll_budget),
    );
}

/// Whether the calling thread drives a test runtime.
// Not inlined: see `hold_in_job`.
#[inline(never)]
fn is_driving() -> bool {
    FEATURES.driver.is_driving()
}

/// While it lives, the job's thread does not count against the bound of spare threads.
struct Waiting(Option<Arc<Shared>>);

impl Waiting {
    fn begin(job: &JobRef) -> Waiting {
        let shared = crate::scheduler::workers::shared::find(job.header().runtime());
        if let Some(shared) = &shared {
            shared.threads_held_in_wait.fetch_add(1, Ordering::Relaxed);
        }
        Waiting(shared)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.threads_held_in_wait.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Notes whether `header`'s job, which is the running one, holds the thread in a wait, and with it all outer jobs.
// Not inlined: see `hold_in_job`.
#[inline(never)]
pub(super) fn note_holding(header: &Header, holds: bool) {
    header.set_holds_in_wait(holds);
    context::again().outer_runs.set_holds_in_wait(holds);
}

/// While it lives, who joins the job, or an outer one, sees that the job waits.
struct Shown<'a>(&'a Header);

impl Shown<'_> {
    fn begin(job: &JobRef) -> Shown<'_> {
        note_holding(job.header(), true);
        Shown(job.header())
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        note_holding(self.0, false);
    }
}

/// How far a shutdown of a runtime has come.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Shutdown {
    No,
    Begun,
    Stopped,
}

/// How far the shutdown of this runtime has come. No worker fires timers once it has stopped, and the thread that shuts
/// it down may wait in a destructor itself: so this does.
fn progress_of_shutdown(runtime: u16) -> Shutdown {
    match crate::scheduler::workers::shared::find(runtime) {
        Some(shared) if shared.is_stopped() => {
            shared.fire_due_after_stop();
            Shutdown::Stopped
        }
        Some(shared) if shared.is_closing() => Shutdown::Begun,
        _ => Shutdown::No,
    }
}

/// What a wait that holds its thread knows and has reported, over all of its parks.
struct HeldWait {
    since: Instant,
    /// How far the runtime's shutdown had come when the future was polled, or was woken to be.
    shutdown: Shutdown,
    /// Whether it was reported that the wait holds its thread.
    is_told: bool,
    /// Whether it was reported that suspended jobs must resume on the thread.
    is_told_of_pinned: bool,
}

impl HeldWait {
    fn begin() -> HeldWait {
        HeldWait {
            since: Instant::now(),
            shutdown: Shutdown::No,
            is_told: false,
            is_told_of_pinned: false,
        }
    }

    /// How long the job parks until it checks again. A shutdown is waited for as closely as it can be.
    fn pause(&self) -> Duration {
        match self.shutdown {
            Shutdown::No => {
                let part = self.since.elapsed() / RECHECKED_PART;
                part.clamp(RECHECK, RECHECK_AT_LAST)
            }
            Shutdown::Begun | Shutdown::Stopped => RECHECK,
        }
    }

    /// The job has parked for a moment, and its wait goes on: reports what is due.
    fn report(&mut self, job: &Header) {
        let cx = context::here();
        let pinned = cx.pinned_here().map_or(0, PinnedQueue::len);
        if pinned > 0 && !self.is_told_of_pinned {
            self.is_told_of_pinned = true;
            report::holds_pinned_jobs(LateName::of(job), pinned);
        }
        let held = self.since.elapsed();
        if self.is_told || held < RECHECK {
            return;
        }
        // The monitor lists the threads of the pool, but such a wait is announced to it.
        let is_of_pool = cx.outbox().is_some();
        let bound = cx.shared().map(|shared| shared.config.stuck_after);
        if is_of_pool {
            let is_at_end = cx.is_panicking() || cx.is_ending();
            if is_at_end && bound.is_none_or(|bound| held >= bound) {
                self.is_told = true;
                report::holds_thread(LateName::of(job), held);
            }
        } else if is_unwinding(job) || job.is_being_ended() {
            self.is_told = true;
            report::keeps_block_on(LateName::of(job), held);
        }
    }
}

/// Parks until the parker is woken, or the wait is over for another reason.
// Not inlined: see `hold_in_job`.
#[inline(never)]
fn park_thread_in_job(
    job: &JobRef,
    parker: &Arc<Parker>,
    held: &mut HeldWait,
    gives_way: &dyn Fn() -> bool,
) {
    let header = job.header();
    header.extensions.lock().blocked = Some(thread::current());
    // A job that unwinds waits to the end, because it cannot be unwound twice.
    let unwinding = is_unwinding(header);
    if header.state.block() || unwinding {
        let is_over = || parker.is_woken() || !unwinding && header.state.is_cancelled();
        while !is_over() && !gives_way() {
            let shutdown = progress_of_shutdown(header.runtime());
            if shutdown > held.shutdown {
                // The future is polled again: a scope waits neither for what a stopped runtime ends itself, nor for
                // what shuts it down.
                held.shutdown = shutdown;
                parker.waker().wake();
            }
            parker.park_timeout(held.pause());
            if !is_over() && !gives_way() {
                held.report(header);
            }
        }
        header.state.unblock();
    }
    header.extensions.lock().blocked = None;
}
