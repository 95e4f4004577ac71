//! The monitor: a thread that checks every worker every few milliseconds, so that a job that blocks or computes stops
//! no other job. It is the `sysmon` of Go's scheduler; here a stuck worker is retaken.
//!
//! Steps of a round ([`observe`]), for each worker whose owner is in the same run of the same job as a round ago:
//! 1. After 0.75 ms, if another worker sleeps ([`take_overdue`]): moves what is overdue (the next slot, the overflow
//!    queue, due timers, reports of the reactor) to the injector, where the other worker finds it.
//! 2. After `stuck_after`, if the thread really ran or was blocked that long, and did not just wait for a core
//!    ([`retake`]): revokes the lease, hands the worker to a spare thread, and reports the job each time, unless it
//!    forks.
//!
//! Retaking a worker, in order: [`revoke`] locks the core as a foreign thread, checks that the run word still names
//! the stuck run, adds the thread to the detached ones, clears the run word, and moves to the next lease. Then
//! [`serve::hand_off`] gives the new lease to a spare thread. The stuck thread gets `Revoked` when it next takes the
//! lock, and becomes a spare thread itself.
//!
//! The system decides whether a thread is stuck. A thread that is blocked (`/proc/…/stat`) is. A runnable thread is
//! stuck only if it has run (`/proc/…/schedstat`) for at least half of `stuck_after` since it was first seen in the
//! run; otherwise it waits for a core. Where these files are missing, the wall clock decides.
//!
//! While every worker sleeps, so does the monitor. Rounds are shortest while one worker is busy and another sleeps.

#![allow(unsafe_code)]

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Lease,
    job::{JobRef, runnable::Runnable},
    reactor,
    report::{self, JobName},
    scheduler::{
        threads::{detached::Activity, pool::Handoff, serve},
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
/// The most ready callbacks, and the most due timers, that are taken from a worker in one round. All of this happens
/// under the worker's lock, and the other worker moves the callbacks to its own queue: a whole queue of a million, taken
/// in each round, would be carried to and fro and never run.
const TAKEN_AT_ONCE: usize = 256;
/// After so many rounds in which all workers slept, the monitor sleeps too.
const QUIET_ROUNDS: u32 = 20;

fn all_sleep(shared: &Shared) -> bool {
    shared.sleepers.sleeping() == shared.workers.len()
}

/// What the monitor does when every worker has slept for a while.
pub(crate) type WhenQuiet = Box<dyn FnMut(&Shared) + Send>;

/// Starts the monitor's thread.
pub(crate) fn start(shared: &Arc<Shared>, when_quiet: WhenQuiet) -> std::io::Result<()> {
    let watched = shared.clone();
    let name = format!("{}-monitor", shared.config.name);
    let handle = thread::Builder::new()
        .name(name)
        .stack_size(256 << 10)
        .spawn(move || {
            watch(&watched, when_quiet);
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
}

/// What the system reports about a thread.
#[derive(Clone, Copy)]
struct ThreadTimes {
    /// Time spent on a core.
    ran: Duration,
    /// Whether the thread waits for anything but a core.
    is_blocked: bool,
}

fn watch(shared: &Arc<Shared>, mut when_quiet: WhenQuiet) {
    let mut watched: Vec<Watched> = shared
        .workers
        .iter()
        .map(|worker| Watched {
            running: worker.running(),
            since: Instant::now(),
            times: None,
            at_bound: false,
        })
        .collect();
    let mut quiet = 0;
    while !shared.is_stopped() {
        thread::park_timeout(pause(shared));
        quiet = match all_sleep(shared) {
            true => quiet + 1,
            false => 0,
        };
        if quiet > QUIET_ROUNDS {
            when_quiet(shared);
            let is_quiet = || all_sleep(shared) && !shared.is_stopped();
            shared.monitor.sleep_until_a_worker_wakes(is_quiet);
        }
        let orphans = std::mem::take(&mut *lock(&shared.orphans));
        for handoff in orphans {
            let refused = serve::hand_off(shared, handoff).err();
            lock(&shared.orphans).extend(refused.map(|refused| refused.handoff));
        }
        for (worker, watched) in shared.workers.iter().zip(&mut watched) {
            observe(shared, worker, watched);
        }
        let busy = shared.workers.len() - shared.sleepers.sleeping().min(shared.workers.len());
        shared.detached.lower_if_crowded(busy);
    }
}

fn pause(shared: &Shared) -> Duration {
    match shared.sleepers.sleeping() {
        // A worker may go to sleep at this very moment, so the pause must not be long.
        0 => (shared.config.stuck_after / 4).clamp(WATCHFUL, CALM),
        _ => WATCHFUL.min(shared.config.stuck_after / 4),
    }
}

fn observe(shared: &Arc<Shared>, worker: &Worker, watched: &mut Watched) {
    let running = worker.running();
    if running != watched.running || running.job().is_none() {
        *watched = Watched {
            running,
            since: Instant::now(),
            times: None,
            at_bound: false,
        };
        return;
    }
    let stuck = watched.since.elapsed();
    if stuck >= shared.config.stuck_after && is_really_stuck(shared, worker, watched) {
        retake(shared, worker, watched);
    } else if stuck >= WATCHFUL.min(TICK) && shared.sleepers.sleeping() > 0 {
        take_overdue(shared, worker, running);
        take_reports(shared);
    }
    if watched.times.is_none() {
        watched.times = thread_times(worker);
    }
}

/// Step 1: moves what is overdue at a busy worker to the injector.
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
    search::fire_and_unlock(worker, core, due);
    if overflow.len() > 0 {
        ready::inject_all(shared, overflow);
    }
    ready::inject_callbacks(shared, callbacks);
    if let Some(job) = slot {
        shared.counters.overdue.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the slot held the job's right to run.
        ready::inject(shared, unsafe { Runnable::new(job) });
    }
}

/// Step 1 for the reactor, which nobody polls while this worker is busy and the others are parked.
fn take_reports(shared: &Shared) {
    if shared.reactor.is_unattended() {
        let mut batch = reactor::ReportBatch::default();
        if shared.reactor.look(&mut batch) {
            shared.reactor.handle(&mut batch);
        }
    }
}

/// Whether the thread is blocked, or has run long enough that it did not just wait for a core.
fn is_really_stuck(shared: &Shared, worker: &Worker, watched: &Watched) -> bool {
    let (Some(then), Some(now)) = (watched.times, thread_times(worker)) else {
        return true;
    };
    // Half, because the first sample is a round younger than the run, and a running thread's times lag by a tick.
    now.is_blocked || now.ran.saturating_sub(then.ran) >= shared.config.stuck_after / 2
}

fn thread_times(worker: &Worker) -> Option<ThreadTimes> {
    let thread = format!(
        "/proc/self/task/{}",
        worker.owner_thread.load(Ordering::Relaxed)
    );
    let times = fs::read_to_string(format!("{thread}/schedstat")).ok()?;
    let ran = times.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string(format!("{thread}/stat")).ok()?;
    // The state is the first word after the name, which is in parentheses and may contain parentheses.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(ThreadTimes {
        ran: Duration::from_nanos(ran),
        is_blocked: state != 'R',
    })
}

/// Step 2: takes the worker from the stuck thread and hands it to a spare thread.
fn retake(shared: &Arc<Shared>, worker: &Worker, watched: &mut Watched) {
    if !shared.pool.has_spare_thread(shared) {
        if !std::mem::replace(&mut watched.at_bound, true) {
            serve::report_no_spare_thread(shared);
        }
        return;
    }
    let Some((job, lease)) = revoke(shared, worker, watched.running) else {
        return;
    };
    shared.counters.detached.fetch_add(1, Ordering::Relaxed);
    // A fork is expected to compute, and shares what it can.
    if !shared.forks.is_forking(&job) {
        report::stuck(&JobName::of(job.header()), watched.since.elapsed());
    }
    let handoff = Handoff {
        worker: worker.index,
        lease,
    };
    if let Err(refused) = serve::hand_off(shared, handoff) {
        report::no_thread(refused.error.as_ref());
        lock(&shared.orphans).push(refused.handoff);
    }
}

/// Revokes the owner's lease if the owner is still in that run, and notes that the thread is detached. All of it under
/// the lock, so before the thread can notice. Returns the job that it is stuck in, and the new lease.
fn revoke(shared: &Shared, worker: &Worker, running: RunWord) -> Option<(JobRef, Lease)> {
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
    shared.detached.add(thread, job.clone(), activity);
    worker.set_running_none();
    Some((job, foreign.revoke()))
}
