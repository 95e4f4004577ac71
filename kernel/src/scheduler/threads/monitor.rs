//! The monitor: a thread that checks every worker every few milliseconds, so that a job that blocks, or computes for too
//! long, stops no other job. It is the `sysmon` of Go's scheduler; here a worker is retaken from its stuck thread.
//!
//! A round begins with the orphans: workers for which no spare thread was found are handed out again.
//!
//! Steps of a round ([`observe`]), for each worker whose owner is in the same run of the same job as a round ago:
//! 1. After 0.75 ms, if another worker sleeps ([`take_overdue`]): moves the next slot, the overflow queue and some ready
//!    callbacks to the injector, fires due timers and handles the reactor's ready events; the sleeping worker finds the
//!    jobs in the injector. [Shares](crate::queue::sharing) the ring.
//! 2. After half of `stuck_after` ([`note_long_run`]): notes the run for the [suspects](super::suspects).
//! 3. After `stuck_after`, if the thread is blocked or really ran, and did not just wait for a core (see below;
//!    [`retake`]): revokes the lease and hands the worker to a spare thread. While kinds of jobs are suspect, a thread
//!    that stays blocked for two rounds loses its worker before `stuck_after`, unless the thread is in a fork.
//!
//! While another worker sleeps, the monitor lends any ring in which a job has waited for a tick although its owner keeps
//! running jobs ([`lend_long_queue`]). If a job waits that long in the injector, the monitor wakes a sleeper.
//!
//! Then, for all together:
//! 4. empties the outboxes of the detached threads ([`super::outbox`]);
//! 5. looks at the detached threads ([`detached_round`]): starts threads for the quarantine, and reports jobs that
//!    exceed `stuck_after` there;
//! 6. lowers the priority of detached threads if cores are short, reports what is [held up](super::held_up), and
//!    looks at the [blocking pools](super::blocking_pools);
//! 7. samples how long messages wait ([`super::queue_watch`]).
//!
//! Retaking a worker, in order: [`revoke`] locks the core as a foreign thread, checks that the run word still names the
//! stuck run, adds the thread to the detached ones, clears the run word, and issues the next lease. Then
//! [`serve::hand_off`] gives the new lease to a spare thread. The stuck thread gets `Revoked` when it next takes the
//! lock, and becomes a spare thread itself.
//!
//! The monitor reads from the system whether a thread is stuck. A thread that is blocked (`/proc/…/stat`) is stuck. A runnable thread
//! is stuck only if it has run (`/proc/…/schedstat`) for at least half of `stuck_after` since it was first seen in the
//! run; otherwise it waits for a core. Where these files are missing, the wall clock decides.
//!
//! While every worker sleeps, so does the monitor, unless one of these steps is due soon ([`is_quiet`]). Rounds are
//! shortest while one worker is busy and another sleeps, and while kinds of jobs are suspect.

#![allow(unsafe_code)]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Lease,
    job::{JobRef, foreign_call::ForeignCalls, runnable::Runnable},
    reactor,
    report::{self, LateName, LateNames, NoSpareThread, Retake, StuckRun, panic_message},
    scheduler::{
        threads::{
            blocking_threads,
            detached::{Activity, Cause, DetachedRun},
            detached_round::{self, is_fork, note_offence},
            held_up::{self, LastLook},
            overdue_watch::OverdueWatch,
            pool::Handoff,
            serve,
            thread_times::ThreadTimes,
        },
        workers::{ready, run_word::RunWord, search, shared::Shared, worker::Worker},
    },
    sys::lock,
    timer::{clock::TICK, due::Due},
};

/// The pause between rounds while another worker could take what is overdue: short enough that two rounds and a wake-up
/// fit into two ticks.
const WATCHFUL: Duration = Duration::from_micros(750);
/// The longest pause between two rounds while all workers are busy.
const CALM: Duration = Duration::from_micros(2500);
/// The most ready callbacks, and the most due timers, that are taken from a worker in one round. They are taken under the
/// worker's lock, and whichever worker finds the callbacks moves them to its own queue. A queue of a million that moved
/// as a whole in each round would go back and forth between workers and never run.
const TAKEN_AT_ONCE: usize = 256;
/// After this many rounds in a row with nothing to do ([`is_quiet`]), the monitor sleeps too.
const QUIET_ROUNDS: u32 = 20;

fn all_sleep(shared: &Shared) -> bool {
    shared.sleepers.sleeping() == shared.workers.len()
}

/// What the monitor does when every worker has slept for a while.
pub(crate) type WhenQuiet = Box<dyn FnMut(&Shared) + Send>;

/// Starts the monitor's thread.
pub(crate) fn start(shared: &Arc<Shared>, mut when_quiet: WhenQuiet) -> std::io::Result<()> {
    let watched = shared.clone();
    let name = format!("{}-monitor", shared.config.name);
    let handle = thread::Builder::new()
        .name(name)
        .stack_size(256 << 10)
        .spawn(move || {
            let _reports = watched.subscriber.enter();
            report::forbid_user_code();
            // A panic would be a bug, but without the monitor a job that is stuck would stop others for good.
            while let Err(payload) =
                catch_unwind(AssertUnwindSafe(|| watch(&watched, &mut when_quiet)))
            {
                report::monitor_panicked(&panic_message(payload.as_ref()));
                std::mem::forget(payload);
            }
            watched.thread_ended();
        })?;
    shared.monitor.begin(handle.thread().clone());
    Ok(())
}

/// What the monitor knows of one worker.
struct Watched {
    running: RunWord,
    since: Instant,
    times: Option<ThreadTimes>,
    /// Whether the lack of a spare thread was already reported for this run.
    at_bound: bool,
    /// Whether the run was noted as a long one.
    is_long: bool,
}

impl Watched {
    fn new(running: RunWord) -> Watched {
        Watched {
            running,
            since: Instant::now(),
            times: None,
            at_bound: false,
            is_long: false,
        }
    }
}

fn watch(shared: &Arc<Shared>, when_quiet: &mut WhenQuiet) {
    let begin = |worker: &Worker| {
        let ring_watch = OverdueWatch::new(worker.thief.ends(), Instant::now());
        (Watched::new(worker.running()), ring_watch)
    };
    let mut watched: Vec<(Watched, OverdueWatch)> = shared.workers.iter().map(begin).collect();
    let mut injector_watch = OverdueWatch::new(shared.injector.ends(), Instant::now());
    let (mut quiet, mut held_up) = (0, LastLook::default());
    while !shared.is_stopped() {
        thread::park_timeout(pause(shared));
        quiet = match is_quiet(shared) {
            true => quiet + 1,
            false => 0,
        };
        if quiet > QUIET_ROUNDS {
            when_quiet(shared);
            shared.queues.sample_before_sleep(&shared.clock);
            let may_sleep = || is_quiet(shared) && !shared.is_stopped();
            shared.monitor.sleep_until_a_worker_wakes(may_sleep);
        }
        let orphans = std::mem::take(&mut *lock(&shared.orphans));
        for handoff in orphans {
            let refused = serve::hand_off(shared, handoff).err();
            lock(&shared.orphans).extend(refused.map(|refused| refused.handoff));
        }
        for (worker, (watched, ring_watch)) in shared.workers.iter().zip(&mut watched) {
            lend_long_queue(shared, worker, ring_watch);
            observe(shared, worker, watched);
        }
        if is_overdue(shared, &mut injector_watch, shared.injector.ends()) {
            shared.wake_one();
        }
        ready::inject_all(shared, shared.pool.outboxes.take_all());
        detached_round::run(shared);
        let busy = shared.workers.len() - shared.sleepers.sleeping().min(shared.workers.len());
        shared.detached.lower_if_crowded(busy);
        if held_up.report_at_times(shared) | blocking_threads::look(shared) {
            quiet = 0;
        }
        shared.queues.step(&shared.clock);
    }
}

/// Whether the monitor may sleep while the workers do.
fn is_quiet(shared: &Shared) -> bool {
    all_sleep(shared)
        && !shared.suspects.is_any()
        && shared.quarantine.len() == 0
        && !shared.detached.is_any_unreported()
        && !held_up::must_watch(shared)
        && !shared.blocking.must_look()
        && !shared.pool.outboxes.is_any_begun()
}

fn pause(shared: &Shared) -> Duration {
    if shared.suspects.is_any() {
        return WATCHFUL.min(shared.config.stuck_after / 4);
    }
    match shared.sleepers.sleeping() {
        // A worker may go to sleep at this very moment, so the pause must not be long.
        0 => (shared.config.stuck_after / 4).clamp(WATCHFUL, CALM),
        _ => WATCHFUL.min(shared.config.stuck_after / 4),
    }
}

fn observe(shared: &Arc<Shared>, worker: &Worker, watched: &mut Watched) {
    let running = worker.running();
    if running != watched.running || running.job().is_none() {
        *watched = Watched::new(running);
        return;
    }
    let stuck = watched.since.elapsed();
    if stuck >= shared.config.stuck_after / 2 && !watched.is_long {
        note_long_run(shared, worker, watched);
    }
    let is_stuck = match stuck >= shared.config.stuck_after {
        true => is_really_stuck(shared, worker, watched),
        false => blocks_like_others(shared, worker, watched),
    };
    let is_taken = is_stuck && retake(shared, worker, watched);
    if !is_taken && stuck >= WATCHFUL.min(TICK) && shared.sleepers.sleeping() > 0 {
        take_overdue(shared, worker, running);
        take_ready(shared);
        worker.sharing.share();
        if search::sees_work(shared) {
            shared.wake_one();
        }
    }
    if watched.times.is_none() {
        watched.times = thread_times(worker);
    }
}

/// Whether a job has waited for a tick in the queue with these ends, while a worker sleeps.
fn is_overdue(shared: &Shared, watch: &mut OverdueWatch, ends: (u64, u64)) -> bool {
    watch.is_overdue(ends, Instant::now(), shared.sleepers.sleeping() > 0)
}

/// Lends the worker's ring if a job has waited in it for a tick, although the owner goes from job to job.
fn lend_long_queue(shared: &Shared, worker: &Worker, ring_watch: &mut OverdueWatch) {
    if is_overdue(shared, ring_watch, worker.thief.ends()) {
        worker.sharing.lend();
        shared.wake_one();
    }
}

/// Step 1: does what is overdue at a busy worker, and moves its jobs to the injector.
fn take_overdue(shared: &Shared, worker: &Worker, running: RunWord) {
    let mut due = Due::default();
    let mut core = worker.core.enter_foreign();
    if worker.running() != running {
        return;
    }
    core.admit(&worker.arrivals);
    let slot = core.next.take();
    // No other worker sees the overflow queue, and the owner sends it off only at its next look.
    let overflow = core.take_overflow();
    let now = shared.clock.tick_at(shared.clock.now());
    let ready = &mut *core;
    if ready.wheel.next_tick().is_some_and(|tick| tick <= now) {
        let mut take = |entry| due.add(entry, &mut ready.callbacks);
        ready.wheel.advance(now, TAKEN_AT_ONCE, &mut take);
    }
    let callbacks = ready.callbacks.take_first(TAKEN_AT_ONCE);
    let mut calls = ForeignCalls::default();
    search::fire_and_unlock(worker, core, due, &mut calls);
    if overflow.len() > 0 {
        ready::inject_all(shared, overflow);
    }
    let moved = callbacks.len() as u64;
    shared
        .counters
        .moved_callbacks
        .fetch_add(moved, Ordering::Relaxed);
    ready::inject_callbacks(shared, callbacks);
    ready::ready_calls(shared, calls);
    if let Some(job) = slot {
        shared.counters.overdue.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the slot held the job's right to run.
        ready::inject(shared, unsafe { Runnable::new(job) });
    }
}

/// Step 1 for the reactor, which nobody polls while this worker is busy and the others are parked.
fn take_ready(shared: &Shared) {
    if shared.reactor.is_unattended() {
        let mut batch = reactor::ReadyBatch::default();
        if shared.reactor.look(&mut batch) {
            search::handle_ready(shared, &mut batch);
        }
    }
}

/// Whether the thread is blocked, or has run long enough that it did not just wait for a core.
fn is_really_stuck(shared: &Shared, worker: &Worker, watched: &Watched) -> bool {
    let (Some(then), Some(now)) = (watched.times, thread_times(worker)) else {
        return true;
    };
    // Half of `stuck_after` suffices, because the first sample is taken a round after the run began, and the times of a running
    // thread lag by a tick.
    now.is_blocked || now.ran.saturating_sub(then.ran) >= shared.config.stuck_after / 2
}

/// While a kind of jobs is suspect, a job that is blocked in two successive rounds counts as stuck before
/// `stuck_after`. A job in a fork does not: the threads of a fork wait for each other, and for memory.
fn blocks_like_others(shared: &Shared, worker: &Worker, watched: &Watched) -> bool {
    if !shared.suspects.is_any() || watched.since.elapsed() < 2 * WATCHFUL {
        return false;
    }
    let (Some(then), Some(now)) = (watched.times, thread_times(worker)) else {
        return false;
    };
    let is_blocked = then.is_blocked && now.is_blocked && then.ran == now.ran;
    is_blocked && running_job(worker, watched.running).is_some_and(|job| !is_fork(shared, &job))
}

fn thread_times(worker: &Worker) -> Option<ThreadTimes> {
    ThreadTimes::of(worker.owner_thread.load(Ordering::Relaxed))
}

/// Notes that the run has reached half of `stuck_after`, if the thread really spent it in the job.
fn note_long_run(shared: &Shared, worker: &Worker, watched: &mut Watched) {
    let now = thread_times(worker);
    let computed = |(then, now): (ThreadTimes, ThreadTimes)| {
        now.is_blocked || now.ran.saturating_sub(then.ran) >= shared.config.stuck_after / 4
    };
    if !watched.times.zip(now).is_none_or(computed) {
        return;
    }
    watched.is_long = true;
    let Some(job) = running_job(worker, watched.running) else {
        return;
    };
    detached_round::note_long_run(shared, &job);
}

/// The job of the run, if the worker's owner is still in it.
fn running_job(worker: &Worker, running: RunWord) -> Option<JobRef> {
    let _core = worker.core.enter_foreign();
    if worker.running() != running {
        return None;
    }
    // SAFETY: as in `revoke`.
    Some(unsafe { JobRef::new_for(running.job()?) })
}

/// Step 3: takes the worker from the stuck thread and hands it to a spare thread. False if there is no spare thread, or
/// if the thread is no longer stuck.
fn retake(shared: &Arc<Shared>, worker: &Worker, watched: &mut Watched) -> bool {
    if !shared.pool.has_spare_thread(shared) {
        if !std::mem::replace(&mut watched.at_bound, true) {
            stays_stuck(shared, worker, watched);
        }
        return false;
    }
    let Some((lease, job)) = revoke(shared, worker, watched) else {
        return false;
    };
    // If the worker was retaken early, the job may not have exceeded `stuck_after`. It offends only when it does; see
    // `detached_round`.
    if watched.since.elapsed() >= shared.config.stuck_after {
        note_offence(shared, &job, Instant::now());
    }
    shared.counters.detached.fetch_add(1, Ordering::Relaxed);
    let handoff = Handoff {
        worker: worker.index,
        lease,
    };
    if let Err(refused) = serve::hand_off(shared, handoff) {
        report::no_thread(refused.error.as_ref());
        lock(&shared.orphans).push(refused.handoff);
    }
    true
}

/// No spare thread is left, so the worker stays with its stuck thread: reports that, and which job it is. Until the
/// stuck run ends, each round moves what is due at this worker to others (step 1).
fn stays_stuck(shared: &Shared, worker: &Worker, watched: &Watched) {
    let bound = shared.config.spare_threads;
    serve::report_no_spare_thread(shared, bound, NoSpareThread::WorkerIsStuck);
    let Some(job) = running_job(worker, watched.running) else {
        return;
    };
    detached_round::note_offence(shared, &job, Instant::now());
    let (name, stuck) = (LateName::of(job.header()), watched.since.elapsed());
    let run = StuckRun {
        held: stuck,
        retake: Retake::Refused,
        killed: None,
    };
    report::stuck(name, run, LateNames::none());
}

/// Revokes the owner's lease if the owner is still in that run, and notes that the thread is detached. All of this
/// happens under the lock, so before the thread can notice it. Returns the new lease and the job, which
/// [`detached_round`] reports.
fn revoke(shared: &Shared, worker: &Worker, watched: &Watched) -> Option<(Lease, JobRef)> {
    let running = watched.running;
    let blocked = thread_times(worker).is_none_or(|now| now.is_blocked);
    let mut foreign = worker.core.enter_foreign();
    if worker.running() != running {
        return None;
    }
    // SAFETY: the owner runs that job, and takes the lock before the job can be freed; it cannot take the lock while
    // this thread holds it.
    let job = unsafe { JobRef::new_for(running.job()?) };
    let thread = worker.owner_thread.load(Ordering::Relaxed);
    let activity = match blocked {
        true => Activity::Block,
        false if shared.forks.is_forking(&job) => Activity::Fork,
        false => Activity::Compute,
    };
    let run = DetachedRun {
        job: job.clone(),
        activity,
        cause: Cause::Retaken,
        since: watched.since,
    };
    shared.detached.add(thread, run);
    worker.set_running_none();
    // The ring is shared until the next owner looks around.
    worker.sharing.share();
    Some((foreign.revoke(), job))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::{scheduler::workers::config::Config, timer::clock::ClockKind};

    #[test]
    fn a_panic_does_not_end_the_monitor() {
        let config = Config {
            workers: 1,
            ..Config::new()
        };
        let (shared, handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        for handoff in handoffs {
            assert!(serve::hand_off(&shared, handoff).is_ok());
        }
        let (called, calls) = mpsc::channel();
        let when_quiet = move |_: &Shared| {
            called.send(()).unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        };
        start(&shared, Box::new(when_quiet)).unwrap();
        for _ in 0..3 {
            calls.recv().unwrap();
        }
        shared.stop();
        // Its end drops the sender.
        while calls.recv().is_ok() {}
    }
}
