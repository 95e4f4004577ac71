//! An inbox that leaves its process, or goes before it ends, and messages that nobody reads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::{Drops, for_seeds, on_each, runtime, until_yielding};
use weald_kernel::{Wait, spawn, yield_now};
use weald_process::{self as process, Inbox, SendError};

/// A process that lives until it is killed, and its inbox, moved out.
fn with_inbox_outside() -> (process::Process<u32, ()>, Inbox<u32>) {
    let mut outside = None;
    let process = process::spawn(|inbox| {
        outside = Some(inbox);
        std::future::pending::<()>()
    });
    (process.unwrap(), outside.unwrap())
}

#[test]
fn an_inbox_moved_to_another_job_receives_there() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (process, mut inbox) = with_inbox_outside();
            let receiving = spawn(async move {
                let mut sum = 0;
                for _ in 0..1_000 {
                    sum += inbox.receive().await;
                }
                (sum, inbox)
            });
            for n in 0..1_000 {
                process.pid().send(n);
                if n % 10 == 0 {
                    yield_now().await;
                }
            }
            let (sum, mut inbox) = receiving.await.unwrap();
            assert_eq!(sum, 499_500);
            // The inbox moves on to the main future, and then to a job that waits in straight-line code.
            process.pid().send(1);
            assert_eq!(inbox.receive().await, 1);
            let pid = process.pid().clone();
            let waiting = spawn(async move { inbox.receive().wait() });
            yield_now().await;
            pid.send(2);
            assert_eq!(waiting.await.unwrap(), 2);
        });
    });
}

#[test]
fn an_inbox_moved_to_a_foreign_thread_receives_there() {
    on_each(|runtime| {
        let (process, mut inbox) = runtime.block_on(async { with_inbox_outside() });
        let pid = process.pid().clone();
        std::thread::scope(|scope| {
            let receiving = scope.spawn(move || {
                (0..500)
                    .map(|_| runtime.block_on(inbox.receive()))
                    .sum::<u32>()
            });
            runtime
                .block_on(runtime.spawn(async move {
                    for n in 0..500 {
                        pid.send(n);
                        yield_now().await;
                    }
                }))
                .unwrap();
            assert_eq!(receiving.join().unwrap(), 124_750);
        });
    });
}

#[test]
fn an_inbox_whose_process_is_gone_still_returns_its_messages() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (process, mut inbox) = with_inbox_outside();
            process.pid().send(1);
            process.pid().send(2);
            process.kill();
            let pid = process.pid().clone();
            assert!(process.await.is_err());
            assert_eq!(pid.try_send(3), Err(SendError::Dead(3)));
            assert_eq!(
                (inbox.try_receive(), inbox.try_receive()),
                (Some(1), Some(2))
            );
            assert_eq!(inbox.try_receive(), None);
        });
    });
}

#[test]
fn an_inbox_dropped_early_closes_the_mailbox() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Drops::default();
            let (go, goes) = futures_util::future::AbortHandle::new_pair();
            let process = process::spawn(async move |inbox: Inbox<tools::Token>| {
                drop(inbox);
                let _ =
                    futures_util::future::Abortable::new(std::future::pending::<()>(), goes).await;
                7
            })
            .unwrap();
            let first = process.pid().try_send(drops.token());
            drop(first);
            until_yielding(|| process.pid().try_send(drops.token()).is_err()).await;
            assert!(process.pid().is_alive());
            go.abort();
            assert_eq!(process.await, Ok(7));
            assert_eq!(drops.count(), drops.made());
        });
    });
}

#[test]
fn messages_that_are_unread_at_the_end_are_dropped_once() {
    for_seeds(5, |random| {
        let runtime = runtime(1 + random.below(4));
        let drops = Drops::default();
        for _ in 0..200 {
            let (reads, scans) = (random.below(10), random.below(2) == 0);
            let (process, how) = runtime.block_on(async {
                let process = process::spawn(async move |mut inbox: Inbox<tools::Token>| {
                    for _ in 0..reads {
                        drop(inbox.receive().await);
                    }
                    if scans {
                        // Moves the queued messages into the chain, and leaves them there.
                        let _ = inbox.receive_if(|_| false).after(Duration::ZERO).await;
                    }
                })
                .unwrap();
                (process, random.below(3))
            });
            let pid = process.pid().clone();
            for _ in 0..20 {
                match how {
                    0 => pid.send(drops.token()),
                    _ => drop(pid.try_send(drops.token())),
                }
            }
            if how == 2 {
                process.kill();
            }
            let _ = runtime.block_on(process);
            pid.send(drops.token());
            assert_eq!(drops.count(), drops.made());
        }
    });
}
