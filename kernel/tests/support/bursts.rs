//! Bursts of jobs that block, and what runs beside them.

#![allow(dead_code, reason = "each test file uses only some of it")]

use std::time::{Duration, Instant};

use weald_kernel::{JoinHandle, Runtime, block_in_place, sleep, spawn, yield_now};

use crate::blocker::Blocker;

pub(crate) fn with_spare_threads(workers: usize, spare: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.spare_threads(spare).build().unwrap()
}

/// Jobs of one kind; each blocks at the blocker.
pub(crate) fn burst(runtime: &Runtime, blocker: &Blocker, count: usize) -> Vec<JoinHandle<usize>> {
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

pub(crate) fn join_all(runtime: &Runtime, jobs: Vec<JoinHandle<usize>>) {
    for (n, job) in jobs.into_iter().enumerate() {
        assert_eq!(runtime.block_on(job).unwrap(), n);
    }
}

/// As [`burst`], but each announces that it blocks.
pub(crate) fn announced_burst(
    runtime: &Runtime,
    blocker: &Blocker,
    count: usize,
) -> Vec<JoinHandle<usize>> {
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
pub(crate) fn others_run(runtime: &Runtime) {
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

/// Computes without a wait.
pub(crate) fn compute(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}
