//! Bursts: many jobs of one kind that hold their threads at once, more than there are spare threads, and jobs that
//! stay just below the bound. All others run on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use blocker::Blocker;
use reports::{collect_reports, flushed, reports};
use tools::{Latch, runtime, until, watch};
use weald_kernel::{
    JoinHandle, Runtime, Spawn, Wait, block_in_place, fork, sleep, spawn, worker_index, yield_now,
};

/// Jobs of one kind; each blocks at the blocker.
fn burst(runtime: &Runtime, blocker: &Blocker, count: usize) -> Vec<JoinHandle<usize>> {
    (0..count)
        .map(|n| {
            let blocker = blocker.clone();
            runtime.spawn(async move {
                blocker.block();
                n
            })
        })
        .collect()
}

fn join_all(runtime: &Runtime, jobs: Vec<JoinHandle<usize>>) {
    for (n, job) in jobs.into_iter().enumerate() {
        assert_eq!(runtime.block_on(job).unwrap(), n);
    }
}

/// As [`burst`], but each announces that it blocks.
fn announced_burst(runtime: &Runtime, blocker: &Blocker, count: usize) -> Vec<JoinHandle<usize>> {
    (0..count)
        .map(|n| {
            let blocker = blocker.clone();
            runtime.spawn(async move {
                block_in_place(|| blocker.block());
                n
            })
        })
        .collect()
}

/// Other jobs, spawned after the burst, run to their ends while it lasts.
fn others_run(runtime: &Runtime) {
    for _ in 0..1_000 {
        let job = runtime.spawn(async {
            yield_now().await;
            spawn(async { 1 }).await.unwrap()
        });
        assert_eq!(runtime.block_on(job).unwrap(), 1);
    }
    runtime
        .block_on(runtime.spawn(sleep(Duration::from_millis(1))))
        .unwrap();
}

#[test]
fn more_blockers_than_spare_threads_stop_no_other_kind() {
    collect_reports();
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = Runtime::builder()
            .workers(workers)
            .spare_threads(8)
            .build()
            .unwrap();
        let blocker = Blocker::default();
        let jobs = burst(&runtime, &blocker, 100);
        // At least one spare thread is left for a worker that is retaken.
        until(|| blocker.begun() >= 7);
        others_run(&runtime);
        assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
        let wait = "further jobs of these kinds wait";
        until(|| !reports("weald::monitor", wait).is_empty());
        blocker.open();
        join_all(&runtime, jobs);
    }
}

/// They are not reported, but those beyond an eighth of the spare threads put their kind into quarantine.
#[test]
fn more_announced_blockers_than_spare_threads_stop_no_other_kind() {
    collect_reports();
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = Runtime::builder()
            .workers(workers)
            .spare_threads(16)
            .build()
            .unwrap();
        let blocker = Blocker::default();
        let jobs = announced_burst(&runtime, &blocker, 100);
        until(|| blocker.begun() >= 14);
        others_run(&runtime);
        assert!(blocker.begun() <= 16, "{} have a thread", blocker.begun());
        flushed();
        let mut stuck = reports("weald::monitor", "announced_burst");
        stuck.retain(|report| report.text.contains("stuck_ms"));
        assert_eq!(stuck.len(), 0, "{stuck:?}");
        blocker.open();
        join_all(&runtime, jobs);
    }
}

/// No thread of the quarantine ends its run, so further ones start beside it, as far as there are spare threads.
/// What is counted: the others run to their ends, and so does the monitor, which reports.
#[test]
fn six_hundred_jobs_that_compute_stop_no_other_kind_and_take_no_more_threads_than_there_are() {
    collect_reports();
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = Runtime::builder()
            .workers(workers)
            .spare_threads(16)
            .build()
            .unwrap();
        let (begun, stop) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let computes = |n| {
            let (begun, stop) = (begun.clone(), stop.clone());
            runtime.spawn(async move {
                begun.fetch_add(1, Ordering::SeqCst);
                while !stop.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                n
            })
        };
        let jobs: Vec<_> = (0..600).map(computes).collect();
        until(|| begun.load(Ordering::SeqCst) >= 14);
        others_run(&runtime);
        let begun = || begun.load(Ordering::SeqCst);
        assert!(begun() <= 16 + 1, "{} have a thread", begun());
        let metrics = runtime.metrics();
        assert!(metrics.threads <= 16 + workers, "{metrics:?}");
        let wait = "further jobs of these kinds wait";
        let count = || reports("weald::monitor", wait).len();
        until(|| count() >= workers);
        stop.store(true, Ordering::SeqCst);
        join_all(&runtime, jobs);
    }
}

/// Two jobs of a type of their own.
fn two_of_a_kind<const KIND: usize>(runtime: &Runtime, blocker: &Blocker) -> [JoinHandle<()>; 2] {
    struct Blocks<const KIND: usize>(Blocker);
    impl<const KIND: usize> Future for Blocks<KIND> {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0.block();
            Poll::Ready(())
        }
    }
    [(); 2].map(|()| runtime.spawn(Blocks::<KIND>(blocker.clone())))
}

/// Whether a job that has never run is kept from the workers.
fn is_fresh_kept(runtime: &Runtime) -> bool {
    runtime
        .block_on(runtime.spawn(async { worker_index() }))
        .unwrap()
        .is_none()
}

/// Each kind would cost a worker the bound, and a spare thread.
#[test]
fn blockers_of_very_many_kinds_stop_no_job_that_has_waited() {
    macro_rules! two_of_each { ($($kind:literal)*) => { [$(two_of_a_kind::<$kind>),*] } }
    let starts = two_of_each!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
        30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59
        60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89
    );
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .spare_threads(80)
        .build()
        .unwrap();
    let (stop, runs) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (stopped, counts) = (stop.clone(), runs.clone());
    let other = runtime.spawn(async move {
        while !stopped.load(Ordering::SeqCst) {
            sleep(Duration::from_micros(100)).await;
            counts.fetch_add(1, Ordering::SeqCst);
        }
    });
    let more_runs = || {
        let before = runs.load(Ordering::SeqCst);
        until(|| runs.load(Ordering::SeqCst) > before + 100);
    };
    more_runs();
    // On a busy machine the first kinds may be forgotten before so many are suspect; then they begin again.
    let (first, others) = starts.split_at(20);
    let (blocker, mut jobs) = loop {
        let blocker = Blocker::default();
        let jobs: Vec<_> = first
            .iter()
            .flat_map(|start| start(&runtime, &blocker))
            .collect();
        // The second of a kind begins once the first one has made it suspect.
        until(|| is_fresh_kept(&runtime) || blocker.begun() == jobs.len());
        if is_fresh_kept(&runtime) {
            break (blocker, jobs);
        }
        blocker.open();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    };
    jobs.extend(others.iter().flat_map(|start| start(&runtime, &blocker)));
    // Seven eighths of the spare threads.
    until(|| blocker.begun() >= 70);
    more_runs();
    assert!(blocker.begun() < 80, "{} have a thread", blocker.begun());
    blocker.open();
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(other).unwrap();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

/// The kind stays suspect while its jobs hold all threads that they may have, so that its next jobs hold none of those
/// that are left for other kinds.
#[test]
fn later_jobs_of_a_kind_that_blocks_for_long_stop_no_other_kind() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .spare_threads(16)
        .build()
        .unwrap();
    let blocker = Blocker::default();
    let mut bursts = vec![burst(&runtime, &blocker, 40)];
    until(|| blocker.begun() >= 14);
    for _ in 0..3 {
        // Longer than a kind is remembered.
        let pause = runtime.spawn(sleep(Duration::from_millis(1_100)));
        runtime.block_on(pause).unwrap();
        bursts.push(burst(&runtime, &blocker, 1));
        others_run(&runtime);
    }
    assert!(blocker.begun() < 16, "{} have a thread", blocker.begun());
    blocker.open();
    for burst in bursts {
        join_all(&runtime, burst);
    }
}

/// While a kind is suspect, a job of another one that blocks loses its worker before the bound. That is no offence:
/// kinds that block for a short time do not keep each other suspect for ever.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the units block their threads, for a short time"
)]
fn short_blocks_beside_a_suspect_are_no_offence() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let (stop, runs) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    // A macro, because each kind needs a type and a site of its own.
    macro_rules! unit {
        () => {{
            let (stop, runs) = (stop.clone(), runs.clone());
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1)).await;
                    thread::sleep(Duration::from_millis(5));
                    runs.fetch_add(1, Ordering::SeqCst);
                }
            })
        }};
    }
    let blocks = |count| {
        let before = runs.load(Ordering::SeqCst);
        until(|| runs.load(Ordering::SeqCst) >= before + count);
    };
    let blocker = Blocker::default();
    let offender = burst(&runtime, &blocker, 1);
    until(|| runtime.metrics().detached > 0);
    blocker.open();
    join_all(&runtime, offender);
    // One after the other, so that there would always be one that is suspect.
    let first = unit!();
    blocks(80);
    let second = unit!();
    let mut before = 0;
    // Without the offender all is as it was: no job loses its worker any more.
    while runtime.metrics().detached != before {
        before = runtime.metrics().detached;
        // They take longer than a kind stays suspect.
        blocks(600);
    }
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(first).unwrap();
    runtime.block_on(second).unwrap();
}

#[test]
fn a_burst_gets_as_many_threads_as_it_needs() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(128)
        .build()
        .unwrap();
    let blocker = Blocker::default();
    let jobs = burst(&runtime, &blocker, 100);
    until(|| blocker.begun() == 100);
    others_run(&runtime);
    blocker.open();
    join_all(&runtime, jobs);
}

/// A unit whose runs were short is served although its kind is suspect, and more of its kind block than there
/// are threads.
#[test]
fn proven_jobs_of_the_same_kind_run_on() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .spare_threads(8)
        .build()
        .unwrap();
    let (blocker, runs) = (Blocker::default(), Arc::new(AtomicUsize::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let unit = |blocks: bool| {
        let (blocker, runs, stop) = (blocker.clone(), runs.clone(), stop.clone());
        runtime.spawn(async move {
            if blocks {
                blocker.block();
            }
            while !stop.load(Ordering::SeqCst) {
                sleep(Duration::from_micros(100)).await;
                runs.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let proven = unit(false);
    until(|| runs.load(Ordering::SeqCst) > 1_000);
    let blocked: Vec<_> = (0..50).map(|_| unit(true)).collect();
    until(|| blocker.begun() >= 7);
    let before = runs.load(Ordering::SeqCst);
    until(|| runs.load(Ordering::SeqCst) > before + 100);
    stop.store(true, Ordering::SeqCst);
    blocker.open();
    runtime.block_on(proven).unwrap();
    for job in blocked {
        runtime.block_on(job).unwrap();
    }
}

/// Computes without a wait.
fn compute(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// Computes without a wait, for so much time on a core: on a loaded machine that takes longer by the clock.
fn compute_on_a_core(length: Duration) {
    let ran = || {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(times.split_whitespace().next().unwrap().parse().unwrap())
    };
    let begin = ran();
    while ran() - begin < length {
        std::hint::spin_loop();
    }
}

/// A run that exceeds the bound, because the thread had to wait for a core in the middle of it, is reported as stuck;
/// then its kind is suspect, too.
#[test]
fn a_job_that_stays_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let computes = Arc::new(AtomicBool::new(false));
    let (stopped, seen) = (stop.clone(), computes.clone());
    let job = runtime.block_on(async {
        Spawn::new().name("just below").spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                computes.store(true, Ordering::SeqCst);
                compute_on_a_core(Duration::from_millis(160));
                computes.store(false, Ordering::SeqCst);
                yield_now().await;
            }
        })
    });
    until(|| !reports("weald::monitor", "`just below`").is_empty());
    let found = reports("weald::monitor", "`just below`");
    assert_eq!(found[0].level, tracing::Level::WARN);
    let says = |words| found[0].text.contains(words);
    assert!(
        says("again and again") || says("has blocked or computed"),
        "{found:?}"
    );
    // The only worker serves others while the job computes, which is in quarantine.
    let other = async move { tools::until_yielding(|| seen.load(Ordering::SeqCst)).await };
    runtime.block_on(runtime.spawn(other)).unwrap();
    others_run(&runtime);
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
}

/// The second one stays below the bound in quarantine, because the first has made its kind suspect.
#[test]
fn each_job_that_stays_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(200))
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let names = ["just below, the first", "just below, the second"];
    let start = |name: &'static str| {
        let stopped = stop.clone();
        runtime.block_on(async {
            Spawn::new().name(name).spawn(async move {
                while !stopped.load(Ordering::SeqCst) {
                    compute_on_a_core(Duration::from_millis(160));
                    yield_now().await;
                }
            })
        })
    };
    let mut jobs = Vec::new();
    for name in names {
        jobs.push(start(name));
        until(|| !reports("weald::monitor", &format!("`{name}`")).is_empty());
    }
    stop.store(true, Ordering::SeqCst);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

/// No job of the kind stays just below the bound more than once.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the units block their threads, for a short time"
)]
fn a_kind_whose_jobs_stay_just_below_the_bound_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(40))
        .build()
        .unwrap();
    let told = || reports("weald::monitor", "as others that were spawned there do");
    // On a busy machine some exceed the bound, which is another offence.
    while told().is_empty() {
        let jobs: Vec<_> = (0..40)
            .map(|_| runtime.spawn(async { thread::sleep(Duration::from_millis(25)) }))
            .collect();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    }
    let text = &told()[0].text;
    assert!(text.contains("bursts.rs"), "{text}");
}

/// In quarantine, where the job owns no worker that it could hand off, an announced block counts as one, and is no
/// offence.
#[test]
fn a_job_in_quarantine_that_announces_its_block_is_not_reported() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .spare_threads(128)
        .build()
        .unwrap();
    let (offends, announces) = (Blocker::default(), Blocker::default());
    let unit = |name: &'static str| {
        let (offends, announces) = (offends.clone(), announces.clone());
        runtime.block_on(async {
            Spawn::new().name(name).spawn(async move {
                match name {
                    "offends" => offends.block(),
                    _ => block_in_place(|| announces.block()),
                }
            })
        })
    };
    let mut jobs = vec![unit("offends")];
    until(|| runtime.metrics().detached == 1);
    jobs.extend((0..20).map(|_| unit("announces")));
    until(|| announces.begun() == 20);
    // Those that exceed the bound now are reported no later than this one, which began after them.
    let last = runtime.spawn({
        let offends = offends.clone();
        async move { offends.block() }
    });
    until(|| runtime.metrics().detached >= 2);
    flushed();
    assert_eq!(reports("weald::monitor", "`announces`").len(), 0);
    assert_eq!(runtime.metrics().announced, 20);
    offends.open();
    announces.open();
    jobs.push(last);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn a_job_of_the_burst_waits_with_its_stack_and_is_cancelled() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(16)
        .build()
        .unwrap();
    let (blocker, latch) = (Blocker::default(), Latch::default());
    let jobs: Vec<_> = (0..40)
        .map(|n| {
            let (blocker, latch) = (blocker.clone(), latch.clone());
            runtime.spawn(async move {
                blocker.block();
                latch.wait();
                n
            })
        })
        .collect();
    until(|| blocker.begun() >= 10);
    blocker.open();
    until(|| latch.waiters() == 40);
    others_run(&runtime);
    let (even, odd): (Vec<_>, Vec<_>) = jobs.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
    for (_, job) in odd {
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    }
    latch.open();
    for (n, job) in even {
        assert_eq!(runtime.block_on(job).unwrap(), n);
    }
}

#[test]
fn a_shutdown_ends_jobs_that_wait_for_a_thread() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(8)
        .build()
        .unwrap();
    let blocker = Blocker::default();
    let jobs = burst(&runtime, &blocker, 100);
    until(|| blocker.begun() >= 7);
    let report = runtime.shutdown(Duration::from_millis(100));
    assert!(report.not_stopped.len() <= 10, "{report:?}");
    blocker.open();
    let cancelled = jobs
        .into_iter()
        .map(Wait::wait)
        .filter(Result::is_err)
        .count();
    assert!(cancelled >= 90, "{cancelled}");
}

/// A job that was detached wakes many others: each of them runs, while it computes on.
#[test]
fn every_wake_of_a_detached_job_arrives() {
    let _watch = watch();
    let runtime = runtime(2);
    let stop = Arc::new(AtomicBool::new(false));
    let latches: Vec<Latch> = (0..1_000).map(|_| Latch::default()).collect();
    let waiters: Vec<_> = latches
        .iter()
        .cloned()
        .map(|latch| runtime.spawn(latch))
        .collect();
    until(|| latches.iter().all(|latch| latch.waiters() == 1));
    let stopped = stop.clone();
    let sender = runtime.spawn(async move {
        compute(Duration::from_millis(30));
        latches.iter().for_each(Latch::open);
        while !stopped.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    });
    for waiter in waiters {
        runtime.block_on(waiter).unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(sender).unwrap();
}

#[test]
fn cancelled_jobs_that_wait_for_a_thread_end_before_one_is_free() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(8)
        .build()
        .unwrap();
    let blocker = Blocker::default();
    let jobs = burst(&runtime, &blocker, 100);
    until(|| blocker.begun() >= 6);
    jobs.iter().for_each(JoinHandle::cancel);
    until(|| jobs.iter().filter(|job| job.is_finished()).count() >= 90);
    blocker.open();
    for job in jobs {
        let _ended = runtime.block_on(job);
    }
}

/// Each of them holds its thread in a half of a fork of its own: it blocks, or computes.
#[test]
fn a_burst_of_jobs_that_hold_their_threads_in_forks_stops_no_other_kind() {
    for computes in [false, true] {
        collect_reports();
        let _watch = watch();
        let builder = Runtime::builder().workers(1).spare_threads(8);
        let runtime = builder.build().unwrap();
        let (blocker, stop) = (Blocker::default(), Arc::new(AtomicBool::new(false)));
        let jobs: Vec<_> = (0..60)
            .map(|_| {
                let (blocker, stop) = (blocker.clone(), stop.clone());
                let hold = move || match computes {
                    true => while !stop.load(Ordering::SeqCst) {},
                    false => blocker.block(),
                };
                runtime.spawn(async { fork::join(hold, || ()).1 })
            })
            .collect();
        others_run(&runtime);
        blocker.open();
        stop.store(true, Ordering::SeqCst);
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    }
}
