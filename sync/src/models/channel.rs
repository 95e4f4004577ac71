//! Models of channels: each value arrives once, whichever side waits or gives up.

use loom::thread;

use super::made_up::{once, started, wait};
use crate::channel::{self, Closed, SendError};

/// A send and a receive end together.
#[test]
fn a_rendezvous_ends_both_waits() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let thread = thread::spawn(move || wait(sender.send(1)));
        assert_eq!(wait(receiver.receive()), Ok(1));
        assert_eq!(wait(receiver.receive()), Err(Closed));
        assert_eq!(thread.join().unwrap(), Ok(()));
    });
}

/// Two values and room for one.
#[test]
fn a_sender_waits_for_room() {
    loom::model(|| {
        let (sender, receiver) = channel::bounded(1);
        let thread = thread::spawn(move || {
            wait(sender.send(1)).unwrap();
            wait(sender.send(2)).unwrap();
        });
        assert_eq!(wait(receiver.receive()), Ok(1));
        assert_eq!(wait(receiver.receive()), Ok(2));
        thread.join().unwrap();
    });
}

/// A receive is dropped while a value is handed to it: the next receive gets the value.
#[test]
fn a_receive_that_gives_up_loses_nothing() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let thread = thread::spawn(move || wait(sender.send(1)));
        let received = once(receiver.receive()).unwrap_or_else(|| wait(receiver.receive()));
        assert_eq!(received, Ok(1));
        assert_eq!(thread.join().unwrap(), Ok(()));
    });
}

/// A send that is dropped has sent its value or not.
#[test]
fn a_send_that_gives_up_has_sent_or_not() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let thread = thread::spawn(move || once(sender.send(1)).is_some());
        let received = wait(receiver.receive());
        if thread.join().unwrap() {
            assert_eq!(received, Ok(1));
        }
    });
}

/// The last handle of one side goes while the other sends or waits to send: the wait ends, with its value.
#[test]
fn a_close_gives_a_send_its_value_back() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let thread = thread::spawn(move || drop(receiver));
        assert_eq!(wait(sender.send(1)), Err(SendError(1)));
        thread.join().unwrap();
    });
}

/// As above, with a send that waits already: the close wins its claim, and its owner takes the value back without the
/// channel's lock.
#[test]
fn a_close_ends_a_send_that_waits() {
    loom::model(|| {
        let (sender, receiver) = channel::bounded(1);
        assert_eq!(once(sender.send(1)), Some(Ok(())));
        let waiting = started(sender.send(2));
        let thread = thread::spawn(move || drop(receiver));
        assert_eq!(wait(waiting), Err(SendError(2)));
        thread.join().unwrap();
    });
}

/// A close and a receive compete for a send that waits: the value is received or refused, not both.
#[test]
fn a_close_and_a_receive_compete_for_a_send_that_waits() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let waiting = started(sender.send(1));
        let thread = thread::spawn(move || receiver.try_receive());
        let sent = wait(waiting);
        match thread.join().unwrap() {
            Ok(value) => assert_eq!((value, sent), (1, Ok(()))),
            Err(_) => assert_eq!(sent, Err(SendError(1))),
        }
    });
}

/// The last handles of both sides go at the same time, while the receiver has left an offer and a value may be in the
/// buffer: one of the threads, and only one, frees the channel, and the value is dropped.
#[test]
fn the_last_handles_go_together() {
    loom::model(|| {
        let (sender, receiver) = channel::bounded(1);
        let value = loom::sync::Arc::new(());
        let kept = value.clone();
        let thread = thread::spawn(move || {
            drop(once(sender.send(value)));
            drop(sender);
        });
        drop(once(receiver.receive()));
        drop(receiver);
        thread.join().unwrap();
        assert_eq!(loom::sync::Arc::strong_count(&kept), 1);
    });
}
