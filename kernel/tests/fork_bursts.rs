//! Bursts in forks: more parts that block than there are spare threads. All others run on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::time::Duration;

use blocker::Blocker;
use tools::{Latch, until, watch};
use weald_kernel::{Runtime, Wait, block_in_place, fork, sleep, spawn, yield_now};

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

/// At least one spare thread is left for a worker that is retaken.
fn assert_threads_are_left(blocker: &Blocker, workers: usize) {
    let most = SPARE + workers - 1;
    assert!(blocker.begun() <= most, "{} block", blocker.begun());
}

#[test]
fn three_hundred_joins_of_two_halves_that_block_stop_nobody_else() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, blocker) = (runtime(workers), Blocker::default());
        let jobs: Vec<_> = (0..300)
            .map(|_| {
                let blocker = blocker.clone();
                let joins = move || fork::join(|| blocker.block(), || blocker.block());
                runtime.spawn(async move { _ = joins() })
            })
            .collect();
        until(|| blocker.begun() >= SPARE * 7 / 8);
        others_run(&runtime);
        assert_threads_are_left(&blocker, workers);
        blocker.open();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
        assert_eq!(blocker.begun(), 600);
    }
}

/// One fork, of more parts than spare threads; while there is no thread for them, no thief takes one. Of parts that
/// announce that they block, thieves take one more each second.
fn one_fork_stops_nobody_else(part: fn(&Blocker), announces: bool) {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, blocker) = (runtime(workers), Blocker::default());
        let blocks = blocker.clone();
        let forks = move || fork::for_each((0..1_200).collect::<Vec<_>>(), |_| part(&blocks));
        let job = runtime.spawn(async move { forks() });
        until(|| blocker.begun() >= SPARE * 7 / 8);
        assert_threads_are_left(&blocker, workers);
        others_run(&runtime);
        until(|| !runtime.waits().held_back_forks.is_empty());
        others_run(&runtime);
        if !announces {
            assert_threads_are_left(&blocker, workers);
        }
        blocker.open();
        runtime.block_on(job).unwrap();
        assert_eq!(blocker.begun(), 1_200);
    }
}

#[test]
fn one_fork_of_parts_that_block_stops_nobody_else() {
    one_fork_stops_nobody_else(Blocker::block, false);
}

#[test]
fn one_fork_of_parts_that_announce_that_they_block_stops_nobody_else() {
    one_fork_stops_nobody_else(|blocker| block_in_place(|| blocker.block()), true);
}

/// The owner of a scope runs those parts that no runner has begun.
#[test]
fn one_scope_of_parts_that_block_stops_nobody_else() {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, blocker) = (runtime(workers), Blocker::default());
        let blocks = blocker.clone();
        let forks = move || {
            fork::scope(|scope| {
                for _ in 0..600 {
                    scope.spawn(|| blocks.block());
                }
            });
        };
        let job = runtime.spawn(async move { forks() });
        until(|| blocker.begun() >= SPARE * 7 / 8);
        others_run(&runtime);
        assert_threads_are_left(&blocker, workers);
        blocker.open();
        runtime.block_on(job).unwrap();
        assert_eq!(blocker.begun(), 600);
    }
}

/// Once none blocks any longer, thieves take parts again.
#[test]
fn parts_that_blocked_once_are_shared_again() {
    let _watch = watch();
    let (runtime, blocker) = (runtime(2), Blocker::default());
    let blocks = blocker.clone();
    let on_parts = |act: &(dyn Fn(usize) + Sync)| {
        fork::for_each((0..40).collect::<Vec<_>>(), act);
    };
    let job = runtime.spawn(async move { on_parts(&|_| blocks.block()) });
    until(|| !runtime.waits().held_back_forks.is_empty());
    blocker.open();
    runtime.block_on(job).unwrap();
    // Two parts of the same line meet, which they can only on two threads.
    let job = runtime.spawn(async move {
        let (left, right) = (Latch::default(), Latch::default());
        on_parts(&|part| match part {
            0 => {
                left.open();
                right.clone().wait();
            }
            39 => {
                right.open();
                left.clone().wait();
            }
            _ => {}
        });
    });
    runtime.block_on(job).unwrap();
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
