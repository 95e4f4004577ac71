//! Processes and callbacks fork: both halves run, borrow, and may wait for each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    time::Duration,
};

use tools::{Latch, on_each};
use weald_kernel::{Wait, catch_panic, fork::join, fork::scope, sleep};
use weald_process::{self as process, CallError, ExitReason, Inbox, Pid, Reply, callback};

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

/// Runs `part` as the second half of a join, which another thread has taken, or as a part of a scope.
fn elsewhere<T: Send>(in_scope: bool, part: impl FnOnce() -> T + Send) -> T {
    let begun = Latch::default();
    let mut value = None;
    let runs = || {
        begun.open();
        value = Some(part());
    };
    // The caller waits until the part runs.
    match in_scope {
        true => scope(|scope| {
            scope.spawn(runs);
            begun.clone().wait();
        }),
        false => drop(join(|| begun.clone().wait(), runs)),
    }
    value.unwrap()
}

fn for_both(test: impl AsyncFn(bool)) {
    on_each(|runtime| {
        for in_scope in [false, true] {
            runtime.block_on(test(in_scope));
        }
    });
}

#[test]
fn a_part_of_a_fork_that_exits_ends_the_process_with_its_reason() {
    for_both(async |in_scope| {
        let process = process::spawn(async move |_: Inbox<()>| {
            elsewhere(in_scope, || process::exit(ExitReason::custom(7)))
        });
        let ended: Result<(), _> = process.unwrap().await;
        assert_eq!(ended, Err(ExitReason::custom(7)));
    });
}

#[test]
fn a_part_of_a_fork_links_the_process() {
    for_both(async |in_scope| {
        let peer = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
        let pid = peer.pid().clone();
        let process = process::spawn(async move |_: Inbox<()>| {
            let links = elsewhere(in_scope, || {
                process::link(&pid);
                process::links()
            });
            assert_eq!(links, [pid.id()]);
            assert_eq!(process::links(), links);
            process::exit(ExitReason::custom(7))
        });
        let ended: Result<(), _> = process.unwrap().await;
        assert_eq!(ended, Err(ExitReason::custom(7)));
        assert_eq!(peer.await, Err(ExitReason::custom(7)));
    });
}

/// Drops the reply while it panics.
fn breaks(reply: Reply<()>) {
    let _reply = reply;
    panic!("on purpose");
}

async fn call(pid: &Pid<Reply<()>>) -> CallError {
    pid.call(|reply| reply).await.unwrap_err()
}

#[test]
fn a_call_whose_request_is_dropped_in_the_panic_of_a_part_of_a_fork_has_the_reason_of_the_process()
{
    for_both(async |in_scope| {
        let crashes = process::spawn(async move |mut inbox: Inbox<Reply<()>>| {
            let reply = inbox.receive().await;
            elsewhere(in_scope, || breaks(reply));
        });
        match call(crashes.unwrap().pid()).await {
            CallError::Died(ExitReason::Crash(crash)) => assert_eq!(crash.message(), "on purpose"),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_call_whose_request_is_dropped_in_a_panic_that_a_fork_survives_has_no_reply() {
    for_both(async |in_scope| {
        let serve = move |catch: fn(&mut dyn FnMut())| {
            let process = process::spawn(async move |mut inbox: Inbox<Reply<()>>| {
                loop {
                    let mut reply = Some(inbox.receive().await);
                    catch(&mut || elsewhere(in_scope, || breaks(reply.take().unwrap())));
                    reply = Some(inbox.receive().await);
                    elsewhere(in_scope, || catch(&mut || breaks(reply.take().unwrap())));
                }
            });
            let process: process::Process<_, ()> = process.unwrap();
            process
        };
        let by_std = serve(|act| assert!(catch_unwind(AssertUnwindSafe(act)).is_err()));
        let by_weald = serve(|act| assert_eq!(catch_panic(act), None));
        for process in [by_std, by_weald] {
            for _ in 0..4 {
                assert_eq!(call(process.pid()).await, CallError::NoReply);
            }
            process.kill();
        }
    });
}

#[test]
fn a_half_that_panics_while_the_other_one_waits_elsewhere_has_the_reason_of_the_process() {
    on_each(|runtime| {
        runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<Reply<()>>| {
                let reply = inbox.receive().await;
                let begun = Latch::default();
                let first = || {
                    begun.clone().wait();
                    breaks(reply);
                };
                let second = || {
                    begun.open();
                    sleep(Duration::from_millis(1)).wait();
                };
                join(first, second)
            });
            match call(process.unwrap().pid()).await {
                CallError::Died(ExitReason::Crash(crash)) => {
                    assert_eq!(crash.message(), "on purpose");
                }
                other => panic!("{other}"),
            }
        });
    });
}
