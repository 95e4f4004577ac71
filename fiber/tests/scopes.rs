//! Threads of a scope borrow, and have ended when the scope returns, after a value, a panic or a cancel.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use on_workers::on_workers;
use tools::{Drops, Latch};
use weald_fiber as thread;
use weald_kernel::Wait;

#[test]
fn threads_borrow_and_change_values_outside_the_scope() {
    on_workers(2, || {
        let mut numbers: Vec<u64> = (0..1000).collect();
        thread::scope(|scope| {
            for chunk in numbers.chunks_mut(10) {
                scope.spawn(move || {
                    for number in chunk {
                        thread::yield_now();
                        *number *= 2;
                    }
                });
            }
        });
        assert_eq!(numbers.iter().sum::<u64>(), 999_000);
    });
}

#[test]
fn handles_give_results_that_borrow() {
    on_workers(1, || {
        let text = String::from("borrowed");
        let length = thread::scope(|scope| {
            let word = scope.spawn(|| &text[..6]);
            word.join().unwrap().len()
        });
        assert_eq!(length, 6);
    });
}

#[test]
fn a_panic_of_the_body_waits_for_the_threads_first() {
    on_workers(1, || {
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        thread::yield_now();
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                }
                panic!("the body");
            })
        }));
        assert!(result.is_err());
        assert_eq!(ran.load(Ordering::SeqCst), 10);
    });
}

#[test]
fn an_unclaimed_result_is_dropped_before_the_scope_returns() {
    struct Reads<'a>(&'a AtomicUsize);
    impl Drop for Reads<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    on_workers(2, || {
        for _ in 0..100 {
            let count = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| Reads(&count));
                }
            });
            assert_eq!(count.load(Ordering::SeqCst), 8);
        }
    });
}

#[test]
fn a_cancelled_owner_cancels_its_threads_and_waits_for_them() {
    let drops = Drops::default();
    let tokens: Vec<_> = (0..4).map(|_| drops.token()).collect();
    let counted = drops.clone();
    on_workers(1, move || {
        let started = Latch::default();
        let inner_started = started.clone();
        let owner = thread::spawn(move || {
            let all = AtomicUsize::new(0);
            thread::scope(|scope| {
                for token in tokens {
                    let (all, started) = (&all, &inner_started);
                    scope.spawn(move || {
                        let _token = token;
                        if all.fetch_add(1, Ordering::SeqCst) == 3 {
                            started.open();
                        }
                        thread::park();
                        unreachable!("it is never unparked");
                    });
                }
            });
            unreachable!("the cancel unwinds the owner");
        });
        started.wait();
        owner.cancel();
        assert!(owner.join().unwrap_err().is_cancelled());
        assert_eq!(counted.count(), 4);
    });
}
