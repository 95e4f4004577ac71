//! A fork whose thread loses its right: it goes on, others may still take its halves, and nobody is blamed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{until, watch};
use weald_kernel::{Runtime, Spawn, fork::join};

fn quickly_relieved(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .stuck_after(Duration::from_millis(1))
        .build()
        .unwrap()
}

/// Computes until the runtime has relieved `times` threads.
fn until_relieved(runtime: &Runtime, times: u64) {
    until(|| runtime.metrics().relieved >= times);
}

#[test]
fn a_fork_is_relieved_and_its_worker_serves_others() {
    let _watch = watch();
    collect_reports();
    let runtime = quickly_relieved(1);
    static RUNTIME_SERVED: AtomicBool = AtomicBool::new(false);
    let computes = || until(|| RUNTIME_SERVED.load(Ordering::SeqCst));
    let forks = Spawn::new().name("forks beside others");
    let job = runtime.block_on(async { forks.spawn(async move { join(computes, || 42).1 }) });
    // The only worker is busy until this has run.
    let other = runtime.spawn(async { RUNTIME_SERVED.store(true, Ordering::SeqCst) });
    runtime.block_on(other).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), 42);
    assert!(runtime.metrics().relieved >= 1);
    assert!(reports("weald::monitor", "forks beside others").is_empty());
}

#[test]
fn what_a_relieved_thread_forked_can_still_be_taken() {
    let _watch = watch();
    let runtime = std::sync::Arc::new(quickly_relieved(2));
    let job = {
        let runtime = std::sync::Arc::downgrade(&runtime);
        async move {
            let runtime = runtime.upgrade().unwrap();
            let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
            join(
                || {
                    until_relieved(&runtime, 1);
                    // Pushed by a thread that has no right; both must meet.
                    join(|| meet(&left, &right), || meet(&right, &left));
                    thread::current().id()
                },
                || until_relieved(&runtime, 1),
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
fn stand_ins_begin_no_more_halves_than_there_are_workers() {
    fn halves(n: u32, most: &std::sync::atomic::AtomicUsize, now: &std::sync::atomic::AtomicUsize) {
        if n > 0 {
            join(|| halves(n - 1, most, now), || halves(n - 1, most, now));
            return;
        }
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        (0..100_000).for_each(|i| drop(std::hint::black_box(i)));
        now.fetch_sub(1, Ordering::SeqCst);
    }
    let _watch = watch();
    let runtime = quickly_relieved(1);
    let job = runtime.spawn(async {
        let (most, now) = Default::default();
        halves(8, &most, &now);
        most.into_inner()
    });
    assert_eq!(runtime.block_on(job).unwrap(), 1);
    assert!(runtime.metrics().relieved >= 1);
}
