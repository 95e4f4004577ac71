//! The monitor: a thread that checks every worker every few milliseconds, so that a job that blocks, or computes for too
//! long, stops no other job. It is the `sysmon` of Go's scheduler; here a worker is retaken from its stuck thread.
//!
//! A round begins with the orphans: workers for which no spare thread was found are handed out again. If there is still
//! no thread for one, step 1 is done for it: the threads that are missing may all wait for its timers.
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
//! Without memory a round does less ([`round_memory`](super::round_memory)).
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
    job::JobRef,
    queue::queue_counts::QueueCounts,
    report::{self, LateName, LateNames, NoSpareThread, Retake, StuckRun, panic_message},
    scheduler::{
        threads::{
            blocking_threads,
            detached_round::{self, is_fork, note_offence},
            detached_run::{Activity, Cause, DetachedRun, RunningCode},
            held_up::{self, LastLook},
            overdue::{take_overdue, take_ready},
            overdue_watch::OverdueWatch,
            pool::Handoff,
            round_memory::RoundMemory,
            senders::Sends,
            serve,
            thread_times::ThreadTimes,
        },
        workers::{ready, run_word::RunWord, search, shared::Shared, worker::Worker},
    },
    sys::lock,
    timer::clock::TICK,
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
    /// What is known of the thread's operations, since `times`.
    sends: Option<Sends>,
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
            sends: None,
            at_bound: false,
            is_long: false,
        }
    }

    /// What is known of the thread's operations; it has completed so many by now. Without an earlier look, what it
    /// completed before this run cannot be told from what it completed in the run, so nothing shows that it sends.
    fn sends_after(&self, operations: u32) -> Sends {
        let mut sends = self.sends.unwrap_or(Sends::at_first(operations));
        sends.look(operations, None);
        sends
    }
}

fn watch(shared: &Arc<Shared>, when_quiet: &mut WhenQuiet) {
    let begin = |worker: &Worker| {
        let ring_watch = OverdueWatch::new(worker.thief.counts(), Instant::now());
        (Watched::new(worker.running()), ring_watch)
    };
    let mut watched: Vec<(Watched, OverdueWatch)> = shared.workers.iter().map(begin).collect();
    let mut injector_watch = OverdueWatch::new(shared.injector.counts(), Instant::now());
    let (mut quiet, mut held_up) = (0, LastLook::default());
    while !shared.is_stopped() {
        thread::park_timeout(pause(shared));
        let memory = RoundMemory::attempt();
        quiet = match memory.is_enough() && is_quiet(shared) {
            true => quiet + 1,
            false => 0,
        };
        if quiet > QUIET_ROUNDS {
            when_quiet(shared);
            shared.queues.sample_before_sleep(&shared.clock);
            let may_sleep = || is_quiet(shared) && !shared.is_stopped();
            shared.monitor.sleep_until_a_worker_wakes(may_sleep);
        }
        hand_off_orphans(shared, memory);
        for (worker, (watched, ring_watch)) in shared.workers.iter().zip(&mut watched) {
            lend_long_queue(shared, worker, ring_watch);
            observe(shared, worker, watched, memory);
        }
        if is_overdue(shared, &mut injector_watch, shared.injector.counts()) {
            shared.wake_one();
        }
        ready::inject_all(shared, shared.pool.outboxes.take_all());
        match memory {
            RoundMemory::Enough => detached_round::run(shared),
            RoundMemory::Lacking => detached_round::run_without_memory(shared),
        }
        let busy = shared.workers.len() - shared.sleepers.sleeping().min(shared.workers.len());
        let operations = |number| shared.pool.operations(number);
        shared.detached.lower_if_crowded(busy, operations);
        if memory.is_enough() {
            if held_up.report_at_times(shared) | blocking_threads::look(shared) {
                quiet = 0;
            }
            shared.queues.step(&shared.clock);
        }
    }
}

/// Tries again to give threads to the workers for which there was none. Does what is due at those that get none.
fn hand_off_orphans(shared: &Arc<Shared>, memory: RoundMemory) {
    serve::hand_off_orphans(shared);
    for worker in (0..).map_while(|index| serve::orphan(shared, index)) {
        take_overdue(shared, &shared.workers[worker], RunWord::NONE, memory);
        if memory.is_enough() {
            take_ready(shared);
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

fn observe(shared: &Arc<Shared>, worker: &Worker, watched: &mut Watched, memory: RoundMemory) {
    let running = worker.running();
    if running != watched.running || running.job().is_none() {
        *watched = Watched::new(running);
        return;
    }
    let stuck = watched.since.elapsed();
    let is_long = stuck >= shared.config.stuck_after / 2;
    if is_long && !watched.is_long && memory.is_enough() {
        note_long_run(shared, worker, watched);
    }
    let is_stuck = match stuck >= shared.config.stuck_after {
        true => is_really_stuck(shared, worker, watched),
        false => blocks_like_others(shared, worker, watched),
    };
    let is_taken = is_stuck && retake(shared, worker, watched, memory);
    if !is_taken && stuck >= WATCHFUL.min(TICK) && shared.sleepers.sleeping() > 0 {
        take_overdue(shared, worker, running, memory);
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
    is_blocked
        && running_job(worker, watched.running).is_some_and(|(job, _)| !is_fork(shared, &job))
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
    if let Some((job, RunningCode::Own)) = running_job(worker, watched.running) {
        detached_round::note_long_run(shared, &job);
    }
}

/// The job of the run and what runs in it, if the worker's owner is still in it.
fn running_job(worker: &Worker, running: RunWord) -> Option<(JobRef, RunningCode)> {
    let _core = worker.core.enter_foreign();
    if worker.running() != running {
        return None;
    }
    // SAFETY: as in `revoke`.
    let job = unsafe { JobRef::new_for(running.job()?) };
    let code = RunningCode::of(&job);
    Some((job, code))
}

/// The jobs that hold the workers' own threads at this moment.
pub(crate) fn jobs_on_workers(shared: &Shared) -> Vec<JobRef> {
    let runs = shared.workers.iter();
    let runs = runs.filter_map(|worker| running_job(worker, worker.running()));
    runs.map(|(job, _)| job).collect()
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
        return shared.pool.has_idle() && retake_silently(shared, worker, watched).is_some();
    }
    if !shared.pool.has_spare_thread(shared) {
        if !std::mem::replace(&mut watched.at_bound, true) {
            stays_stuck(shared, worker, watched);
        }
        return false;
    }
    let Some(retaken) = retake_silently(shared, worker, watched) else {
        return false;
    };
    // If the worker was retaken early, the job may not have exceeded `stuck_after`. It offends only when it does; see
    // `detached_round`.
    if watched.since.elapsed() >= shared.config.stuck_after {
        note_offence(shared, &retaken.job, Instant::now());
    }
    if let Err(error) = retaken.handed {
        report::no_thread(error.as_ref());
    }
    true
}

/// A worker that was retaken from a stuck thread.
struct Retaken {
    /// The stuck job.
    job: JobRef,
    /// Whether a thread could take the worker, or why not.
    handed: Result<(), Option<std::io::Error>>,
}

/// Takes the worker from the stuck thread and hands it to another, or leaves it to the next round. None if the thread is
/// no longer stuck, or there is no memory at all.
fn retake_silently(shared: &Arc<Shared>, worker: &Worker, watched: &Watched) -> Option<Retaken> {
    let (lease, job) = revoke(shared, worker, watched)?;
    shared.counters.detached.fetch_add(1, Ordering::Relaxed);
    let handoff = Handoff {
        worker: worker.index,
        lease,
    };
    let handed = serve::hand_off(shared, handoff).map_err(|refused| {
        lock(&shared.orphans).push(refused.handoff);
        refused.error
    });
    Some(Retaken { job, handed })
}

/// No spare thread is left, so the worker stays with its stuck thread: reports that, and which job it is. Until the
/// stuck run ends, each round moves what is due at this worker to others (step 1).
fn stays_stuck(shared: &Shared, worker: &Worker, watched: &Watched) {
    let bound = shared.config.spare_threads;
    serve::report_no_spare_thread(shared, bound, NoSpareThread::WorkerIsStuck);
    let Some((job, code)) = running_job(worker, watched.running) else {
        return;
    };
    detached_round::note_offence(shared, &job, Instant::now());
    let (name, stuck) = (LateName::of(job.header()), watched.since.elapsed());
    if code == RunningCode::PanicHook {
        return report::panic_hook_runs(name, stuck, Retake::Refused);
    }
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
    let sends = watched.sends_after(operations(shared, worker));
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
        sends,
        code: RunningCode::of(&job),
    };
    if !shared.detached.try_add(thread, run) {
        return None;
    }
    worker.set_running_none();
    // The ring is shared until the next owner looks around.
    worker.sharing.share();
    Some((foreign.revoke(), job))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::{
        job::testing,
        scheduler::{
            stackful::pinned::PinnedQueue,
            workers::{config::Config, context, worker::WorkerLoop},
        },
        timer::clock::ClockKind,
    };

    /// Long enough for no thread to have run for half of it.
    const BOUND: Duration = Duration::from_secs(1000);

    /// Calls `act` while the calling thread owns the only worker of a runtime without a monitor, and runs a job.
    fn while_a_job_runs(act: impl FnOnce(&Arc<Shared>, &WorkerLoop<'_>, &JobRef)) {
        let config = Config {
            workers: 1,
            stuck_after: BOUND,
            ..Config::new()
        };
        let (shared, mut handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        let handoff = handoffs.pop().unwrap();
        let pinned = PinnedQueue::new();
        let (runnable, job) = testing::job_of(async {});
        context::with(|cx| {
            let worker_loop = WorkerLoop::new(cx, &shared, &pinned);
            worker_loop.begin(&shared.workers[handoff.worker], handoff.lease);
            worker_loop.announce(&runnable).unwrap();
            act(&shared, &worker_loop, &job);
            worker_loop.worker().set_running_none();
            worker_loop.end();
        });
        // It never ran.
        runnable.into_ptr();
    }

    /// A run that was first seen when the bound was not exceeded yet, and exceeds it now.
    fn exceed_bound(watched: &mut Watched) {
        watched.since = Instant::now().checked_sub(BOUND).unwrap();
    }

    #[test]
    fn a_panic_hook_that_ends_after_its_worker_was_retaken_is_reported_as_one() {
        while_a_job_runs(|shared, worker_loop, job| {
            let worker = worker_loop.worker();
            let mut watched = Watched::new(worker.running());
            exceed_bound(&mut watched);
            job.header().set_in_panic_hook(true);
            assert!(revoke(shared, worker, &watched).is_some());
            // The hook ends, and then the poll, before the monitor looks at the detached threads.
            job.header().set_in_panic_hook(false);
            shared.detached.end(shared.thread_number());
            let overdue = shared.detached.look(BOUND).overdue;
            let codes: Vec<RunningCode> = overdue.iter().map(|overdue| overdue.code).collect();
            assert_eq!(codes, [RunningCode::PanicHook]);
        });
    }

    #[test]
    fn a_thread_that_has_not_run_since_the_first_look_waits_for_a_core() {
        while_a_job_runs(|shared, worker_loop, _| {
            let worker = worker_loop.worker();
            let mut watched = Watched::new(RunWord::NONE);
            let observe = |watched: &mut Watched| {
                observe(shared, worker, watched, RoundMemory::Enough);
                worker.running()
            };
            // The run is new; then the first look at its thread.
            let running = observe(&mut watched);
            assert!(watched.times.is_none());
            observe(&mut watched);
            let first = watched.times.unwrap();
            exceed_bound(&mut watched);
            assert_eq!(observe(&mut watched), running);
            // Later looks are compared with the first.
            watched.times = Some(ThreadTimes {
                ran: Duration::MAX,
                ..first
            });
            assert_eq!(observe(&mut watched), running);
            assert_eq!(watched.times.unwrap().ran, Duration::MAX);
        });
    }

    #[test]
    fn a_run_without_a_first_look_does_not_send_and_one_with_it_may() {
        let mut watched = Watched::new(RunWord::NONE);
        let many = 10_000;
        assert!(!watched.sends_after(many).look(many, None));
        watched.sends = Some(Sends::at_first(0));
        assert!(watched.sends_after(many).look(many, None));
    }

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
