//! A detached thread that computes gets a lower priority from the system, but only while cores are short.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tools::watch;
use weald_kernel::Runtime;

/// A runtime with one worker, which its monitor retakes after 1 ms.
fn quickly_retaking() -> Arc<Runtime> {
    let builder = Runtime::builder().workers(1);
    let stuck_after = Duration::from_millis(1);
    Arc::new(builder.stuck_after(stuck_after).build().unwrap())
}

fn cores() -> usize {
    thread::available_parallelism().unwrap().get()
}

/// The nice value of the calling thread.
fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

/// Whether the whole program runs at the system's lowest priority, so that no thread of it can be lowered.
fn is_lowest() -> bool {
    nice() == 19
}

/// Spins without a pause: in a pause the thread would not compute.
fn computes_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::hint::spin_loop();
    }
}

#[test]
fn a_thread_that_computes_while_cores_are_free_keeps_its_priority() {
    // One core for the job and one for the spare thread.
    if cores() < 2 {
        return;
    }
    let _watch = watch();
    let runtime = quickly_retaking();
    let (normal, metrics) = (nice(), Arc::downgrade(&runtime));
    let computes = runtime.spawn(async move {
        computes_until(|| metrics.upgrade().unwrap().metrics().detached > 0);
        nice()
    });
    assert_eq!(runtime.block_on(computes).unwrap(), normal);
}

#[test]
fn computing_threads_that_outnumber_the_cores_are_lowered() {
    if is_lowest() {
        return;
    }
    let _watch = watch();
    let runtime = quickly_retaking();
    let normal = nice();
    let any_lowered = Arc::new(AtomicBool::new(false));
    let computes = |_| {
        let any_lowered = any_lowered.clone();
        runtime.spawn(async move {
            computes_until(|| {
                any_lowered.fetch_or(nice() > normal, Ordering::SeqCst);
                any_lowered.load(Ordering::SeqCst)
            });
        })
    };
    let jobs: Vec<_> = (0..=cores()).map(computes).collect();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    // A thread that cannot be raised again does not run another job.
    let next = runtime.spawn(async move { nice() });
    assert_eq!(runtime.block_on(next).unwrap(), normal);
}

/// The scheduling policy of the calling thread, as the system numbers it.
fn policy() -> u32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = &stat[stat.rfind(')').unwrap() + 1..];
    after_name
        .split_whitespace()
        .nth(38)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn threads_that_got_only_what_was_left_over_are_raised_again() {
    let _watch = watch();
    let runtime = quickly_retaking();
    let normal = policy();
    let any_idle = Arc::new(AtomicBool::new(false));
    let computes = |_| {
        let any_idle = any_idle.clone();
        runtime.spawn(async move {
            computes_until(|| {
                any_idle.fetch_or(policy() != normal, Ordering::SeqCst);
                any_idle.load(Ordering::SeqCst)
            });
        })
    };
    // More than four for each core.
    let jobs: Vec<_> = (0..4 * cores() + 8).map(computes).collect();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    for _ in 0..100 {
        let next = runtime.spawn(async move { policy() });
        assert_eq!(runtime.block_on(next).unwrap(), normal);
    }
}
