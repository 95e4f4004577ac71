//! Processes and callbacks fork: both halves run, borrow, and may wait for each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
};

use tools::{Latch, on_each};
use weald_kernel::{Wait, fork::join};
use weald_process::{self as process, ExitReason, Inbox, callback};

fn sum(numbers: &[u64]) -> u64 {
    match numbers {
        [] => 0,
        [one] => *one,
        _ => {
            let (left, right) = numbers.split_at(numbers.len() / 2);
            let (left, right) = join(|| sum(left), || sum(right));
            left + right
        }
    }
}

/// Two halves that wait for each other: one is stolen, or both take turns.
fn meet() -> (u32, u32) {
    let (first, second) = (Latch::default(), Latch::default());
    join(
        || {
            first.open();
            second.clone().wait();
            1
        },
        || {
            second.open();
            first.clone().wait();
            2
        },
    )
}

#[test]
fn a_process_forks_over_what_it_received() {
    on_each(|runtime| {
        let total = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<Vec<u64>>| {
                let numbers = inbox.receive().await;
                let total = sum(&numbers);
                assert_eq!(meet(), (1, 2));
                total + inbox.receive().await.len() as u64
            })
            .unwrap();
            process.pid().send((0..1_000).collect());
            process.pid().send(vec![0; 5]);
            process.await
        });
        assert_eq!(total.unwrap(), 499_505);
    });
}

#[test]
fn a_half_of_a_process_panics_and_the_process_crashes_alone() {
    on_each(|runtime| {
        runtime.block_on(async {
            let crashes = process::spawn(async |_: Inbox<()>| {
                join(|| sum(&[1, 2, 3]), || -> u64 { panic!("the half") }).0
            })
            .unwrap();
            match crashes.await {
                Err(ExitReason::Crash(crash)) => assert_eq!(crash.message(), "the half"),
                other => panic!("{other:?}"),
            }
            let unharmed = process::spawn(async |_: Inbox<()>| meet()).unwrap();
            assert_eq!(unharmed.await.unwrap(), (1, 2));
        });
    });
}

#[test]
fn a_callback_forks() {
    on_each(|runtime| {
        let (sender, results) = mpsc::channel();
        runtime.block_on(async {
            for n in 0..20 {
                let sender = sender.clone();
                let forks = move || {
                    let numbers: Vec<u64> = (0..=n).collect();
                    sender.send((sum(&numbers), meet())).unwrap();
                };
                callback::spawn(forks).detach();
            }
        });
        let mut sums: Vec<u64> = results
            .iter()
            .take(20)
            .map(|(sum, met)| {
                assert_eq!(met, (1, 2));
                sum
            })
            .collect();
        sums.sort_unstable();
        assert!(sums.into_iter().eq((0..20).map(|n| n * (n + 1) / 2)));
    });
}

#[test]
fn a_half_of_a_callback_panics_and_the_callback_catches_it() {
    on_each(|runtime| {
        let (sender, caught) = mpsc::channel();
        runtime.block_on(async {
            let forks = move || {
                let forked = AssertUnwindSafe(|| join(meet, || panic!("the half")));
                sender.send(catch_unwind(forked).is_err()).unwrap();
            };
            callback::spawn(forks).detach();
        });
        assert_eq!(caught.recv(), Ok(true));
    });
}
