//! Forks and scopes whose owners wait for a part of their own, while other parts of the same line hold all threads that
//! may run such parts: the parts that are waited for are begun one after the other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::sync::{Mutex, mpsc};

use blocker::Blocker;
use tools::{Latch, until, watch};
use weald_kernel::{JoinHandle, Runtime, Wait, Waits, fork};

fn with_spare_threads(workers: usize, spare: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.spare_threads(spare).build().unwrap()
}

/// Runs `part`, for which `owner` may wait, as a fork of the line that all calls share.
type Fork = fn(owner: &(dyn Fn() + Sync), part: &(dyn Fn() + Sync));

fn by_join(owner: &(dyn Fn() + Sync), part: &(dyn Fn() + Sync)) {
    fork::join(owner, part);
}

fn by_scope(owner: &(dyn Fn() + Sync), part: &(dyn Fn() + Sync)) {
    fork::scope(|scope| {
        scope.spawn(part);
        owner();
    });
}

/// So many forks, each in a job, whose parts block. Each owner waits until its part has begun.
fn forks_that_block(
    runtime: &Runtime,
    fork: Fork,
    blocker: &Blocker,
    count: usize,
) -> Vec<JoinHandle<()>> {
    let start = |_| {
        let (blocker, begun) = (blocker.clone(), Latch::default());
        runtime.spawn(async move {
            let blocks = || {
                begun.open();
                blocker.block();
            };
            fork(&|| begun.clone().wait(), &blocks);
        })
    };
    (0..count).map(start).collect()
}

/// A fork whose part ends what all others wait for. Its owner waits for the part.
fn a_fork_that_frees(runtime: &Runtime, fork: Fork, blocker: &Blocker) -> JoinHandle<()> {
    let (blocker, freed) = (blocker.clone(), Latch::default());
    runtime.spawn(async move {
        let frees = || {
            blocker.open();
            freed.open();
        };
        fork(&|| freed.clone().wait(), &frees);
    })
}

fn one_that_frees_goes_on(fork: Fork) {
    for workers in [1, 2] {
        let _watch = watch();
        let (runtime, blocker) = (with_spare_threads(workers, 8), Blocker::default());
        let mut jobs = forks_that_block(&runtime, fork, &blocker, 7);
        until(|| blocker.begun() == 7);
        jobs.push(a_fork_that_frees(&runtime, fork, &blocker));
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    }
}

#[test]
fn a_fork_whose_first_half_waits_frees_those_that_hold_all_threads_of_its_line() {
    one_that_frees_goes_on(by_join);
}

#[test]
fn a_scope_whose_owner_waits_frees_those_that_hold_all_threads_of_its_line() {
    one_that_frees_goes_on(by_scope);
}

/// As [`a_fork_that_frees`], but its owner blocks its thread, so nobody but the monitor finds out.
fn one_whose_owner_blocks_goes_on(fork: Fork) {
    let _watch = watch();
    let (runtime, blocker) = (with_spare_threads(2, 16), Blocker::default());
    let mut jobs = forks_that_block(&runtime, fork, &blocker, 14);
    until(|| blocker.begun() == 14);
    let (frees, (sender, freed)) = (blocker.clone(), mpsc::channel());
    jobs.push(runtime.spawn(async move {
        let (sender, freed) = (Mutex::new(sender), Mutex::new(freed));
        let part = || {
            frees.open();
            sender.lock().unwrap().send(()).unwrap();
        };
        fork(&|| freed.lock().unwrap().recv().unwrap(), &part);
    }));
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn a_fork_whose_first_half_blocks_for_its_second_frees_those_that_hold_all_threads_of_its_line() {
    one_whose_owner_blocks_goes_on(by_join);
}

#[test]
fn a_scope_whose_body_blocks_for_a_part_frees_those_that_hold_all_threads_of_its_line() {
    one_whose_owner_blocks_goes_on(by_scope);
}

/// All threads are used up, so nobody can begin a further part. It is named, and others run. `are_two`: whether two are
/// named so.
fn one_without_a_thread_is_named(fork: Fork, are_two: fn(&Waits) -> bool) {
    for workers in [1, 2] {
        let _watch = watch();
        // The last one is granted a second after the others: by then no worker holds a part that it began before the
        // line was suspect, and that needs one of the threads.
        let (runtime, blocker) = (with_spare_threads(workers, 16), Blocker::default());
        let mut jobs = forks_that_block(&runtime, fork, &blocker, 18);
        until(|| blocker.begun() == 16);
        until(|| are_two(&runtime.waits()));
        let waits = runtime.waits();
        for job in waits.held_back_jobs {
            assert!(job.site.file().ends_with("fork_relief.rs"), "{job}");
        }
        for parts in waits.held_back_forks {
            assert!(parts.site.file().ends_with("fork_relief.rs"), "{parts}");
            let by = parts.by.as_ref().unwrap();
            assert!(by.site.file().ends_with("fork_relief.rs"), "{parts}");
        }
        for _ in 0..100 {
            runtime.block_on(runtime.spawn(async {})).unwrap();
        }
        assert_eq!(blocker.begun(), 16);
        blocker.open();
        for job in jobs.drain(..) {
            runtime.block_on(job).unwrap();
        }
        // A runner of a scope that is over may still wait for a thread.
        until(|| {
            let waits = runtime.waits();
            waits.held_back_forks.is_empty() && waits.held_back_jobs.is_empty()
        });
    }
}

#[test]
fn a_fork_for_whose_part_no_thread_is_left_is_named() {
    // A thief may have taken a part a moment before: then it waits in the quarantine.
    one_without_a_thread_is_named(by_join, |waits| {
        waits.held_back_forks.len() + waits.held_back_jobs.len() == 2
    });
}

#[test]
fn a_scope_for_whose_part_no_thread_is_left_is_named() {
    // Their runners wait in the quarantine, beside those of scopes for which others were started.
    one_without_a_thread_is_named(by_scope, |waits| waits.held_back_forks.len() == 2);
}

/// More of them than threads: in the end all threads are used up, and others still run.
#[test]
fn six_hundred_forks_whose_owners_wait_for_parts_that_block_use_up_the_threads_and_stop_nobody_else()
 {
    let _watch = watch();
    let (runtime, blocker) = (with_spare_threads(2, 16), Blocker::default());
    let jobs = forks_that_block(&runtime, by_join, &blocker, 600);
    until(|| blocker.begun() == 16);
    until(|| {
        let waits = runtime.waits();
        waits.held_back_forks.len() + waits.held_back_jobs.len() == 600 - 16
    });
    for _ in 0..1_000 {
        runtime.block_on(runtime.spawn(async {})).unwrap();
    }
    assert_eq!(blocker.begun(), 16);
    blocker.open();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

/// Many more than there are threads for. Each one that is begun frees the next.
#[test]
fn six_hundred_forks_that_wait_end_one_after_the_other() {
    let _watch = watch();
    let (runtime, blocker) = (with_spare_threads(2, 8), Blocker::default());
    let mut jobs = forks_that_block(&runtime, by_join, &blocker, 7);
    until(|| blocker.begun() == 7);
    let waiting = (0..600).map(|_| {
        let ended = Latch::default();
        runtime.spawn(async move { by_join(&|| ended.clone().wait(), &|| ended.open()) })
    });
    let waiting: Vec<_> = waiting.collect();
    for job in waiting {
        runtime.block_on(job).unwrap();
    }
    blocker.open();
    for job in jobs.drain(..) {
        runtime.block_on(job).unwrap();
    }
}
