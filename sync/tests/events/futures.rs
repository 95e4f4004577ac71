//! Futures as events: no output is lost.

use std::{
    cell::Cell,
    future::{pending, poll_fn, ready},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use weald_sync::{
    Either, Event, Kept, Source, Wait, always, channel, choose, of_future, of_source, one_of,
};

use crate::hand::hand;

#[test]
fn a_future_that_is_ready_is_chosen() {
    assert_eq!(
        choose((of_future(ready(1)), of_future(pending()))).wait(),
        1
    );
    assert_eq!(of_future(async { 2 }).wrap(|n| n + 1).wait(), 3);
}

#[test]
fn a_future_wakes_the_choice() {
    let (sender, receiver) = channel::rendezvous();
    let (_other, from_other) = channel::rendezvous();
    let mut wait = hand(choose((
        from_other.receive(),
        of_future(async { receiver.receive().await }),
    )));
    assert!(wait.is_pending());
    assert_eq!(from_other.waiting(), 1);
    sender.try_send(1).unwrap();
    assert_eq!(wait.wakes(), 1);
    assert_eq!(wait.ready(), Ok(1));
    assert_eq!((from_other.waiting(), receiver.waiting()), (0, 0));
}

#[test]
fn a_future_polled_with_a_new_waker_wakes_that_one() {
    let stored = Cell::new(None::<Waker>);
    let (_other, from_other) = channel::rendezvous::<u32>();
    let mut wait = Box::pin(
        choose((
            from_other.receive(),
            of_future(poll_fn(|cx| {
                stored.set(Some(cx.waker().clone()));
                Poll::Pending
            })),
        ))
        .sync(),
    );
    assert!(
        wait.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    let mut wait = hand(wait);
    assert!(wait.is_pending());
    stored.take().unwrap().wake();
    assert_eq!(wait.wakes(), 1);
}

#[test]
fn what_completes_while_another_is_chosen_is_kept() {
    let (sender, receiver) = channel::rendezvous();
    let polls = Cell::new(0);
    // The future completes at its second poll, just after a partner has chosen the other event.
    let mut kept = pin!(Kept::new(poll_fn(|_| {
        polls.set(polls.get() + 1);
        match polls.get() {
            1 => Poll::Pending,
            2 => {
                sender.try_send(7).unwrap();
                Poll::Ready("kept")
            }
            _ => panic!("a future was polled after it had ended"),
        }
    })));
    let mut wait = hand(one_of((receiver.receive(), of_source(kept.as_mut()))));
    assert!(wait.is_pending());
    assert_eq!(wait.ready(), Either::First(Ok(7)));
    drop(wait);
    let chosen = one_of((receiver.receive(), of_source(kept.as_mut()))).wait();
    assert_eq!(chosen, Either::Rest(Either::First("kept")));
    // Taken: never again.
    assert_eq!(of_source(kept).try_sync(), None);
}

/// A mailbox with one receiver: a message stays until it is taken.
struct Box1(Vec<u32>);

impl Source for Box1 {
    type Output = u32;

    fn poll_ready(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        match self.0.is_empty() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    fn take(mut self: Pin<&mut Self>) -> u32 {
        self.0.pop().unwrap()
    }
}

#[test]
fn a_source_by_reference_loses_nothing() {
    let mut mailbox = Box1((0..500).collect());
    let (mut taken, mut others) = (0, 0);
    while taken < 500 {
        match choose((of_source(&mut mailbox), always(1000))).wait() {
            1000 => others += 1,
            n => {
                taken += 1;
                assert_eq!(n, 500 - taken);
            }
        }
    }
    assert!(others > 100, "the other event is not starved");
}

#[test]
fn a_loser_is_dropped_with_the_choice() {
    let (sender, receiver) = channel::rendezvous::<u32>();
    let future = async move { receiver.receive().await.unwrap() };
    assert_eq!(choose((of_future(future), always(1))).wait(), 1);
    assert!(sender.is_closed());
}
