//! The oneshot: the value, the end of either side, and waits that are dropped.

use std::{sync::Arc, time::Duration};

use weald_sync::{
    Event, Wait, choose, never,
    oneshot::{self, Closed, SendError, TryReceiveError},
};

use crate::hand::{hand, waiting};

/// The ends of a value that must not move may move themselves.
const _: () = {
    const fn may_move<T: Unpin>() {}
    may_move::<oneshot::Sender<std::marker::PhantomPinned>>();
    may_move::<oneshot::Receiver<std::marker::PhantomPinned>>();
};

#[test]
fn a_value_is_received_before_or_after() {
    let (sender, mut receiver) = oneshot::channel();
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
    sender.send(1).unwrap();
    assert_eq!(hand(receiver.receive()).now(), Ok(1));
    assert_eq!(hand(receiver.receive()).now(), Err(Closed));

    let (sender, mut receiver) = oneshot::channel();
    let wait = waiting(receiver.receive());
    sender.send(2).unwrap();
    assert_eq!(wait.woken(), Ok(2));
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Closed));
}

#[test]
fn a_sender_that_is_dropped_ends_the_wait() {
    let (sender, mut receiver) = oneshot::channel::<()>();
    let wait = waiting(receiver.receive());
    drop(sender);
    assert_eq!(wait.woken(), Err(Closed));
    assert!(Closed.to_string().contains("the sender is gone"));
}

#[test]
fn the_value_comes_back_if_the_receiver_is_gone() {
    let (mut sender, receiver) = oneshot::channel();
    let wait = waiting(sender.closed());
    drop(receiver);
    wait.woken();
    assert!(sender.is_closed());
    hand(sender.closed()).now();
    assert_eq!(sender.send(1), Err(SendError(1)));
}

#[test]
fn what_was_sent_before_a_close_is_received() {
    let (sender, mut receiver) = oneshot::channel();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(receiver.try_receive(), Ok(1));
    let (sender, mut receiver) = oneshot::channel();
    receiver.close();
    assert_eq!(sender.send(2), Err(SendError(2)));
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Closed));
}

#[test]
fn a_receive_that_is_dropped_loses_nothing() {
    let (sender, mut receiver) = oneshot::channel();
    drop(waiting(receiver.receive()));
    let wait = waiting(receiver.receive());
    sender.send(1).unwrap();
    assert_eq!(wait.wakes(), 1);
    drop(wait);
    assert_eq!(receiver.try_receive(), Ok(1));
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let (sender, mut receiver) = oneshot::channel();
    let mut wait = Box::pin(receiver.receive());
    let first = waiting(wait.as_mut());
    let wakes = first.keep_wakes();
    drop(first);
    let last = waiting(wait);
    sender.send(1).unwrap();
    assert_eq!(wakes(), 0);
    assert_eq!(last.woken(), Ok(1));
}

#[test]
fn a_receive_that_was_dropped_wakes_no_one() {
    for chooses in [false, true] {
        let (sender, mut receiver) = oneshot::channel();
        let dropped = waiting(receiver.receive());
        let wakes = dropped.keep_wakes();
        drop(dropped);
        let choice = chooses.then(|| waiting(choose((receiver.receive(), never())).sync()));
        sender.send(1).unwrap();
        assert_eq!(wakes(), 0);
        if let Some(choice) = choice {
            assert_eq!(choice.woken(), Ok(1));
        }
    }
}

/// The forgotten wait is never dropped, so its waker stays until the next wait, of either kind, or the end.
#[test]
fn a_receive_that_was_forgotten_is_replaced() {
    for chooses in [false, true] {
        let (sender, mut receiver) = oneshot::channel::<u8>();
        let forgotten = waiting(receiver.receive());
        let wakes = forgotten.keep_wakes();
        std::mem::forget(forgotten);
        let mut choice = None;
        let mut alone = None;
        match chooses {
            true => choice = Some(waiting(choose((receiver.receive(), never())).sync())),
            false => alone = Some(waiting(receiver.receive())),
        }
        sender.send(1).unwrap();
        let received = match (choice, alone) {
            (Some(choice), _) => choice.woken(),
            (_, alone) => alone.expect("one of them waits").woken(),
        };
        assert_eq!((wakes(), received), (0, Ok(1)));
    }
}

/// As above, for waits for one of several events, at either end.
#[test]
fn a_choice_that_was_forgotten_is_replaced() {
    let (sender, mut receiver) = oneshot::channel::<u8>();
    let forgotten = waiting(choose((receiver.receive(), never())).sync());
    let wakes = forgotten.keep_wakes();
    std::mem::forget(forgotten);
    let choice = waiting(choose((receiver.receive(), never())).sync());
    sender.send(1).unwrap();
    assert_eq!((wakes(), choice.woken()), (0, Ok(1)));

    let (mut sender, receiver) = oneshot::channel::<u8>();
    let forgotten = waiting(choose((sender.closed(), never())).sync());
    let wakes = forgotten.keep_wakes();
    std::mem::forget(forgotten);
    let choice = waiting(choose((sender.closed(), never())).sync());
    drop(receiver);
    choice.woken();
    assert_eq!(wakes(), 0);
}

#[test]
fn a_value_that_nobody_receives_is_dropped_once() {
    let value = Arc::new(());
    let (sender, receiver) = oneshot::channel();
    sender.send(Arc::clone(&value)).unwrap();
    drop(receiver);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let (sender, mut receiver) = oneshot::channel();
    assert!(receiver.receive().within(Duration::ZERO).wait().is_err());
    assert!(
        receiver
            .receive()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    sender.send(1).unwrap();
    assert_eq!(receiver.receive().within(Duration::ZERO).wait(), Ok(Ok(1)));
}

#[test]
fn threads_pass_many_values() {
    const VALUES: u32 = if cfg!(miri) { 10 } else { 500 };
    for n in 0..VALUES {
        let (sender, mut receiver) = oneshot::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || sender.send(n));
            assert_eq!(receiver.receive().wait(), Ok(n));
        });
    }
}

#[test]
fn a_send_that_is_refused_ends_the_wait() {
    let (sender, mut receiver) = oneshot::channel();
    receiver.close();
    let wait = waiting(receiver.receive());
    assert_eq!(sender.send(3), Err(SendError(3)));
    assert_eq!(wait.woken(), Err(Closed));
}
