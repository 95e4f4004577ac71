//! A fork on a thread that is detached from its worker: the fork runs on, its halves can still be stolen, and no
//! job is reported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{until, watch};
use weald_kernel::{Runtime, Spawn, fork::join};

/// A runtime whose monitor retakes a stuck worker after 1 ms.
fn quickly_retaking(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .stuck_after(Duration::from_millis(1))
        .build()
        .unwrap()
}

/// Computes until the monitor has detached `times` threads.
fn until_detached(runtime: &Runtime, times: u64) {
    until(|| runtime.metrics().detached >= times);
}

#[test]
fn a_forking_thread_is_detached_and_its_worker_serves_others() {
    let _watch = watch();
    collect_reports();
    let runtime = quickly_retaking(1);
    let computes = || {
        BEGUN.store(true, Ordering::SeqCst);
        until(|| SERVED.load(Ordering::SeqCst));
    };
    let job = runtime.spawn(async move {
        let forks = Spawn::new().name("forks alongside others");
        forks
            .spawn(async move { join(computes, || 42).1 })
            .await
            .unwrap()
    });
    until(|| BEGUN.load(Ordering::SeqCst));
    // The only worker is busy until this has run.
    let other = runtime.spawn(async { SERVED.store(true, Ordering::SeqCst) });
    runtime.block_on(other).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), 42);
    assert!(runtime.metrics().detached >= 1);
    flushed();
    assert!(reports("weald::monitor", "forks alongside others").is_empty());
    // In contrast, a job that does not fork is reported.
    let detached = runtime.metrics().detached;
    let job = runtime.block_on(async {
        let alone = Spawn::new().name("computes alone");
        let runtime = &runtime;
        thread::scope(|threads| {
            let counted = threads.spawn(move || {
                until_detached(runtime, detached + 1);
                ENOUGH.store(true, Ordering::SeqCst);
            });
            let job = alone.spawn(async { until(|| ENOUGH.load(Ordering::SeqCst)) });
            counted.join().unwrap();
            Some(job)
        })
    });
    runtime.block_on(job.unwrap()).unwrap();
    until(|| !reports("weald::monitor", "computes alone").is_empty());
    flushed();
    let reports = reports("weald::monitor", "computes alone");
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].level, tracing::Level::WARN);
}

static BEGUN: AtomicBool = AtomicBool::new(false);
static SERVED: AtomicBool = AtomicBool::new(false);
static ENOUGH: AtomicBool = AtomicBool::new(false);

#[test]
fn forks_of_a_detached_thread_can_still_be_stolen() {
    let _watch = watch();
    let runtime = std::sync::Arc::new(quickly_retaking(2));
    let job = {
        let runtime = std::sync::Arc::downgrade(&runtime);
        async move {
            let runtime = runtime.upgrade().unwrap();
            let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
            join(
                || {
                    until_detached(&runtime, 1);
                    // Pushed by a detached thread. Both halves must meet.
                    join(|| meet(&left, &right), || meet(&right, &left));
                    thread::current().id()
                },
                || until_detached(&runtime, 1),
            );
        }
    };
    let job = runtime.spawn(job);
    runtime.block_on(job).unwrap();
}

fn meet(here: &AtomicBool, there: &AtomicBool) {
    here.store(true, Ordering::SeqCst);
    until(|| there.load(Ordering::SeqCst));
}

#[test]
fn spare_threads_run_no_more_halves_at_once_than_there_are_workers() {
    fn halves(n: u32, most: &std::sync::atomic::AtomicUsize, now: &std::sync::atomic::AtomicUsize) {
        if n > 0 {
            join(|| halves(n - 1, most, now), || halves(n - 1, most, now));
            return;
        }
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        (0..100_000).for_each(|i| assert!(std::hint::black_box(i) >= 0));
        now.fetch_sub(1, Ordering::SeqCst);
    }
    let _watch = watch();
    let runtime = quickly_retaking(1);
    let job = runtime.spawn(async {
        let (most, now) = Default::default();
        halves(8, &most, &now);
        most.into_inner()
    });
    assert_eq!(runtime.block_on(job).unwrap(), 1);
    assert!(runtime.metrics().detached >= 1);
}

#[test]
fn a_job_that_computes_on_after_its_fork_is_named() {
    static SERVES: AtomicBool = AtomicBool::new(false);
    static IS_NAMED: AtomicBool = AtomicBool::new(false);
    let _watch = watch();
    collect_reports();
    let runtime = quickly_retaking(1);
    let (begins, begun) = std::sync::mpsc::channel();
    let computes = async move {
        let half = || {
            begins.send(()).unwrap();
            until(|| SERVES.load(Ordering::SeqCst));
        };
        join(half, || ());
        until(|| IS_NAMED.load(Ordering::SeqCst));
    };
    let job =
        runtime.block_on(async { Spawn::new().name("computes after its fork").spawn(computes) });
    begun.recv().unwrap();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    SERVES.store(true, Ordering::SeqCst);
    until(|| !reports("weald::monitor", "computes after its fork").is_empty());
    IS_NAMED.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
}
