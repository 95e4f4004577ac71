//! `fork::join`: both halves run, for every kind of caller, and may borrow from it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use tools::{Latch, on_each, runtime, watch};
use weald_kernel::{Runtime, Wait, fork::join, spawn};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Spins until both halves have started, which takes two threads.
fn meet(here: &AtomicBool, there: &AtomicBool) {
    here.store(true, Ordering::SeqCst);
    while !there.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[test]
fn both_results_come_back_in_a_job() {
    on_each(|runtime| {
        let value = runtime.block_on(runtime.spawn(async { fib(20) }));
        assert_eq!(value.unwrap(), 6765);
    });
}

#[test]
fn both_results_come_back_on_a_foreign_thread() {
    let _watch = watch();
    assert_eq!(fib(20), 6765);
    let runtime = runtime(2);
    assert_eq!(runtime.block_on(async { fib(20) }), 6765);
}

#[test]
fn halves_borrow_from_their_caller() {
    on_each(|runtime| {
        let job = spawn_in(runtime, || {
            let (mut left, mut right) = (vec![1], vec![2]);
            let shared = AtomicU64::new(0);
            join(
                || {
                    left.push(3);
                    shared.fetch_add(1, Ordering::Relaxed);
                },
                || {
                    right.push(4);
                    shared.fetch_add(1, Ordering::Relaxed);
                },
            );
            (left, right, shared.into_inner())
        });
        assert_eq!(job, (vec![1, 3], vec![2, 4], 2));
    });
}

#[test]
fn an_idle_worker_steals_the_second_half() {
    let _watch = watch();
    let runtime = runtime(2);
    let (a, b) = spawn_in(&runtime, || {
        let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
        join(
            || {
                meet(&left, &right);
                thread::current().id()
            },
            || {
                meet(&right, &left);
                thread::current().id()
            },
        )
    });
    assert_ne!(a, b);
}

#[test]
fn a_worker_steals_the_second_half_from_a_foreign_thread() {
    let _watch = watch();
    let runtime = runtime(2);
    runtime.block_on(async {
        let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
        join(|| meet(&left, &right), || meet(&right, &left));
    });
}

#[test]
fn the_oldest_half_is_stolen_from_below_a_deep_recursion() {
    fn down(n: u32, bottom: &AtomicBool, oldest: &AtomicBool) {
        match n {
            0 => meet(bottom, oldest),
            1000 => drop(join(
                || down(n - 1, bottom, oldest),
                || meet(oldest, bottom),
            )),
            _ => drop(join(|| down(n - 1, bottom, oldest), || {})),
        }
    }
    let _watch = watch();
    let runtime = runtime(2);
    spawn_in(&runtime, || {
        down(1000, &AtomicBool::new(false), &AtomicBool::new(false));
    });
}

#[test]
fn many_jobs_fork_at_the_same_time() {
    on_each(|runtime| {
        let jobs: Vec<_> = (0..100).map(|_| runtime.spawn(async { fib(12) })).collect();
        for job in jobs {
            assert_eq!(runtime.block_on(job).unwrap(), 144);
        }
    });
}

#[test]
fn a_deque_grows_while_thieves_steal_from_it() {
    fn down(n: u64, sum: &Mutex<u64>) {
        if n > 0 {
            join(|| down(n - 1, sum), || *sum.lock().unwrap() += n);
        }
    }
    on_each(|runtime| {
        let sum = spawn_in(runtime, || {
            let sum = Mutex::new(0);
            down(3000, &sum);
            sum.into_inner().unwrap()
        });
        assert_eq!(sum, 3000 * 3001 / 2);
    });
}

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

#[test]
fn halves_on_a_foreign_thread_may_wait_for_each_other() {
    on_each(|runtime| {
        let (first, second) = (Latch::default(), Latch::default());
        runtime.block_on(async {
            join(
                || {
                    first.open();
                    second.clone().wait();
                },
                || {
                    second.open();
                    first.clone().wait();
                },
            )
        });
    });
}
