//! What wakes the monitor, and how it judges a run by its checks of the thread.

use std::sync::{atomic::AtomicBool, mpsc};

use super::*;
use crate::{
    FEATURES,
    job::{
        name::{UnitCode, UnitName},
        testing,
    },
    scheduler::{
        stackful::pinned::PinnedQueue,
        threads::{
            detached_run::ListedRun, monitor::stays_stuck::StaysStuck, panic_hook_end,
            queue_watch::depending::DependingJob,
        },
        workers::{config::Config, context, worker::WorkerLoop},
    },
    timer::{clock::ClockKind, entry_queue::EntryQueue},
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
        worker_loop.set_running_job(&runnable).unwrap();
        act(&shared, &worker_loop, &job);
        worker_loop.worker().set_running_none();
        worker_loop.end();
    });
    // It never ran, and belongs to no runtime.
    runnable.into_ptr();
    // The next runtime gets this one's number, and its shutdown would wait for such a job for ever.
    assert!(shared.live_jobs().is_empty());
}

/// Fails after a minute, longer than anything that a test waits for may take.
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < MINUTE, "it has not happened in a minute");
        std::thread::yield_now();
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Nothing else happens in the program, so nobody but the job can wake the monitor.
#[test]
fn a_job_that_goes_on_after_an_announcement_wakes_the_monitor() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel::<()>();
    let job = runtime.spawn(async move {
        crate::block_in_place(|| released.recv()).unwrap();
        ended.recv().unwrap();
    });
    let shared = &runtime.shared;
    until(|| shared.counters.announced.load(Ordering::Relaxed) == 1);
    until(|| shared.monitor.is_asleep());
    release.send(()).unwrap();
    until(|| shared.detached.has_found(Cause::Continued));
    end.send(()).unwrap();
    runtime.block_on(job).unwrap();
}

/// The foreign thread computes when it forks, so no worker may take the second half, and none wakes.
#[test]
fn a_fork_of_a_foreign_thread_wakes_the_monitor_which_finds_it_blocked() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let monitor = &runtime.shared.monitor;
    runtime.block_on(async {
        for _ in 0..2 {
            until(|| runtime.shared.sleepers.sleeping() == 1);
            // It looks for the worker that sleeps, and does not check again unasked.
            crate::fork::join(|| (), || ());
            until(|| monitor.is_asleep());
            let (tx, rx) = mpsc::channel();
            crate::fork::join(
                move || rx.recv_timeout(MINUTE).unwrap(),
                move || tx.send(()).unwrap(),
            );
        }
    });
}

/// No runner may start for the second part, because the only one computes as far as anybody has seen.
#[test]
fn a_part_that_is_spawned_while_the_monitor_sleeps_wakes_it() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (go, gone) = mpsc::channel::<()>();
    let job = runtime.spawn(async move {
        crate::fork::scope(|scope| {
            let (end, ended) = mpsc::channel();
            scope.spawn(move || {
                gone.recv_timeout(MINUTE).unwrap();
                let (tx, rx) = mpsc::channel();
                scope.spawn(move || tx.send(()).unwrap());
                rx.recv_timeout(MINUTE).unwrap();
                end.send(()).unwrap();
            });
            ended.recv_timeout(2 * MINUTE).unwrap();
        });
    });
    until(|| runtime.shared.counters.detached.load(Ordering::Relaxed) == 2);
    until(|| runtime.shared.monitor.is_asleep());
    go.send(()).unwrap();
    runtime.block_on(job).unwrap();
}

/// A hook that waits lets the monitor sleep, however short it is, and nobody else wakes it.
#[test]
fn the_end_of_a_short_panic_hook_wakes_the_monitor() {
    while_a_job_runs(|shared, _, job| {
        let sleeper = shared.clone();
        let monitor = thread::spawn(move || {
            sleeper.monitor.begin(thread::current());
            sleeper
                .monitor
                .sleep_until_a_worker_wakes(|| (), || true, None);
        });
        until(|| shared.monitor.is_asleep());
        let set_shared = |shared| context::with(|cx| cx.set_shared(shared));
        let before = set_shared(Arc::as_ptr(shared));
        job.header().begin_panic_hook();
        panic_hook_end::end(job, Duration::ZERO);
        set_shared(before);
        let sleeps_on = shared.monitor.is_asleep();
        shared.monitor.wake();
        monitor.join().unwrap();
        assert!(!sleeps_on && !job.header().is_in_panic_hook());
    });
}

/// Leaves a destructor that blocks until it is told to go on. The flag is set if a job runs it: then somebody who
/// checked all jobs of the program had the last reference.
#[derive(Debug)]
struct BlocksAtDrop(std::sync::Mutex<mpsc::Receiver<()>>, Arc<AtomicBool>);

impl crate::Describe for BlocksAtDrop {
    fn name(&self) -> String {
        "leaves a destructor".to_owned()
    }
}

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        let in_job = context::with(|cx| cx.job_ref()).is_some();
        self.1.store(in_job, Ordering::SeqCst);
        _ = lock(&self.0).recv();
    }
}

/// Nothing else happens in the program, so nobody but the thread that drops it can wake the monitor.
#[test]
fn what_a_reported_job_leaves_on_its_thread_wakes_the_monitor() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel::<()>();
    let in_job = Arc::new(AtomicBool::new(false));
    let description = BlocksAtDrop(std::sync::Mutex::new(ended), in_job.clone());
    let description = Arc::new(description);
    let references = Arc::downgrade(&description);
    let leaves = crate::Spawn::new().described_by(description);
    let job = runtime.block_on(async { leaves.spawn(async move { released.recv().unwrap() }) });
    job.detach();
    let shared = &runtime.shared;
    until(|| shared.detached.has_found(Cause::Retaken));
    until(|| references.strong_count() == 1);
    until(|| shared.monitor.is_asleep());
    release.send(()).unwrap();
    until(|| shared.detached.has_found(Cause::Continued) || in_job.load(Ordering::SeqCst));
    end.send(()).unwrap();
}

/// Nothing else happens in the program, so nobody but the thread in `block_on` can wake the monitor and keep it awake.
/// For so long as the bound it would not stay awake by itself.
#[test]
fn a_local_job_in_block_on_wakes_the_monitor_and_keeps_it_awake() {
    let builder = crate::Runtime::builder().workers(1);
    let runtime = builder.stuck_after(200 * CALM).build().unwrap();
    let shared = runtime.shared.clone();
    runtime.block_on(async move {
        until(|| shared.monitor.is_asleep());
        let blocks = async move { until(|| shared.detached.has_found(Cause::Visits)) };
        crate::spawn_local(blocks).unwrap().await.unwrap();
    });
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
        job.header().begin_panic_hook();
        assert!(revoke(shared, worker, &watched).is_some());
        // The hook ends, and then the poll, before the monitor checks the detached threads.
        job.header().end_panic_hook();
        let listed = ListedRun::OfThread(shared.thread_number());
        shared.detached.end(listed);
        let overdue = shared.detached.check(BOUND).overdue;
        let codes: Vec<RunningCode> = overdue.iter().map(|overdue| overdue.code).collect();
        assert_eq!(codes, [RunningCode::PanicHook]);
    });
}

/// The monitor checks behind the hook's end and before the poll's.
#[test]
fn a_job_that_goes_on_behind_a_long_panic_hook_keeps_its_worker() {
    while_a_job_runs(|shared, worker_loop, job| {
        let worker = worker_loop.worker();
        let mut watched = Watched::new(worker.running());
        exceed_bound(&mut watched);
        job.header().begin_panic_hook();
        panic_hook_end::end(job, BOUND);
        assert!(!job.header().is_in_panic_hook());
        assert!(revoke(shared, worker, &watched).is_none());
        assert!(worker.running().job() == Some(job.ptr()));
        // Another one in the same run changes nothing.
        let mut watched = Watched::new(worker.running());
        exceed_bound(&mut watched);
        panic_hook_end::end(job, BOUND);
        assert!(revoke(shared, worker, &watched).is_some());
    });
}

#[test]
fn a_fork_is_judged_blocked_at_two_checks_and_other_jobs_at_the_last_one() {
    let mut watched = Watched::new(RunWord::NONE);
    let seen = [(true, true), (true, false), (false, true), (false, false)];
    let judge = |watched: &Watched| {
        seen.map(|(is_forking, is_blocked_now)| watched.activity(is_forking, is_blocked_now))
    };
    let (block, compute, fork) = (Activity::Block, Activity::Compute, Activity::Fork);
    assert_eq!(judge(&watched), [fork, fork, block, compute]);
    watched.blocks = true;
    assert_eq!(judge(&watched), [block, fork, block, compute]);
}

#[test]
fn a_thread_that_has_not_run_since_the_first_check_waits_for_a_core() {
    while_a_job_runs(|shared, worker_loop, _| {
        let worker = worker_loop.worker();
        let mut watched = Watched::new(RunWord::NONE);
        let observe = |watched: &mut Watched| {
            let conditions = Conditions {
                memory: RoundMemory::Enough,
                taker: Taker::None,
            };
            observe(shared, worker, watched, conditions);
            worker.running()
        };
        // The run is new; then the first check of its thread.
        let running = observe(&mut watched);
        assert!(watched.times.is_none());
        observe(&mut watched);
        let first = watched.times.unwrap();
        exceed_bound(&mut watched);
        assert_eq!(observe(&mut watched), running);
        // Time that the system reports late, of earlier runs, does not count either.
        watched.times = Some(ThreadTimes {
            ran: Duration::ZERO,
            ..first
        });
        assert_eq!(observe(&mut watched), running);
    });
}

#[test]
fn only_what_a_thread_ran_since_a_later_check_counts_and_one_is_blocked_at_two_checks() {
    let times = |ran_ms, is_blocked| {
        let ran = Duration::from_millis(ran_ms);
        Some(ThreadTimes { ran, is_blocked })
    };
    let computing = |ran_ms: u64| times(ran_ms, false);
    let blocked = |ran_ms: u64| times(ran_ms, true);
    let ran = |ran| Holding::Ran(Duration::from_millis(ran));
    let mut watched = Watched::new(RunWord::NONE);
    assert_eq!(watched.check(computing(1)), Holding::Blocked, "no file");
    watched.times = computing(1);
    assert_eq!(watched.check(computing(1)), Holding::Unknown);
    // The system tells a part of it late.
    assert_eq!(watched.check(computing(9)), Holding::Unknown);
    assert_eq!(watched.check(computing(9)), ran(0));
    assert_eq!(watched.check(computing(13)), ran(4));
    assert_eq!(watched.check(blocked(13)), Holding::Unknown);
    assert_eq!(watched.check(blocked(14)), Holding::Unknown);
    assert_eq!(watched.check(blocked(14)), Holding::Blocked);
    // It blocks in short steps.
    let mut watched = Watched::new(RunWord::NONE);
    watched.times = computing(1);
    let checks = [2, 3, 4, 5].map(|ran| watched.check(blocked(ran)));
    let unknown = [Holding::Unknown; 3];
    assert_eq!((&checks[..3], checks[3]), (&unknown[..], Holding::Blocked));
    // It was blocked at the first check.
    let mut watched = Watched::new(RunWord::NONE);
    watched.times = blocked(1);
    assert_eq!(watched.check(blocked(1)), Holding::Blocked);
}

#[test]
fn a_run_without_a_first_check_does_not_send_and_one_with_it_may() {
    let mut watched = Watched::new(RunWord::NONE);
    let many = 10_000;
    assert!(!watched.sends_after(many).check(many, None));
    watched.sends = Some(Sends::at_first(0));
    assert!(watched.sends_after(many).check(many, None));
}

/// Where no spare thread is left.
#[test]
fn a_run_that_stays_stuck_is_checked_again_in_a_panic_hook_and_before_a_callback() {
    while_a_job_runs(|shared, _, job| {
        let is_due_after = |job: &JobRef, pause| {
            let (mut stays_stuck, held) = (StaysStuck::default(), BOUND);
            assert!(stays_stuck.is_due(held));
            stays_stuck.check(
                shared,
                Some((job.clone(), job.header().see_panic_hook())),
                held,
            );
            assert!(!stays_stuck.is_due(held));
            stays_stuck.is_due(held + pause)
        };
        assert!(!is_due_after(job, 1000 * BOUND));
        job.header().begin_panic_hook();
        assert!(is_due_after(job, BOUND));
        let runnable = FEATURES.callbacks.runner(shared.id(), EntryQueue::new());
        // SAFETY: the runnable keeps the job.
        let runner = unsafe { JobRef::new_for(runnable.ptr()) };
        assert!(is_due_after(&runner, BOUND));
        // It never ran.
        drop(runnable);
    });
}

/// Where no spare thread is left. A check that finds the job's own code reports it, and is the last one.
#[test]
fn a_run_that_stays_stuck_is_checked_until_its_panic_hook_is_over_even_behind_a_warning() {
    for (pauses, panics_again) in [(1, false), (3, false), (1, true), (3, true)] {
        while_a_job_runs(|shared, _, job| {
            let mut stays_stuck = StaysStuck::default();
            let mut check = |held| {
                assert!(stays_stuck.is_due(held));
                let running = (job.clone(), job.header().see_panic_hook());
                stays_stuck.check(shared, Some(running), held);
                stays_stuck.is_due(1000 * held)
            };
            job.header().begin_panic_hook();
            assert!((1..=pauses).all(|n| check(n * BOUND)));
            job.header().end_panic_hook();
            if panics_again {
                job.header().begin_panic_hook();
            }
            assert!(!check((pauses + 1) * BOUND));
        });
    }
}

struct Panics(mpsc::Sender<()>);

impl CircleWatch for Panics {
    fn check_when_quiet(&mut self, _shared: &Shared) {
        self.0.send(()).unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    }

    fn check(&mut self, _shared: &Shared, _depending: Vec<DependingJob>) {}

    fn must_recheck(&self) -> bool {
        false
    }
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
    start(&shared, Box::new(Panics(called))).unwrap();
    for _ in 0..3 {
        calls.recv().unwrap();
    }
    shared.stop();
    // Its end drops the sender.
    while calls.recv().is_ok() {}
}

/// A runner that has not begun a callback waits for a lock of the kernel.
#[test]
fn a_runner_of_callbacks_is_to_blame_only_for_callbacks() {
    while_a_job_runs(|shared, _, _| {
        let runnable = FEATURES.callbacks.runner(shared.id(), EntryQueue::new());
        // SAFETY: the runnable keeps the job.
        let runner = unsafe { JobRef::new_for(runnable.ptr()) };
        let cause = Cause::Retaken;
        let is_found = |number| {
            let run = DetachedRun {
                job: runner.clone(),
                activity: Activity::Block,
                cause,
                since: Instant::now().checked_sub(2 * BOUND).unwrap(),
                sends: Sends::here(),
                code: RunningCode::Own,
            };
            shared.detached.add(number, run);
            detached_round::run(shared);
            let is_found = shared.detached.has_found(cause);
            // A run that is not blamed yet is watched on.
            assert_ne!(shared.detached.is_any_unreported(), is_found);
            shared.detached.end(ListedRun::OfThread(number));
            is_found
        };
        let many = 10;
        let note_long_runs = || {
            (0..many).for_each(|_| detached_round::note_long_run(shared, &runner));
        };
        assert!(!is_found(1));
        detached_round::note_offence(shared, &runner, true, Instant::now());
        note_long_runs();
        assert!(!shared.suspects.is_any());
        runner.header().extensions.lock().running_unit = Some(UnitName {
            code: &UnitCode {
                what: "callback",
                type_name: || "a closure",
            },
            site: std::panic::Location::caller(),
        });
        note_long_runs();
        assert!(shared.suspects.is_any());
        shared.suspects.expire(Instant::now() + BOUND);
        assert!(!shared.suspects.is_any());
        assert!(is_found(2));
        assert!(shared.suspects.is_any());
        // It never ran.
        drop(runnable);
    });
}
