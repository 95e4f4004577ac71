//! Bursts in forks: more parts that wait than there are spare threads. All others run on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::{Latch, until, watch};
use weald_kernel::{Runtime, Wait, fork, sleep, spawn, yield_now};

const SPARE: usize = 16;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .spare_threads(SPARE)
        .build()
        .unwrap()
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

/// Each part waits, so its thread runs the next one.
#[test]
fn one_fork_of_a_thousand_parts_that_wait_stops_nobody_else() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, latch) = (runtime(workers), Latch::default());
        let waits = latch.clone();
        let forks = move || {
            fork::for_each((0..1_000).collect::<Vec<_>>(), |_| waits.clone().wait());
        };
        let job = runtime.spawn(async move { forks() });
        until(|| latch.waiters() == 1_000);
        others_run(&runtime);
        latch.open();
        runtime.block_on(job).unwrap();
    }
}
