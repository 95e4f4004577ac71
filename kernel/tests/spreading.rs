//! Jobs spread over the workers where that is worth it: none waits for long beside a worker that sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use tools::watch;
use weald_kernel::{Runtime, spawn, yield_now};

/// A runtime with two workers that are never retaken.
fn two_workers() -> Runtime {
    Runtime::builder()
        .workers(2)
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap()
}

/// Yields until some job has seen that it runs on another thread than `first`.
async fn yield_until_spread(first: ThreadId, spread: Arc<AtomicBool>) {
    while !spread.load(Ordering::Relaxed) {
        if thread::current().id() != first {
            spread.store(true, Ordering::Relaxed);
        }
        yield_now().await;
    }
}

/// However little each of them does: their queue is longer than a worker may leave it while the other sleeps.
#[test]
fn very_many_jobs_that_do_little_run_on_both_workers() {
    let _watch = watch();
    let runtime = two_workers();
    let spreads = runtime.spawn(async {
        let (first, spread) = (thread::current().id(), Arc::new(AtomicBool::new(false)));
        let mut jobs = Vec::new();
        while jobs.len() < 20_000 {
            let yields = || spawn(yield_until_spread(first, spread.clone()));
            jobs.extend((0..10).map(|_| yields()));
            // A long run would be helped for another reason.
            yield_now().await;
        }
        for job in jobs {
            job.await.unwrap();
        }
    });
    runtime.block_on(spreads).unwrap();
}

async fn compute_until_both_run(running: Arc<AtomicUsize>) {
    running.fetch_add(1, Ordering::SeqCst);
    while running.load(Ordering::SeqCst) < 2 {
        std::hint::spin_loop();
    }
}

#[test]
fn jobs_that_compute_run_side_by_side() {
    let _watch = watch();
    let runtime = two_workers();
    for _ in 0..20 {
        let pair = runtime.spawn(async {
            let running = Arc::new(AtomicUsize::new(0));
            [(); 2].map(|()| spawn(compute_until_both_run(running.clone())))
        });
        for job in runtime.block_on(pair).unwrap() {
            runtime.block_on(job).unwrap();
        }
    }
}
