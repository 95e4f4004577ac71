//! Models of the oneshot: the value goes over without the lock, and each end learns of the other's.

use loom::{cell::Cell, thread};

use super::made_up::{Chosen, either, once, started, wait};
use crate::oneshot::{self, Closed, SendError};

/// The receiver waits, or comes later, or gives up once: it gets the value, and sees what the sender wrote.
#[test]
fn a_value_is_received_once_and_whole() {
    for gives_up in [false, true] {
        loom::model(move || {
            let (sender, mut receiver) = oneshot::channel();
            let sends = thread::spawn(move || {
                let value = Cell::new(0);
                value.set(7);
                sender.send(value).unwrap();
            });
            let first = if gives_up {
                once(receiver.receive())
            } else {
                None
            };
            let value = first.unwrap_or_else(|| wait(receiver.receive()));
            assert_eq!(value.unwrap().get(), 7);
            assert_eq!(once(receiver.receive()).unwrap().err(), Some(Closed));
            sends.join().unwrap();
        });
    }
}

/// A receiver that was polled with another waker before, or that waits for one of two events after it waited for the
/// value alone, is woken all the same.
#[test]
fn a_value_comes_to_whoever_waits_last() {
    for chooses in [false, true] {
        loom::model(move || {
            let (sender, mut receiver) = oneshot::channel();
            let (_other, mut never) = oneshot::channel::<u32>();
            let sends = thread::spawn(move || sender.send(7).unwrap());
            let received = match chooses {
                false => {
                    let mut polled = Box::pin(receiver.receive());
                    match once(polled.as_mut()) {
                        Some(received) => received,
                        None => wait(polled),
                    }
                }
                true => match once(receiver.receive()) {
                    Some(received) => received,
                    None => match wait(either(receiver.receive(), never.receive())) {
                        Chosen::First(received) => received,
                        Chosen::Second(_) => unreachable!("its sender does nothing"),
                    },
                },
            };
            assert_eq!(received, Ok(7));
            sends.join().unwrap();
        });
    }
}

/// A sender that is dropped ends a wait that has begun.
#[test]
fn a_dropped_sender_ends_the_wait() {
    loom::model(|| {
        let (sender, mut receiver) = oneshot::channel::<u32>();
        let ends = thread::spawn(move || drop(sender));
        assert_eq!(wait(receiver.receive()), Err(Closed));
        ends.join().unwrap();
    });
}

/// A value that meets a receiver's end is received, returned or dropped, whichever end is first.
#[test]
fn a_value_that_meets_the_receivers_end_is_not_lost() {
    for closes_first in [false, true] {
        loom::model(move || {
            let (sender, mut receiver) = oneshot::channel();
            let sends = thread::spawn(move || sender.send(Box::new(7)));
            let received = match closes_first {
                true => {
                    receiver.close();
                    receiver.try_receive().ok()
                }
                false => None,
            };
            drop(receiver);
            match (sends.join().unwrap(), received) {
                (Ok(()), received) => assert!(!closes_first || received == Some(Box::new(7))),
                (Err(SendError(value)), received) => assert_eq!((*value, received), (7, None)),
            }
        });
    }
}

/// A sender that waits for the receiver's end learns of it, even if another wait was given up.
#[test]
fn a_sender_learns_of_the_receivers_end() {
    loom::model(|| {
        let (mut sender, receiver) = oneshot::channel::<u32>();
        drop(started(sender.closed()));
        let ends = thread::spawn(move || drop(receiver));
        wait(sender.closed());
        ends.join().unwrap();
    });
}
