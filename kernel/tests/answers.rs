//! Answers: the value arrives or comes back, once, however the two sides race.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Barrier},
    task::{Context, Poll, Wake, Waker},
    thread,
};

use tools::{Drops, Token, on_each, watch};
use weald_kernel::{AnswerReceiver, answer, spawn, yield_now};
use weald_sync::reason::{Kind, Reason};

const REASON: Reason = Reason::unspecified(Kind::Oneshot);

async fn receive<T>(receiver: &mut AnswerReceiver<T, ()>) -> Option<T> {
    poll_fn(|cx| receiver.poll_receive(cx, REASON)).await
}

#[test]
fn an_answer_arrives_before_and_after_its_receiver_waits() {
    on_each(|runtime| {
        runtime.block_on(async {
            for n in 0..200 {
                let (sender, mut receiver) = answer((), None);
                let sends = spawn(async move {
                    for _ in 0..n % 3 {
                        yield_now().await;
                    }
                    sender.send(n)
                });
                assert_eq!(receive(&mut receiver).await, Some(n));
                assert_eq!(sends.await.unwrap(), Ok(()));
            }
        });
    });
}

#[test]
fn a_sender_that_is_dropped_answers_with_nothing() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = answer::<u32, _>((), None);
            let drops = spawn(async move { drop(sender) });
            assert_eq!(receive(&mut receiver).await, None);
            drops.await.unwrap();
        });
    });
}

#[test]
fn a_value_that_is_not_wanted_comes_back() {
    let (sender, receiver) = answer((), None);
    assert!(sender.is_wanted());
    drop(receiver);
    assert!(!sender.is_wanted());
    assert_eq!(sender.send(5), Err(5));
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    on_each(|runtime| {
        let (sender, mut receiver) = answer((), Some(Waker::noop().clone()));
        let waits = runtime.spawn(async move { receive(&mut receiver).await });
        runtime.block_on(yield_now());
        sender.send(3).unwrap();
        assert_eq!(runtime.block_on(waits).unwrap(), Some(3));
    });
}

/// Both sides at once: one polls some times, with wakers of its own, and goes; the other one answers.
#[test]
fn a_value_is_dropped_once_however_the_sides_race() {
    let _watch = watch();
    let drops = Drops::default();
    for round in 0..3_000 {
        let both = Arc::new(Barrier::new(2));
        let (sender, mut receiver) = answer::<Token, _>((), None);
        let (token, begins) = (drops.token(), both.clone());
        let sending = thread::spawn(move || {
            begins.wait();
            match round % 5 {
                0 => drop(sender),
                _ => drop(sender.send(token)),
            }
        });
        both.wait();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..round % 4 {
            let received = pin!(receive(&mut receiver));
            if let Poll::Ready(_received) = received.poll(&mut cx) {
                // It is taken once.
                break;
            }
        }
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(drops.count(), drops.made());
    }
}

/// A waker of a foreign executor.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics on purpose");
    }
}

/// A waker is the receiver's code. Its panic unwinds no sender, and a sender that unwinds ends no program by it.
#[test]
fn a_waker_that_panics_harms_no_sender() {
    let waker = || Some(Waker::from(Arc::new(Panics)));
    let mut cx = Context::from_waker(Waker::noop());
    let (sender, mut receiver) = answer((), waker());
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(receiver.poll_receive(&mut cx, REASON), Poll::Ready(Some(1)));
    let (sender, mut receiver) = answer::<u32, _>((), waker());
    let unwinds = AssertUnwindSafe(move || {
        let _sender = sender;
        panic!("the sender panics on purpose");
    });
    assert!(catch_unwind(unwinds).is_err());
    assert_eq!(receiver.poll_receive(&mut cx, REASON), Poll::Ready(None));
}
