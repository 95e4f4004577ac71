//! `others_work`: whether another worker of the caller's runtime has work at this moment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tools::{until, watch};
use weald_kernel::{Runtime, others_work};

fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    let never = Duration::from_secs(3600);
    builder.stuck_after(never).build().unwrap()
}

#[test]
fn the_only_worker_and_a_thread_outside_have_no_others() {
    let _watch = watch();
    let runtime = runtime(1);
    assert!(
        !runtime
            .block_on(runtime.spawn(async { others_work() }))
            .unwrap()
    );
    assert!(!others_work());
}

#[test]
fn another_worker_works_while_it_runs_a_job_and_not_while_it_sleeps() {
    let _watch = watch();
    let runtime = runtime(2);
    let [runs, goes_on] = [(); 2].map(|()| Arc::<AtomicBool>::default());
    let (has_begun, may_go_on) = (runs.clone(), goes_on.clone());
    let one = runtime.spawn(async move {
        has_begun.store(true, Ordering::SeqCst);
        until(|| may_go_on.load(Ordering::SeqCst));
        until(|| !others_work());
    });
    until(|| runs.load(Ordering::SeqCst));
    let seen = runtime.block_on(runtime.spawn(async { others_work() }));
    goes_on.store(true, Ordering::SeqCst);
    runtime.block_on(one).unwrap();
    assert!(seen.unwrap());
}
