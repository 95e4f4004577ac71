//! A runtime where the system has no `membarrier(2)`: the owner of a worker takes a full fence, and everything else is
//! as it was.
//!
//! A program of its own, because the first runtime chooses the fences for the whole program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/no_membarrier.rs"]
mod no_membarrier;
#[path = "support/tools.rs"]
mod tools;

use std::{sync::Arc, time::Duration};

use futures_channel::mpsc;
use futures_util::StreamExt;
use no_membarrier::forbid_membarriers;
use tools::{until, watch};
use weald_kernel::{LazyJob, Runtime, Spawn, push_lazy, sleep, spawn, take_lazy};

/// Two jobs that wake each other, while foreign threads enter the core of their worker.
async fn ping_pong(rounds: u32) -> u32 {
    let (to_pong, mut pong) = mpsc::unbounded();
    let (to_ping, mut ping) = mpsc::unbounded();
    let ponging = spawn(async move {
        while let Some(n) = pong.next().await {
            to_ping.unbounded_send(n + 1).unwrap();
        }
    });
    let mut last = 0;
    for _ in 0..rounds {
        to_pong.unbounded_send(last).unwrap();
        last = ping.next().await.unwrap();
    }
    drop(to_pong);
    ponging.await.unwrap();
    last
}

#[test]
fn jobs_wake_each_other_while_foreign_threads_enter() {
    let _watch = watch();
    forbid_membarriers();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let pinging = runtime.spawn(ping_pong(10_000));
    // A thread without a worker starts its timers in the core of one.
    let sleeping = runtime.spawn(async { sleep(Duration::from_millis(1)).await });
    runtime.block_on(async { sleep(Duration::from_millis(1)).await });
    assert_eq!(runtime.block_on(pinging).unwrap(), 10_000);
    runtime.block_on(sleeping).unwrap();
}

#[test]
fn a_worker_is_retaken_from_a_stuck_thread_which_then_learns_of_it() {
    let _watch = watch();
    forbid_membarriers();
    let builder = Runtime::builder().workers(1);
    let builder = builder.stuck_after(Duration::from_millis(1));
    let runtime = Arc::new(builder.build().unwrap());
    let watched = Arc::downgrade(&runtime);
    let stuck = runtime.spawn(async move {
        let runtime = watched.upgrade().unwrap();
        until(|| runtime.metrics().detached > 0);
        // A job that this thread wakes reaches the worker, which is another thread's now.
        spawn(ping_pong(100)).await.unwrap()
    });
    assert_eq!(runtime.block_on(stuck).unwrap(), 100);
    assert_eq!(
        runtime.block_on(runtime.spawn(ping_pong(100))).unwrap(),
        100
    );
}

#[test]
#[allow(unsafe_code, reason = "lazy jobs are for other languages")]
fn a_lazy_job_is_kept_though_the_owner_must_wait_for_the_lock() {
    let _watch = watch();
    forbid_membarriers();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let code = || {
            let lazy = LazyJob::new();
            // SAFETY: it is taken back.
            assert!(unsafe { push_lazy(&lazy, |_| unreachable!()) });
            // SAFETY: it was given to this runtime.
            assert!(unsafe { take_lazy(&lazy) });
        };
        // SAFETY: the code keeps nothing that depends on the OS thread.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(64 << 10, code) };
        fiber.unwrap().await.unwrap();
    });
}
