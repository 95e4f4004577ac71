//! Models of the state word's posts: each is received, or comes back, exactly once.

#![allow(unsafe_code)]

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

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

/// A message whose content loom watches: it must be written before it is read.
struct Parcel(Cell<usize>);

/// A job that receives messages, and what surrounds it.
struct Job {
    state: State,
    /// How many messages it waits for before it ends.
    wanted: usize,
    /// Its body. Only one thread at a time may run the job; loom finds two.
    received: Cell<Vec<usize>>,
    /// How often it ended.
    ends: AtomicUsize,
    /// Stands for the receiver's waker in the extras.
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

    /// As `Address::post` does it; a runnable is run on the spot.
    fn post(&self, number: usize) -> Result<(), usize> {
        let link = MessageNode::new(
            Parcel(Cell::new(number)),
            JobPtr::from_raw(NonNull::dangling()),
        )
        .into_link();
        // SAFETY: the post is new, and given away unless it comes back below.
        match unsafe { self.state.post(link.as_ptr()) } {
            Posted::Queued => {}
            Posted::Schedule => self.run(),
            Posted::WakeReceiver => self.wake_receiver(),
            // SAFETY: the state did not take it.
            Posted::Closed => return Err(unsafe { into_number(link) }),
        }
        Ok(())
    }

    fn wake_receiver(&self) {
        if let Some(receiver) = lock(&self.receiver).take() {
            receiver.notify();
        }
    }

    /// Runs of the job, one after the other, until it ends or is parked. The caller has its runnable.
    fn run(&self) {
        loop {
            assert_eq!(self.state.start(), StartAction::Poll);
            let mut received = self.received.take();
            received.extend(numbers(self.state.take_messages()));
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

    /// As `Mailbox::poll_receive` does it for a receiver that is not the job itself.
    fn receive_outside(&self, parking: &Arc<Notify>) -> Received {
        loop {
            let posts = self.state.take_messages();
            if !posts.is_null() {
                return Received::Messages(numbers(posts));
            }
            *lock(&self.receiver) = Some(parking.clone());
            if self.state.register_receiver() {
                parking.wait();
            } else if self.state.is_done() {
                return Received::Ended;
            }
        }
    }

    /// As `run::finish` does it.
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

/// The messages of a stack of posts, oldest first.
fn numbers(posts: *mut Link) -> Vec<usize> {
    let (mut numbers, mut rest) = (Vec::new(), NonNull::new(posts));
    while let Some(link) = rest {
        // SAFETY: the stack was just taken from a state, and so is owned here.
        rest = NonNull::new(unsafe { (*link.as_ptr()).next });
        // SAFETY: only parcels are posted in this file.
        numbers.push(unsafe { into_number(link) });
    }
    numbers.reverse();
    numbers
}

/// # Safety
/// `link` is a parcel's, and the caller owns it.
unsafe fn into_number(link: NonNull<Link>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { MessageNode::<Parcel>::from_link(link) }
        .into_value()
        .0
        .get()
}

/// Two posts against a park: no wake-up is lost, and the job has one runnable: both messages are
/// received, by one runner at a time, and the job ends once.
#[test]
fn posts_against_a_park_are_received_by_one_runner() {
    loom::model(|| {
        let job = Job::awake(2);
        let posters = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || assert_eq!(job.post(number), Ok(())))
        });
        job.run();
        for poster in posters {
            poster.join().unwrap();
        }
        assert_eq!(job.ends.load(Ordering::Relaxed), 1);
        let mut received = job.received.take();
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}

/// Two posts of one thread against a park: they are received in their order.
#[test]
fn posts_of_one_thread_keep_their_order() {
    loom::model(|| {
        let job = Job::awake(2);
        let poster = {
            let job = job.clone();
            thread::spawn(move || {
                assert_eq!(job.post(1), Ok(()));
                assert_eq!(job.post(2), Ok(()));
            })
        };
        job.run();
        poster.join().unwrap();
        assert_eq!(job.ends.load(Ordering::Relaxed), 1);
        assert_eq!(job.received.take(), [1, 2]);
    });
}

/// Posts of two threads against the closing of the mailbox: each is received before, or found by the
/// closing, or comes back to its poster; none twice.
#[test]
fn posts_against_a_close_are_received_or_come_back() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let posters = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || job.post(number).err())
        });
        let mut seen = numbers(job.state.take_messages());
        seen.extend(numbers(job.state.close_inbox()));
        seen.extend(
            posters
                .into_iter()
                .filter_map(|poster| poster.join().unwrap()),
        );
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        assert_eq!(job.post(3), Err(3));
        assert!(job.state.take_messages().is_null());
    });
}

/// A post against the end of the job and the drop of its mailbox: it is found by the drop, or comes
/// back.
#[test]
fn a_post_against_an_end_is_found_or_comes_back() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let poster = {
            let job = job.clone();
            thread::spawn(move || job.post(1).err())
        };
        job.complete();
        let mut seen = numbers(job.state.close_inbox());
        seen.extend(poster.join().unwrap());
        assert_eq!(seen, [1]);
    });
}

/// Posts of two threads against a receiver that registers its waker: the receiver gets both messages,
/// and never waits while one is there.
#[test]
fn posts_against_the_registration_of_a_receiver_wake_it() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let posters = [1, 2].map(|number| {
            let job = job.clone();
            thread::spawn(move || assert_eq!(job.post(number), Ok(())))
        });
        let parking = Arc::new(Notify::new());
        let mut received = Vec::new();
        while received.len() < 2 {
            match job.receive_outside(&parking) {
                Received::Messages(numbers) => received.extend(numbers),
                Received::Ended => panic!("the job has not ended"),
            }
        }
        for poster in posters {
            poster.join().unwrap();
        }
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}

/// The end of a job against a receiver that registers its waker: the receiver learns of the end.
#[test]
fn an_end_against_the_registration_of_a_receiver_wakes_it() {
    loom::model(|| {
        let job = Job::awake(usize::MAX);
        let runner = {
            let job = job.clone();
            thread::spawn(move || job.complete())
        };
        assert_eq!(
            job.receive_outside(&Arc::new(Notify::new())),
            Received::Ended
        );
        runner.join().unwrap();
    });
}
