//! Models of the messages in the state word: each is received, or returned to its sender, exactly once.

#![allow(unsafe_code)]

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

use crate::{
    job::{
        JobPtr,
        message::MessageNode,
        state::{Link, State},
        transition::{Inbox, Listening, ParkOutcome, Posted, StartAction},
    },
    sys::{Mutex, lock},
};

/// A message whose content loom watches: the read must come after the write.
struct Parcel(Cell<usize>);

/// A job that receives messages.
struct Job {
    state: State,
    /// How many messages the job waits for before it ends.
    wanted: usize,
    /// Stands for the body. Only one thread at a time may run the job; loom would find two.
    received: Cell<Vec<usize>>,
    /// How often the job ended.
    ends: AtomicUsize,
    /// Stands for the receiver's waker in the extensions.
    receiver: Mutex<Option<Arc<Notify>>>,
}

impl Job {
    /// An awake job; the caller has its runnable.
    fn awake(wanted: usize) -> Arc<Job> {
        Arc::new(Job {
            state: State::new(Inbox::Open),
            wanted,
            received: Cell::new(Vec::new()),
            ends: AtomicUsize::new(0),
            receiver: Mutex::new(None),
        })
    }

    /// As `Address::post`; a runnable is run at once.
    fn post(&self, number: usize) -> Result<(), usize> {
        let link = MessageNode::new(
            Parcel(Cell::new(number)),
            JobPtr::from_raw(NonNull::dangling()),
        )
        .into_link();
        // SAFETY: the node is new, and given away unless the state refuses it.
        match unsafe { self.state.post(link.as_ptr()) } {
            Posted::Queued => {}
            Posted::Schedule => self.run(),
            Posted::WakeReceiver => self.wake_receiver(),
            // SAFETY: the state refused the node, so it is still owned here.
            Posted::Closed => return Err(unsafe { into_number(link) }),
        }
        Ok(())
    }

    fn wake_receiver(&self) {
        if let Some(receiver) = lock(&self.receiver).take() {
            receiver.notify();
        }
    }

    /// Runs the job until it ends or is parked. The caller has its runnable.
    fn run(&self) {
        loop {
            assert_eq!(self.state.start(), StartAction::Poll);
            let mut received = self.received.take();
            received.extend(numbers(self.state.take_messages().messages()));
            let is_over = received.len() == self.wanted;
            self.received.set(received);
            if is_over {
                self.ends.fetch_add(1, Ordering::Relaxed);
                return;
            }
            if self.state.park(Listening::Yes) == ParkOutcome::Parked {
                return;
            }
        }
    }

    /// As `Mailbox::poll_receive`, for a receiver other than the job itself.
    fn receive_foreign(&self, parking: &Arc<Notify>) -> Received {
        loop {
            let newest = self.state.take_messages().messages();
            if !newest.is_null() {
                return Received::Messages(numbers(newest));
            }
            *lock(&self.receiver) = Some(parking.clone());
            if self.state.register_receiver() {
                parking.wait();
            } else if self.state.is_done() {
                return Received::Ended;
            }
        }
    }

    /// As `run::finish`.
    fn complete(&self) {
        if self.state.complete().wake_receiver {
            self.wake_receiver();
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Received {
    Messages(Vec<usize>),
    Ended,
}

/// The messages of a stack, oldest first.
fn numbers(newest: *mut Link) -> Vec<usize> {
    let (mut numbers, mut rest) = (Vec::new(), NonNull::new(newest));
    while let Some(link) = rest {
        // SAFETY: the stack was taken from a state, and so is owned here.
        rest = NonNull::new(unsafe { (*link.as_ptr()).next });
        // SAFETY: only parcels are posted in this file.
        numbers.push(unsafe { into_number(link) });
    }
    numbers.reverse();
    numbers
}

/// # Safety
/// `link` belongs to a parcel, and the caller owns it.
unsafe fn into_number(link: NonNull<Link>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { MessageNode::<Parcel>::from_link(link) }
        .into_value()
        .0
        .get()
}

/// Two messages against a park: no wake-up is lost, and the job has one runnable. Both messages are received, by one
/// runner at a time, and the job ends once.
#[test]
fn messages_against_a_park_are_received_by_one_runner() {
    loom::model(|| {
        let job = Job::awake(2);
        let senders = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || assert_eq!(job.post(number), Ok(())))
        });
        job.run();
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(job.ends.load(Ordering::Relaxed), 1);
        let mut received = job.received.take();
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}

/// Two messages of one thread against a park: they are received in their order.
#[test]
fn messages_of_one_thread_keep_their_order() {
    loom::model(|| {
        let job = Job::awake(2);
        let sender = {
            let job = job.clone();
            thread::spawn(move || {
                assert_eq!(job.post(1), Ok(()));
                assert_eq!(job.post(2), Ok(()));
            })
        };
        job.run();
        sender.join().unwrap();
        assert_eq!(job.ends.load(Ordering::Relaxed), 1);
        assert_eq!(job.received.take(), [1, 2]);
    });
}

/// Messages of two threads against the closing of the mailbox: each is received before, found by the close, or returned
/// to its sender; none twice.
#[test]
fn messages_against_a_close_are_received_or_returned() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let senders = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || job.post(number).err())
        });
        let mut seen = numbers(job.state.take_messages().messages());
        seen.extend(numbers(job.state.close_inbox()));
        seen.extend(
            senders
                .into_iter()
                .filter_map(|sender| sender.join().unwrap()),
        );
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        assert_eq!(job.post(3), Err(3));
        assert!(job.state.take_messages().messages().is_null());
    });
}

/// A message against the end of the job and the drop of its mailbox: the drop finds it, or it is returned.
#[test]
fn a_message_against_an_end_is_found_or_returned() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let sender = {
            let job = job.clone();
            thread::spawn(move || job.post(1).err())
        };
        job.complete();
        let mut seen = numbers(job.state.close_inbox());
        seen.extend(sender.join().unwrap());
        assert_eq!(seen, [1]);
    });
}

/// Messages of two threads against a receiver that registers its waker: the receiver gets both, and never waits while
/// one is there.
#[test]
fn messages_against_the_registration_of_a_receiver_wake_it() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let senders = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || assert_eq!(job.post(number), Ok(())))
        });
        let parking = Arc::new(Notify::new());
        let mut received = Vec::new();
        while received.len() < 2 {
            match job.receive_foreign(&parking) {
                Received::Messages(numbers) => received.extend(numbers),
                Received::Ended => panic!("the job has not ended"),
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}

/// The end of a job against a receiver that registers its waker: the receiver sees the end.
#[test]
fn an_end_against_the_registration_of_a_receiver_wakes_it() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let runner = {
            let job = job.clone();
            thread::spawn(move || job.complete())
        };
        assert_eq!(
            job.receive_foreign(&Arc::new(Notify::new())),
            Received::Ended
        );
        runner.join().unwrap();
    });
}
