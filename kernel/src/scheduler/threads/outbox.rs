//! The outbox of a pool thread: jobs that it woke while it owned no worker, on their way to the injector.
//!
//! A job that sends for long is detached from its worker. Each of its wakes then crosses from one core to another, or
//! takes the core from the sender: one by one they cost the lock of the injector and often a sleeping worker's wake-up.
//! So only the first wakes of a round of the monitor go to the injector at once; the others go in batches.
//!
//! Nothing is lost or forgotten. A batch leaves when it is full, with the monitor's next round, when the thread's poll
//! ends, when the job announces that it blocks, and when the runtime stops. The first job of a batch wakes the monitor
//! if the monitor sleeps, and the monitor does not fall asleep while an outbox has jobs.
//!
//! A round empties only the outboxes that have begun to gather since the last round: an outbox enters a list when it
//! begins. The other outboxes see by the round's number that a new round has begun.

#![allow(unsafe_code)]

use std::{
    mem,
    sync::{Arc, Weak},
};

use crate::{
    job::{Header, runnable::Runnable},
    queue::injector::JobBatch,
    sys::{AtomicU32, Mutex, Ordering, lock},
};

/// This many wakes per round go to the injector at once. A job that sends to another thread and blocks for each reply
/// is delayed only if it does so more often.
const AT_ONCE: u32 = 8;
/// The most jobs in a batch.
const MOST: usize = 64;

/// What the caller of [`Outboxes::push`] owes.
#[must_use]
pub(crate) enum Outgoing {
    /// The jobs go to the injector now.
    Due(JobBatch<Header>),
    /// A batch begins, so the monitor must not sleep.
    First,
    /// The job is in a batch that began before, or the monitor will empty the outbox anyway.
    Gathered,
}

/// The outbox of one thread.
pub(crate) struct Outbox {
    gathered: Mutex<Gathered>,
    /// Itself, for the list.
    me: Weak<Outbox>,
}

struct Gathered {
    batch: JobBatch<Header>,
    /// How many wakes went at once in the round.
    at_once: u32,
    round: u32,
    /// Whether the outbox is in the list.
    is_listed: bool,
}

impl Outbox {
    pub(crate) fn new() -> Arc<Outbox> {
        Arc::new_cyclic(|me| Outbox {
            gathered: Mutex::new(Gathered {
                batch: JobBatch::new(),
                at_once: 0,
                round: 0,
                is_listed: false,
            }),
            me: me.clone(),
        })
    }

    /// Takes what has gathered, for the injector, and lets the next wakes go at once. The outbox's thread only.
    pub(crate) fn take(&self) -> JobBatch<Header> {
        let mut gathered = lock(&self.gathered);
        gathered.at_once = 0;
        gathered.take()
    }
}

impl Gathered {
    fn take(&mut self) -> JobBatch<Header> {
        mem::replace(&mut self.batch, JobBatch::new())
    }
}

/// What a runtime knows of the outboxes of its threads.
pub(crate) struct Outboxes {
    /// Those that have begun to gather in this round.
    begun: Mutex<Vec<Arc<Outbox>>>,
    /// The number of the round; it wraps.
    round: AtomicU32,
}

impl Outboxes {
    pub(crate) fn new() -> Outboxes {
        Outboxes {
            begun: Mutex::new(Vec::new()),
            round: AtomicU32::new(0),
        }
    }

    /// Queues a job that was woken by the thread of `outbox`, which is the calling one.
    pub(crate) fn push(&self, outbox: &Outbox, job: Runnable) -> Outgoing {
        let mut gathered = lock(&outbox.gathered);
        // SAFETY: the runnable's right goes into the batch.
        unsafe { gathered.batch.push(job.into_ptr().as_raw().as_ptr()) };
        // Relaxed: it guards no other memory; a thread that sees a new round late only delays a few more wakes.
        let round = self.round.load(Ordering::Relaxed);
        if mem::replace(&mut gathered.round, round) != round {
            gathered.at_once = 0;
        }
        let goes_at_once = gathered.at_once < AT_ONCE;
        gathered.at_once += u32::from(goes_at_once);
        if goes_at_once || gathered.batch.len() >= MOST {
            return Outgoing::Due(gathered.take());
        }
        if mem::replace(&mut gathered.is_listed, true) {
            return Outgoing::Gathered;
        }
        drop(gathered);
        lock(&self.begun).extend(outbox.me.upgrade());
        Outgoing::First
    }

    /// Whether the next round empties an outbox. Any thread.
    pub(crate) fn is_any_begun(&self) -> bool {
        !lock(&self.begun).is_empty()
    }

    /// Takes what has gathered in all outboxes, for the injector, and begins a round. Any thread.
    pub(crate) fn take_all(&self) -> JobBatch<Header> {
        self.round.fetch_add(1, Ordering::Relaxed);
        let begun = mem::take(&mut *lock(&self.begun));
        let mut all = JobBatch::new();
        for outbox in begun {
            let mut gathered = lock(&outbox.gathered);
            gathered.is_listed = false;
            all.append(gathered.take());
        }
        all
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::{JobPtr, testing::runnable};

    fn drop_all(mut batch: JobBatch<Header>) -> usize {
        let mut count = 0;
        while let Some(job) = batch.pop() {
            let job = JobPtr::from_raw(std::ptr::NonNull::new(job).expect("a queued job"));
            // SAFETY: the batch held the job's right to run.
            drop(unsafe { Runnable::new(job) });
            count += 1;
        }
        count
    }

    fn push_at_once(outboxes: &Outboxes, outbox: &Outbox) {
        for _ in 0..AT_ONCE {
            let Outgoing::Due(single) = outboxes.push(outbox, runnable()) else {
                panic!("the first wakes of a round go at once")
            };
            assert_eq!(drop_all(single), 1);
        }
    }

    #[test]
    fn the_first_job_of_a_batch_says_so_and_the_next_round_takes_it() {
        let (outboxes, outbox) = (Outboxes::new(), Outbox::new());
        let push = || outboxes.push(&outbox, runnable());
        for _ in 0..2 {
            push_at_once(&outboxes, &outbox);
            assert!(!outboxes.is_any_begun());
            assert!(matches!(push(), Outgoing::First));
            assert!(outboxes.is_any_begun());
            assert!(matches!(push(), Outgoing::Gathered));
            assert_eq!(drop_all(outboxes.take_all()), 2);
            assert!(!outboxes.is_any_begun());
        }
        push_at_once(&outboxes, &outbox);
        assert!(matches!(push(), Outgoing::First));
        // Several batches of a round enter the outbox into the list once.
        for _ in 0..3 {
            let mut full = push();
            while !matches!(full, Outgoing::Due(_)) {
                full = push();
            }
            let Outgoing::Due(full) = full else {
                unreachable!("as the loop ended")
            };
            assert_eq!(drop_all(full), MOST);
            assert!(matches!(push(), Outgoing::Gathered));
        }
        assert_eq!(lock(&outboxes.begun).len(), 1);
        assert_eq!(drop_all(outbox.take()), 1);
        push_at_once(&outboxes, &outbox);
        assert_eq!(drop_all(outboxes.take_all()), 0);
    }

    #[test]
    fn a_round_empties_only_outboxes_that_have_begun_and_is_a_new_one_for_all() {
        let outboxes = Outboxes::new();
        let (idle, busy) = (Outbox::new(), Outbox::new());
        push_at_once(&outboxes, &idle);
        push_at_once(&outboxes, &busy);
        assert!(matches!(outboxes.push(&busy, runnable()), Outgoing::First));
        // Emptying it would try this lock.
        let unemptied = lock(&idle.gathered);
        assert!(outboxes.is_any_begun());
        assert_eq!(drop_all(outboxes.take_all()), 1);
        assert!(!outboxes.is_any_begun());
        drop(unemptied);
        push_at_once(&outboxes, &idle);
        push_at_once(&outboxes, &busy);
    }
}
