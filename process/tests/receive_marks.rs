//! Marks: a selective receive goes on where the one before stopped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use futures_util::FutureExt;
use tools::on_each;
use weald_kernel::{spawn, yield_now};
use weald_process::{self as process, Inbox, Mark, TimedOut};

/// A backlog that no receive wants; the numbers of the others begin behind it.
const BACKLOG: u32 = 20_000;

#[test]
fn receives_with_a_mark_look_at_each_message_once() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            process::spawn(async |mut inbox: Inbox<u32>| {
                let own = inbox.pid();
                (0..BACKLOG).for_each(|n| own.send(n));
                let (mut mark, mut looks) = (Mark::oldest(), 0);
                // None is wanted, one receive after the other; then each new one is.
                for wanted in [false, true] {
                    for n in 0..1_000 {
                        own.send(BACKLOG + n);
                        let receive = inbox.receive_since(&mut mark, |_| {
                            looks += 1;
                            wanted
                        });
                        let received = receive.after(Duration::ZERO).await;
                        assert_eq!(
                            received,
                            if wanted {
                                Ok(BACKLOG + n)
                            } else {
                                Err(TimedOut)
                            }
                        );
                    }
                }
                assert_eq!(
                    (looks, inbox.len()),
                    (BACKLOG + 2_000, BACKLOG as usize + 1_000)
                );
                // The others are where they were, and other receives find them.
                for n in (0..BACKLOG).chain(BACKLOG..BACKLOG + 1_000) {
                    assert_eq!(inbox.try_receive(), Some(n));
                }
                own.send(7);
                assert_eq!(inbox.take_since(&mut mark, |_| true), Some(7));
            })
            .unwrap()
        });
        assert_eq!(runtime.block_on(process), Ok(()));
    });
}

#[test]
fn an_answer_behind_a_mark_is_found_at_once_and_wakes_its_receiver() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            process::spawn(async |mut inbox: Inbox<u32>| {
                let own = inbox.pid();
                (0..BACKLOG).for_each(|n| own.send(n));
                let mut looks = 0;
                for n in 0..1_000 {
                    let mut mark = inbox.mark();
                    let answers = own.clone();
                    let sender = spawn(async move {
                        yield_now().await;
                        answers.send(BACKLOG + n);
                    });
                    let wanted = |found: &u32| {
                        looks += 1;
                        *found == BACKLOG + n
                    };
                    assert_eq!(inbox.receive_since(&mut mark, wanted).await, BACKLOG + n);
                    sender.await.unwrap();
                }
                (looks, inbox.len())
            })
            .unwrap()
        });
        assert_eq!(runtime.block_on(process), Ok((1_000, BACKLOG as usize)));
    });
}

#[test]
fn a_mark_stays_where_it_was_if_the_predicate_panics_or_the_receive_is_dropped() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            process::spawn(async |mut inbox: Inbox<u32>| {
                let own = inbox.pid();
                (0..10).for_each(|n| own.send(n));
                let mut mark = Mark::oldest();
                let receive = inbox.receive_since(&mut mark, |n| *n == 4);
                assert_eq!(receive.now_or_never(), Some(4));
                let panics = inbox.receive_since(&mut mark, |n| {
                    assert_ne!(*n, 7, "the predicate panics");
                    false
                });
                assert!(weald_kernel::catch_panic(|| panics.now_or_never()).is_none());
                let mut seen = Vec::new();
                let receive = inbox.receive_since(&mut mark, |n| {
                    seen.push(*n);
                    false
                });
                assert_eq!(receive.now_or_never(), None);
                assert_eq!(seen, [5, 6, 7, 8, 9]);
                own.send(10);
                assert_eq!(inbox.receive_since(&mut mark, |_| true).await, 10);
                // It belongs to this inbox; elsewhere it stands before the oldest message.
                let elsewhere = process::spawn(async move |mut inbox: Inbox<u32>| {
                    (0..3).for_each(|n| inbox.pid().send(n));
                    inbox.receive_since(&mut mark, |n| *n == 0).await
                });
                assert_eq!(elsewhere.unwrap().await, Ok(0));
                inbox.len()
            })
            .unwrap()
        });
        assert_eq!(runtime.block_on(process), Ok(9));
    });
}
