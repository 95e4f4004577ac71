//! Forks and their runtime: test runtimes, a shutdown in the middle of forks, many threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tools::{runtime, until, watch};
use weald_kernel::{Runtime, Wait, fork::join, sleep, spawn};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn forks_run_in_a_test_runtime() {
    let _watch = watch();
    for seed in 0..20 {
        let runtime = Runtime::test(seed);
        let sum = runtime.block_on(async {
            let job = spawn(async { join(|| fib(10), || spawn(async { 1 }).wait().unwrap()) });
            let (a, b) = job.await.unwrap();
            a + b + fib(5)
        });
        assert_eq!(sum, 55 + 1 + 5);
    }
}

#[test]
fn halves_wait_for_each_other_in_a_test_runtime() {
    let _watch = watch();
    for seed in 0..20 {
        let runtime = Runtime::test(seed);
        let received = runtime.block_on(async {
            let job = spawn(async {
                let (sender, receiver) = futures_channel::oneshot::channel();
                let second = move || {
                    sleep(std::time::Duration::from_secs(3600)).wait();
                    sender.send(42)
                };
                join(move || receiver.wait(), second).0
            });
            job.await.unwrap()
        });
        assert_eq!(received, Ok(42));
    }
}

#[test]
fn dropping_a_runtime_ends_jobs_that_fork_forever() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let begun = Arc::new(AtomicBool::new(false));
        for _ in 0..workers {
            let begun = begun.clone();
            runtime
                .spawn(async move {
                    loop {
                        begun.store(true, Ordering::SeqCst);
                        join(|| fib(10), || fib(10));
                    }
                })
                .detach();
        }
        until(|| begun.load(Ordering::SeqCst));
        drop(runtime);
    }
}

#[test]
fn foreign_threads_fork_alongside_jobs() {
    let _watch = watch();
    let runtime = Arc::new(runtime(2));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let runtime = runtime.clone();
            thread::spawn(move || runtime.block_on(async { fib(18) }))
        })
        .collect();
    let job = runtime.spawn(async { fib(18) });
    assert_eq!(runtime.block_on(job).unwrap(), 2584);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 2584);
    }
}
