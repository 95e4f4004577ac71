//! Models of channels: each value arrives once, whichever side waits or gives up.

use loom::thread;

use super::made_up::{once, wait};
use crate::channel::{self, Closed};

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
