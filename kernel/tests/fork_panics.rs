//! A panic in one half of a join: it leaves the join after both halves have ended. Of two panics, the first
//! half's wins.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tools::{on_each, runtime, watch};
use weald_kernel::{Runtime, fork::join, spawn};

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

fn message_of(f: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    payload.downcast_ref::<&'static str>().unwrap()
}

fn await_flag(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[test]
fn a_panic_in_the_first_half_lets_the_second_one_run() {
    on_each(|runtime| {
        let (message, ran) = spawn_in(runtime, || {
            let ran = AtomicBool::new(false);
            let message = message_of(|| {
                join(|| panic!("first"), || ran.store(true, Ordering::SeqCst));
            });
            (message, ran.into_inner())
        });
        assert_eq!((message, ran), ("first", true));
    });
}

#[test]
fn a_panic_in_the_second_half_comes_out_after_the_first_half_ended() {
    on_each(|runtime| {
        let (message, ran) = spawn_in(runtime, || {
            let ran = AtomicBool::new(false);
            let message = message_of(|| {
                join(|| ran.store(true, Ordering::SeqCst), || panic!("second"));
            });
            (message, ran.into_inner())
        });
        assert_eq!((message, ran), ("second", true));
    });
}

#[test]
fn of_two_panics_that_of_the_first_half_comes_out() {
    on_each(|runtime| {
        let both = || join(|| panic!("first"), || panic!("second"));
        assert_eq!(
            spawn_in(runtime, move || message_of(|| {
                let _ = both();
            })),
            "first"
        );
    });
}

/// Makes sure that the second half is stolen: the first half waits until the second has started.
fn stolen(first: impl FnOnce() + Send, second: impl FnOnce() + Send) -> &'static str {
    let begun = AtomicBool::new(false);
    message_of(|| {
        join(
            || {
                await_flag(&begun);
                first();
            },
            || {
                begun.store(true, Ordering::SeqCst);
                second();
            },
        );
    })
}

#[test]
fn a_panic_in_a_stolen_half_comes_back() {
    let _watch = watch();
    let runtime = runtime(2);
    let message = spawn_in(&runtime, || stolen(|| {}, || panic!("second")));
    assert_eq!(message, "second");
}

#[test]
fn a_panic_in_the_first_half_waits_for_a_stolen_one() {
    let _watch = watch();
    let runtime = runtime(2);
    let (message, ended) = spawn_in(&runtime, || {
        let (panics, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let message = stolen(
            || {
                panics.store(true, Ordering::SeqCst);
                panic!("first");
            },
            || {
                await_flag(&panics);
                // The first half panics about now. Its panic must not leave the join before this half ends.
                (0..1000).for_each(|_| thread::yield_now());
                ended.store(true, Ordering::SeqCst);
            },
        );
        (message, ended.into_inner())
    });
    assert_eq!((message, ended), ("first", true));
}

#[test]
fn of_two_panics_that_of_the_first_half_comes_out_when_the_second_half_is_stolen() {
    let _watch = watch();
    let runtime = runtime(2);
    let message = spawn_in(&runtime, || stolen(|| panic!("first"), || panic!("second")));
    assert_eq!(message, "first");
}

#[test]
fn forks_work_after_a_panic() {
    fn sum(from: u64, to: u64, bad: u64) -> u64 {
        if to - from == 1 {
            assert_ne!(from, bad, "bad");
            return from;
        }
        let mid = u64::midpoint(from, to);
        let (a, b) = join(|| sum(from, mid, bad), || sum(mid, to, bad));
        a + b
    }
    on_each(|runtime| {
        for bad in 0..64 {
            let failed = spawn_in(runtime, move || {
                catch_unwind(|| sum(0, 64, bad)).is_err() && sum(0, 64, 64) == 2016
            });
            assert!(failed);
        }
    });
}

#[test]
fn a_panic_on_a_foreign_thread_comes_out() {
    let _watch = watch();
    assert_eq!(
        message_of(|| {
            let _ = join(|| {}, || panic!("second"));
        }),
        "second"
    );
    assert_eq!(stolen(|| {}, || panic!("second")), "second");
}
