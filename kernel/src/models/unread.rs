//! Models of the time since when a mailbox is unread: it is never earlier than the oldest message.

#![allow(unsafe_code)]

use std::{ptr::NonNull, sync::Arc};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::thread;

use crate::{
    job::{
        JobPtr,
        message::MessageNode,
        state::{State, TakenMessages},
        transition::{Inbox, Posted},
    },
    scheduler::threads::unread_times::UnreadTimes,
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// Stands for the job's address.
const ADDRESS: usize = 8;

/// A mailbox and the samples of it. A message is the time at which it was posted.
struct Sampled {
    state: State,
    samples: Mutex<UnreadTimes<usize>>,
    /// Each look at the clock is later than those before it.
    clock: AtomicUsize,
}

impl Sampled {
    fn new() -> Arc<Sampled> {
        Arc::new(Sampled {
            state: State::new(Inbox::Open),
            samples: Mutex::new(UnreadTimes::default()),
            clock: AtomicUsize::new(1),
        })
    }

    fn now(&self) -> usize {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn post(&self) {
        let job = JobPtr::from_raw(NonNull::dangling());
        let link = MessageNode::new(self.now(), job).into_link();
        // SAFETY: the node is new, and the mailbox stays open.
        let posted = unsafe { self.state.post(link.as_ptr()) };
        assert_eq!(posted, Posted::Queued);
    }

    /// As `Samples::step`, for the only job.
    fn sample(&self) -> Option<usize> {
        let mut samples = lock(&self.samples);
        let since = samples.check(ADDRESS, &self.state, || self.now());
        samples.end_sample();
        since
    }

    /// As a sample that begins while another is under way. Each looks at the job; returns what they have found.
    fn sample_twice(&self) -> [Option<usize>; 2] {
        let mut samples = lock(&self.samples);
        let first = samples.check(ADDRESS, &self.state, || self.now());
        samples.restart_sample();
        let second = samples.check(ADDRESS, &self.state, || self.now());
        samples.end_sample();
        [first, second]
    }

    /// As a receiver that takes many messages: it asks since when they were there. Returns when each was posted, the
    /// oldest first.
    fn receive(&self) -> Vec<usize> {
        let taken = self.state.take_messages();
        let was_seen = taken.was_seen();
        let posted = times(taken);
        if was_seen {
            let since = lock(&self.samples).since(ADDRESS);
            // None: a sample has looked since, and found nothing.
            let is_late = since.is_none_or(|since| since > posted[0]);
            assert!(is_late, "{since:?} {posted:?}");
        }
        posted
    }
}

/// When each of the messages was posted, the oldest first.
fn times(taken: TakenMessages) -> Vec<usize> {
    let (mut times, mut rest) = (Vec::new(), NonNull::new(taken.messages()));
    while let Some(link) = rest {
        // SAFETY: the stack was taken from a state, and so is owned here.
        rest = NonNull::new(unsafe { (*link.as_ptr()).next });
        // SAFETY: only times are posted in this file, and the node is owned here.
        times.push(unsafe { MessageNode::<usize>::from_link(link) }.into_value());
    }
    times.reverse();
    times
}

/// A message against a receiver that takes at any time, and against samples. The time that a sample gives for messages
/// that are still there, and the time that the receiver learns for those that it took, are never earlier than the
/// oldest of them.
#[test]
fn a_time_is_never_earlier_than_the_oldest_message() {
    loom::model(|| {
        let sampled = Sampled::new();
        sampled.post();
        let sampler = {
            let sampled = sampled.clone();
            thread::spawn(move || {
                sampled.sample();
                sampled.sample_twice();
            })
        };
        let receiver = {
            let sampled = sampled.clone();
            thread::spawn(move || sampled.receive().len() + sampled.receive().len())
        };
        sampled.post();
        sampler.join().unwrap();
        let received = receiver.join().unwrap();
        let since = sampled.sample();
        let left = sampled.receive();
        assert_eq!(received + left.len(), 2);
        assert_eq!(since.is_some(), !left.is_empty());
        assert!(since > left.first().copied() || left.is_empty());
    });
}

/// A message that stays keeps its time, whatever the sample under way does. A message that is posted after a take has a
/// time of its own, even in the same sample.
#[test]
fn a_message_keeps_its_time_until_it_is_taken() {
    loom::model(|| {
        let sampled = Sampled::new();
        assert_eq!(sampled.sample(), None);
        sampled.post();
        let [first, second] = sampled.sample_twice();
        assert!(first.is_some() && first == second);
        sampled.post();
        assert_eq!(sampled.sample(), first);
        assert_eq!(sampled.receive().len(), 2);
        sampled.post();
        let mut samples = lock(&sampled.samples);
        let [first, second] = [(); 2].map(|()| {
            let now = || sampled.now();
            samples.check(ADDRESS, &sampled.state, now)
        });
        drop(samples);
        assert_eq!(first, second);
        let posted = sampled.receive();
        assert!(first > posted.first().copied());
    });
}
