//! The monitor: a thread that checks every worker every few milliseconds, so that a job that blocks, or computes for
//! too long, stops no other job. It is the `sysmon` of Go's scheduler; here a worker is retaken from its stuck thread.
//!
//! A round begins with the [orphans]: workers for which no spare thread was found. They are offered to threads again.
//! If there is still no thread for an orphan, step 1 is done for it, because all threads may be waiting for its timers,
//! and a sleeper is woken if the orphan's queue has jobs, or lazy ones: a sleeper's last check ignores a few of these.
//!
//! Steps of a round ([`observe`]; numbered by time), for each worker whose owner is in the same run as a round ago:
//! 1. After 0.75 ms, if another worker sleeps or finishes run after run ([`take_overdue`]): moves the job in the next
//!    slot, the overflow queue and some ready callbacks to the injector, fires due timers, handles the reactor's ready
//!    events, and [shares](crate::queue::sharing) the ring. The other worker finds the jobs in the injector. So a
//!    sleeping worker need not wake each millisecond only to check, and neither a job that holds its thread for less
//!    than the bound, nor a thread that waits for a core, stops what its worker has to wake.
//! 2. After half of `stuck_after` ([`note_long_run`]): notes the run for the [suspects](super::suspects).
//! 3. After `stuck_after`, if the system says that the thread is stuck ([`retake`]): revokes the lease and hands the
//!    worker to a spare thread. While kinds of jobs are suspect, a thread that stays blocked for two rounds loses its
//!    worker before `stuck_after`, unless the thread is in a fork.
//!
//! While another worker sleeps, the monitor lends any ring in which a job has waited for a tick although its owner
//! keeps running jobs ([`lend_long_queue`]). If a job waits that long in the injector, the monitor wakes a sleeper.
//!
//! Then, for all together:
//! 4. empties the outboxes of the detached threads ([`super::outbox`]), checks the threads in `block_on`
//!    ([`super::visits`]), and, if a fork lacks a thief, finds out which of the threads that fork are blocked
//!    ([`find_blocked`](crate::scheduler::services::Forks::find_blocked));
//! 5. checks the detached threads ([`detached_round`]): starts threads for the quarantine, and reports jobs that
//!    exceed `stuck_after` there;
//! 6. lowers the priority of threads that compute if cores are short ([`crowd`]), reports what is [held
//!    up](super::held_up), and checks the [blocking pools](super::blocking_pools);
//! 7. samples how long messages wait ([`super::queue_watch`]), and looks for circles of waits among what the sample
//!    has found ([`circle_watch`]).
//!
//! Retaking a worker, in order: [`revoke`] locks the core as a foreign thread, checks that the run word still names the
//! stuck run, adds the thread to the detached ones, clears the run word, and issues the next lease. Then
//! [`serve::hand_off`] gives the new lease to a spare thread. The stuck thread gets `Revoked` when it next takes the
//! lock, and becomes a spare thread itself.
//!
//! The monitor reads from the system whether a thread is stuck. A thread that is blocked (`/proc/…/stat`) at two checks
//! in a row is stuck. A runnable thread is stuck only if it was seen to run (`/proc/…/schedstat`) in the second half of
//! `stuck_after`; otherwise it waits for a core. Where these files are missing, the wall clock decides.
//!
//! Without memory a round does less ([`round_memory`](super::round_memory)).
//!
//! While every worker sleeps, so does the monitor, unless one of these steps is due soon ([`is_quiet`]). Rounds are
//! shortest while one worker is busy and another sleeps, and while kinds of jobs are suspect.

#![allow(unsafe_code)]

pub(crate) mod circle_watch;
mod conditions;
mod orphans;
mod stays_stuck;
mod watched;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Lease,
    job::JobRef,
    queue::queue_counts::QueueCounts,
    report::{self, panic_message},
    scheduler::{
        threads::{
            blocking_threads, crowd,
            detached_round::{self, is_fork, note_offence},
            detached_run::{Activity, Cause, DetachedRun, RunningCode},
            held_up::{self, LastCheck},
            monitor::{
                circle_watch::CircleWatch,
                conditions::{Conditions, Taker, taker_of_round},
                watched::{Holding, Watched},
            },
            overdue::{Moved, take_overdue, take_ready},
            overdue_watch::OverdueWatch,
            pool::Handoff,
            priority,
            round_memory::RoundMemory,
            senders::Sends,
            serve,
            thread_times::ThreadTimes,
            visits,
        },
        workers::{ready, run_word::RunWord, search, shared::Shared, worker::Worker},
    },
    sys::lock,
};

/// The pause between rounds while another worker could take what is overdue: two rounds and a wake-up take two ticks.
const WATCHFUL: Duration = Duration::from_micros(750);
/// The longest pause between two rounds while all workers are busy.
const CALM: Duration = Duration::from_micros(2500);
/// After this many rounds in a row with nothing to do ([`is_quiet`]), the monitor sleeps too.
const QUIET_ROUNDS: u32 = 20;

fn all_sleep(shared: &Shared) -> bool {
    shared.sleepers.sleeping() == shared.workers.len()
}

/// Starts the monitor's thread.
pub(crate) fn start(
    shared: &Arc<Shared>,
    mut circles: Box<dyn CircleWatch>,
) -> std::io::Result<()> {
    let watched = shared.clone();
    let name = format!("{}-monitor", shared.config.name);
    let handle = thread::Builder::new()
        .name(name)
        .stack_size(256 << 10)
        .spawn(move || {
            let _reports = watched.subscriber.enter();
            report::forbid_user_code();
            // It runs for a few microseconds, and others wait for what it does.
            priority::shorten_slices(watched.thread_number(), priority::of_this_thread());
            // A panic would be a bug, but without the monitor a job that is stuck would stop others for good.
            while let Err(payload) =
                catch_unwind(AssertUnwindSafe(|| watch(&watched, &mut *circles)))
            {
                report::monitor_panicked(&panic_message(payload.as_ref()));
                std::mem::forget(payload);
            }
            watched.thread_ended();
        })?;
    shared.monitor.begin(handle.thread().clone());
    Ok(())
}

fn watch(shared: &Arc<Shared>, circles: &mut dyn CircleWatch) {
    let begin = |worker: &Worker| {
        let ring_watch = OverdueWatch::new(worker.thief.counts(), Instant::now());
        (Watched::new(worker.running()), ring_watch)
    };
    let mut watched: Vec<(Watched, OverdueWatch)> = shared.workers.iter().map(begin).collect();
    let mut injector_watch = OverdueWatch::new(shared.injector.counts(), Instant::now());
    let (mut quiet, mut held_up) = (0, LastCheck::default());
    while !shared.is_stopped() {
        thread::park_timeout(pause(shared));
        let memory = RoundMemory::attempt();
        quiet = match memory.is_enough() && is_quiet(shared) {
            true => quiet + 1,
            false => 0,
        };
        if quiet > QUIET_ROUNDS {
            circles.check_when_quiet(shared);
            let due = shared.queues.sample_before_sleep(&shared.clock);
            circle_watch::pass_on(shared, circles);
            if circles.must_recheck() {
                quiet = 0;
                continue;
            }
            let may_sleep = || is_quiet(shared) && !shared.is_stopped();
            // A fork that no worker may take wakes no worker, so its thread must wake the monitor itself.
            let alert = || shared.forks.alert_all();
            shared
                .monitor
                .sleep_until_a_worker_wakes(alert, may_sleep, due);
        }
        orphans::hand_off(shared, memory);
        let taker = taker_of_round(shared, &watched);
        let conditions = Conditions { memory, taker };
        for (worker, (watched, ring_watch)) in shared.workers.iter().zip(&mut watched) {
            lend_long_queue(shared, worker, ring_watch);
            observe(shared, worker, watched, conditions);
        }
        if is_overdue(shared, &mut injector_watch, shared.injector.counts()) {
            shared.wake_one();
        }
        ready::inject_all(shared, shared.pool.outboxes.take_all());
        visits::check(shared);
        let is_blocked = |number| ThreadTimes::of(number).is_some_and(|now| now.is_blocked);
        shared.forks.find_blocked(shared, &is_blocked);
        match memory {
            RoundMemory::Enough => detached_round::run(shared),
            RoundMemory::Lacking => detached_round::run_without_memory(shared),
        }
        crowd::lower_if_crowded(shared, memory);
        if memory.is_enough() {
            if held_up.report_at_times(shared) | blocking_threads::check(shared) {
                quiet = 0;
            }
            shared.queues.step(&shared.clock, circles.must_recheck());
            circle_watch::pass_on(shared, circles);
        }
    }
}

/// Whether the monitor may sleep while the workers do.
fn is_quiet(shared: &Shared) -> bool {
    all_sleep(shared)
        && !shared.suspects.is_any()
        && shared.quarantine.len() == 0
        && !shared.detached.is_any_unreported()
        && !held_up::must_watch(shared)
        && !shared.blocking.must_check()
        && !visits::must_check(shared)
        && !shared.pool.outboxes.is_any_begun()
        && !shared.forks.must_find_blocked(shared)
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

fn observe(
    shared: &Arc<Shared>,
    worker: &Worker,
    watched: &mut Watched,
    Conditions { memory, taker }: Conditions,
) {
    let running = worker.running();
    if running != watched.running || running.job().is_none() {
        *watched = Watched::new(running);
        return;
    }
    let stuck = watched.since.elapsed();
    let is_long = stuck >= shared.config.stuck_after / 2;
    let holding = match is_long {
        true => watched.check(thread_times(worker)),
        false => Holding::Unknown,
    };
    if is_long && !watched.is_long && memory.is_enough() {
        note_long_run(shared, worker, watched, holding);
    }
    let is_stuck = match stuck >= shared.config.stuck_after {
        true => holding.is_for(shared.config.stuck_after / 4),
        false => blocks_like_others(shared, worker, watched),
    };
    let is_taken = is_stuck && retake(shared, worker, watched, memory);
    if !is_taken && stuck >= WATCHFUL && taker != Taker::None {
        let moved = match taker {
            Taker::Busy => Moved::to_busy(memory),
            Taker::Sleeper | Taker::None => Moved::to_sleeper(memory),
        };
        take_overdue(shared, worker, running, moved);
        if memory.is_enough() {
            take_ready(shared);
        }
        worker.sharing.share();
        if search::sees_work(shared) {
            shared.wake_one();
        }
    }
    if watched.times.is_none() {
        watched.times = thread_times(worker);
        watched.sends = Some(Sends::at_first(operations(shared, worker)));
    }
}

/// How many operations the owner's jobs have completed.
fn operations(shared: &Shared, worker: &Worker) -> u32 {
    let owner = worker.owner_thread.load(Ordering::Relaxed);
    shared.pool.operations(owner).unwrap_or(0)
}

/// Whether a job has waited for a tick in the queue with these counts, while a worker sleeps.
fn is_overdue(shared: &Shared, watch: &mut OverdueWatch, counts: QueueCounts) -> bool {
    watch.is_overdue(counts, Instant::now(), shared.sleepers.sleeping() > 0)
}

/// Lends the worker's ring if a job has waited in it for a tick, although the owner goes from job to job.
fn lend_long_queue(shared: &Shared, worker: &Worker, ring_watch: &mut OverdueWatch) {
    if is_overdue(shared, ring_watch, worker.thief.counts()) {
        worker.sharing.lend();
        shared.wake_one();
    }
}

/// While a kind of jobs is suspect, a job that is blocked in two successive rounds counts as stuck before
/// `stuck_after`. A job in a fork does not: the threads of a fork wait for each other, and for memory.
fn blocks_like_others(shared: &Shared, worker: &Worker, watched: &mut Watched) -> bool {
    if !shared.suspects.is_any() || watched.since.elapsed() < 2 * WATCHFUL {
        return false;
    }
    let (Some(then), Some(now)) = (watched.times, thread_times(worker)) else {
        return false;
    };
    let is_fork = || {
        running_job(worker, watched.running, |_| ()).is_none_or(|(job, ())| is_fork(shared, &job))
    };
    watched.blocks = then.is_blocked && now.is_blocked && then.ran == now.ran && !is_fork();
    watched.blocks
}

fn thread_times(worker: &Worker) -> Option<ThreadTimes> {
    ThreadTimes::of(worker.owner_thread.load(Ordering::Relaxed))
}

/// Notes that the run has reached half of `stuck_after`, if the thread really spent it in the job.
fn note_long_run(shared: &Shared, worker: &Worker, watched: &mut Watched, holding: Holding) {
    if !holding.is_for(shared.config.stuck_after / 8) {
        return;
    }
    watched.is_long = true;
    let running = running_job(worker, watched.running, RunningCode::of);
    if let Some((job, RunningCode::Own)) = running {
        detached_round::note_long_run(shared, &job);
    }
}

/// The job of the run and what `ask` says of it, if the worker's owner is still in it.
fn running_job<T>(
    worker: &Worker,
    running: RunWord,
    ask: impl FnOnce(&JobRef) -> T,
) -> Option<(JobRef, T)> {
    let _core = worker.core.enter_foreign();
    if worker.running() != running {
        return None;
    }
    // SAFETY: as in `revoke`.
    let job = unsafe { JobRef::new_for(running.job()?) };
    let answer = ask(&job);
    Some((job, answer))
}

/// The jobs that hold the workers' own threads at this moment.
pub(crate) fn jobs_on_workers(shared: &Shared) -> Vec<JobRef> {
    let runs = shared.workers.iter();
    let runs = runs.filter_map(|worker| running_job(worker, worker.running(), |_| ()));
    runs.map(|(job, ())| job).collect()
}

/// Step 3: takes the worker from the stuck thread and hands it to a spare thread. False if there is none, or if the
/// thread is no longer stuck. Without memory only an idle thread is a spare one, and nothing is reported.
fn retake(
    shared: &Arc<Shared>,
    worker: &Worker,
    watched: &mut Watched,
    memory: RoundMemory,
) -> bool {
    if !memory.is_enough() {
        let revoked = shared
            .pool
            .has_idle()
            .then(|| revoke(shared, worker, watched));
        let revoked = revoked.flatten();
        return revoked.is_some_and(|revoked| {
            let _or_later = hand_off_retaken(shared, worker, revoked.lease);
            true
        });
    }
    if !shared.pool.has_spare_thread(shared) {
        let held = watched.since.elapsed();
        if watched.stays_stuck.is_due(held) {
            let see = |job: &JobRef| job.header().see_panic_hook();
            let running = running_job(worker, watched.running, see);
            watched.stays_stuck.check(shared, running, held);
        }
        return false;
    }
    let Some(revoked) = revoke(shared, worker, watched) else {
        return false;
    };
    // Before a thread gets the worker and begins the next job, which may be of the same kind. If the worker was retaken
    // early, the job may not have exceeded `stuck_after`. It offends only when it does; see `detached_round`.
    if watched.since.elapsed() >= shared.config.stuck_after {
        note_offence(shared, &revoked.job, revoked.is_blocked, Instant::now());
    }
    if let Err(error) = hand_off_retaken(shared, worker, revoked.lease) {
        report::no_thread(error.as_ref());
    }
    true
}

/// Hands a worker that was retaken off to a thread, or leaves it to the next round. An error says why no thread could
/// take it.
fn hand_off_retaken(
    shared: &Arc<Shared>,
    worker: &Worker,
    lease: Lease,
) -> Result<(), Option<std::io::Error>> {
    shared.counters.detached.fetch_add(1, Ordering::Relaxed);
    let handoff = Handoff {
        worker: worker.index,
        lease,
    };
    serve::hand_off(shared, handoff).map_err(|refused| {
        lock(&shared.orphans).push(refused.handoff);
        refused.error
    })
}

/// What [`revoke`] returns: the new lease, and the stuck job.
struct Revocation {
    lease: Lease,
    job: JobRef,
    is_blocked: bool,
}

/// Revokes the owner's lease if the owner is still in that run, and notes that the thread is detached. All of this
/// happens under the lock, so before the thread can notice it. Returns the new lease and the job, which
/// [`detached_round`] reports.
fn revoke(shared: &Shared, worker: &Worker, watched: &Watched) -> Option<Revocation> {
    let running = watched.running;
    let is_blocked_now = thread_times(worker).is_none_or(|now| now.is_blocked);
    let sends = watched.sends_after(operations(shared, worker));
    let mut foreign = worker.core.enter_foreign();
    if worker.running() != running {
        return None;
    }
    // SAFETY: the owner runs that job, and takes the lock before the job can be freed; it cannot take the lock while
    // this thread holds it.
    let job = unsafe { JobRef::new_for(running.job()?) };
    let thread = worker.owner_thread.load(Ordering::Relaxed);
    let activity = watched.activity(shared.forks.is_forking(&job), is_blocked_now);
    let run = DetachedRun {
        job: job.clone(),
        activity,
        cause: Cause::Retaken,
        since: watched.since,
        sends,
        code: RunningCode::see(&job),
    };
    if !shared.detached.try_add(thread, run) {
        return None;
    }
    worker.set_running_none();
    // The ring is shared until the next owner looks around.
    worker.sharing.share();
    Some(Revocation {
        lease: foreign.revoke(),
        job,
        is_blocked: activity == Activity::Block,
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
