//! Bursts: many jobs of one kind that hold their threads at once, more than there are spare threads. All others run on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/bursts.rs"]
mod bursts;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use blocker::Blocker;
use bursts::{announced_burst, burst, compute, join_all, others_run, with_spare_threads};
use reports::{collect_reports, flushed, reports};
use tools::{Latch, runtime, until, watch};
use weald_kernel::{JoinHandle, Runtime, Spawn, Wait, block_in_place, fork, sleep};

#[test]
fn more_blockers_than_spare_threads_stop_no_other_kind() {
    collect_reports();
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = with_spare_threads(workers, 8);
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
        let runtime = with_spare_threads(workers, 16);
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
        let runtime = with_spare_threads(workers, 16);
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

#[test]
fn a_burst_gets_as_many_threads_as_it_needs() {
    let _watch = watch();
    let runtime = with_spare_threads(2, 128);
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
    let runtime = with_spare_threads(1, 8);
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

/// In quarantine, where the job owns no worker that it could hand off, an announced block counts as one, and is no
/// offence.
#[test]
fn a_job_in_quarantine_that_announces_its_block_is_not_reported() {
    let _watch = watch();
    collect_reports();
    let runtime = with_spare_threads(1, 128);
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
    let runtime = with_spare_threads(2, 16);
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
    let runtime = with_spare_threads(2, 8);
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
    let runtime = with_spare_threads(2, 8);
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
