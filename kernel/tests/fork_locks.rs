//! A lock held across a join: only the join's own halves run on top of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tools::{on_each, runtime, watch};
use weald_kernel::{Wait, fork::join, spawn};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn many_jobs_hold_a_common_lock_across_their_joins() {
    on_each(|runtime| {
        let lock = Arc::new(Mutex::new(0));
        let jobs: Vec<_> = (0..50)
            .map(|_| {
                let lock = lock.clone();
                runtime.spawn(async move {
                    let mut sum = lock.lock().unwrap();
                    *sum += fib(12);
                })
            })
            .collect();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
        assert_eq!(*lock.lock().unwrap(), 50 * 144);
    });
}

#[test]
fn forks_in_forks_hold_a_common_lock_across_their_joins() {
    fn round(lock: &Mutex<u64>, n: u64) {
        if n == 0 {
            // The lock is taken only here, and held across a join.
            let mut sum = lock.lock().unwrap();
            *sum += fib(8);
            return;
        }
        join(|| round(lock, n - 1), || round(lock, n - 1));
    }
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let lock = Mutex::new(0);
            round(&lock, 8);
            lock.into_inner().unwrap()
        });
        assert_eq!(runtime.block_on(job).unwrap(), 256 * 21);
    });
}

/// The second half is stolen and takes long. Meanwhile other forks, which want the lock, can be stolen.
#[test]
fn a_waiting_join_runs_no_unrelated_half_on_top_of_a_lock() {
    let _watch = watch();
    let runtime = runtime(2);
    let lock = Arc::new(Mutex::new(()));
    let [begun, offered] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let holder = {
        let (lock, begun, offered) = (lock.clone(), begun.clone(), offered.clone());
        runtime.spawn(async move {
            let held = lock.lock().unwrap();
            join(
                || await_flag(&begun),
                || {
                    begun.store(true, Ordering::SeqCst);
                    await_flag(&offered);
                    (0..1000).for_each(|_| thread::yield_now());
                },
            );
            drop(held);
        })
    };
    await_flag(&begun);
    let other = {
        let (lock, offered) = (lock.clone(), offered.clone());
        thread::spawn(move || {
            join(
                || {
                    offered.store(true, Ordering::SeqCst);
                    (0..1000).for_each(|_| thread::yield_now());
                },
                || drop(lock.lock().unwrap()),
            );
        })
    };
    runtime.block_on(holder).unwrap();
    other.join().unwrap();
}

#[test]
fn the_first_half_can_wait_for_what_the_second_one_does() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let (sender, receiver) = futures_channel::oneshot::channel();
            let (received, _) = join(move || receiver.wait(), move || sender.send(42));
            received
        });
        assert_eq!(runtime.block_on(job).unwrap(), Ok(42));
    });
}

#[test]
fn a_job_waits_in_a_half_while_others_are_served() {
    let _watch = watch();
    let runtime = runtime(1);
    let job = runtime.spawn(async {
        let inner = || spawn(async { 21 }).wait().unwrap();
        let (a, b) = join(inner, inner);
        a + b
    });
    assert_eq!(runtime.block_on(job).unwrap(), 42);
}

fn await_flag(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}
