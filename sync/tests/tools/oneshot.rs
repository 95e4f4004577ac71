//! The oneshot: the value, the end of either side, and waits that are dropped.

use std::{sync::Arc, time::Duration};

use weald_sync::{
    Wait,
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
