//! Processes that seem to end and go on: an exit that the standard library catches, and an inbox that is dropped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use tools::{Latch, each_seed, on_each};
use weald_kernel::{Wait, timeout, yield_now};
use weald_process::{self as process, CallError, ExitReason, Inbox, Reply, monitor};

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

/// Calls `exit`, whose unwinding the standard library catches.
fn exit_in_vain() {
    let exits = AssertUnwindSafe(|| process::exit(ExitReason::custom(7)));
    assert!(catch_unwind(exits).is_err());
}

#[test]
fn a_process_that_catches_its_exit_and_returns_has_returned() {
    everywhere(async || {
        let process = process::spawn(async |_: Inbox<()>| {
            exit_in_vain();
            5
        })
        .unwrap();
        let down = monitor(&process);
        assert_eq!(process.await, Ok(5));
        let reason = down.await.reason;
        assert!([ExitReason::Normal, ExitReason::NoProcess].contains(&reason));
    });
}

#[test]
fn an_exit_that_is_raised_again_ends_the_process() {
    everywhere(async || {
        let process = process::spawn(async |_: Inbox<()>| {
            let exits = AssertUnwindSafe(|| process::exit(ExitReason::custom(7)));
            match catch_unwind(exits) {
                Ok(never) => never,
                Err(payload) => resume_unwind(payload),
            }
        });
        let ended: Result<(), _> = process.unwrap().await;
        assert_eq!(ended, Err(ExitReason::custom(7)));
    });
}

#[test]
fn an_exit_that_is_caught_ends_the_process_at_its_next_wait() {
    everywhere(async || {
        let process = process::spawn(async |_: Inbox<()>| {
            exit_in_vain();
            yield_now().await;
            unreachable!("it has waited");
        });
        let ended: Result<(), _> = process.unwrap().await;
        assert_eq!(ended, Err(ExitReason::custom(7)));
    });
}

enum After {
    Awaits,
    Waits,
    Returns,
}

/// A process that drops its inbox, and a request, and does not end at once.
async fn call_to(after: After) -> CallError {
    let latch = Latch::default();
    let goes_on = latch.clone();
    let process = process::spawn(async move |mut inbox: Inbox<Reply<()>>| {
        let reply = inbox.receive().await;
        drop(inbox);
        drop(reply);
        match after {
            After::Awaits => goes_on.await,
            After::Waits => goes_on.wait(),
            After::Returns => {}
        }
    });
    let process = process.unwrap();
    let answer = process.pid().call(|reply| reply).await;
    latch.open();
    assert_eq!(process.await, Ok(()));
    answer.unwrap_err()
}

#[test]
fn a_request_that_is_dropped_after_the_inbox_fails_its_call_when_the_process_goes_on() {
    everywhere(async || {
        assert_eq!(call_to(After::Awaits).await, CallError::NoReply);
        assert_eq!(call_to(After::Waits).await, CallError::NoReply);
        let returned = CallError::Died(ExitReason::Normal);
        assert_eq!(call_to(After::Returns).await, returned);
    });
}

#[test]
fn a_request_in_an_inbox_that_is_dropped_fails_its_call_when_the_process_goes_on() {
    everywhere(async || {
        let latch = Latch::default();
        let goes_on = latch.clone();
        let process = process::spawn(async move |mut inbox: Inbox<Reply<()>>| {
            // Looks, and leaves the request where it is.
            while inbox.is_empty() {
                yield_now().await;
            }
            drop(inbox);
            goes_on.await;
        });
        let process = process.unwrap();
        let answer = process.pid().call(|reply| reply).await;
        assert_eq!(answer, Err(CallError::NoReply));
        latch.open();
        assert_eq!(process.await, Ok(()));
    });
}

#[test]
fn a_caller_that_looks_after_the_end_learns_that_the_process_had_gone_on() {
    everywhere(async || {
        let process = process::spawn(async |mut inbox: Inbox<Reply<()>>| {
            let reply = inbox.receive().await;
            let drops = AssertUnwindSafe(|| {
                let _reply = reply;
                panic!("on purpose");
            });
            assert!(catch_unwind(drops).is_err());
            yield_now().await;
        });
        let process = process.unwrap();
        let down = monitor(&process);
        let mut call = std::pin::pin!(process.pid().call(|reply| reply));
        assert!(timeout(Duration::ZERO, call.as_mut()).await.is_err());
        down.await;
        assert_eq!(call.await, Err(CallError::NoReply));
    });
}

/// A process that loses a request in the poll of a wait: with the inbox, or in a panic that it catches. It goes on, and
/// comes to another wait.
async fn call_to_one_that_loses_the_request(panics: bool) -> CallError {
    let latch = Latch::default();
    let goes_on = latch.clone();
    let process = process::spawn(async move |mut inbox: Inbox<Reply<()>>| {
        while inbox.is_empty() {
            yield_now().await;
        }
        if panics {
            let request = inbox.receive().await;
            let drops = async {
                let _request = request;
                panic!("on purpose");
            };
            assert!(catch_unwind(AssertUnwindSafe(|| drops.wait())).is_err());
        } else {
            async { drop(inbox) }.wait();
        }
        goes_on.await;
    });
    let process = process.unwrap();
    let answer = process.pid().call(|reply| reply).await;
    latch.open();
    assert_eq!(process.await, Ok(()));
    answer.unwrap_err()
}

#[test]
fn a_request_that_is_lost_in_the_poll_of_a_wait_fails_its_call_when_the_process_goes_on() {
    everywhere(async || {
        for panics in [false, true] {
            let lost = call_to_one_that_loses_the_request(panics);
            assert_eq!(
                timeout(Duration::from_secs(20), lost).await,
                Ok(CallError::NoReply)
            );
        }
    });
}
