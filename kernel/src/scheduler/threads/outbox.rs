//! The outbox of a pool thread: jobs that it woke while it owned no worker, on their way to the injector.
//!
//! A job that sends for long is detached from its worker. Each of its wakes then crosses from one core to another, or
//! takes the core from the sender: one by one they cost the lock of the injector and often a sleeping worker's wake-up.
//! So only the first wakes of a round of the monitor go to the injector at once; the others go in batches.
//!
//! Nothing is lost or forgotten. A batch leaves when it is full, with the monitor's next round, when the thread's poll
//! ends, when the job announces that it blocks, and when the runtime stops. The first job of a batch wakes the monitor if
//! it sleeps, and it does not fall asleep while an outbox has jobs.

#![allow(unsafe_code)]

use crate::{
    job::{Header, runnable::Runnable},
    queue::injector::JobBatch,
    sys::{Mutex, lock},
};

/// So many wakes of a round go at once. A job that talks with another thread, and blocks for each answer, is delayed
/// only if it does so more often.
const AT_ONCE: u32 = 8;
/// The most jobs in a batch.
const MOST: usize = 64;

/// What the caller of [`Outbox::push`] owes.
#[must_use]
pub(crate) enum Outgoing {
    /// The jobs go to the injector now.
    Due(JobBatch<Header>),
    /// A batch begins, so the monitor must not sleep.
    First,
    /// The job is in a batch that began before.
    Gathered,
}

/// The outbox of one thread.
pub(crate) struct Outbox(Mutex<Gathered>);

struct Gathered {
    batch: JobBatch<Header>,
    /// How many wakes went at once in this round.
    at_once: u32,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox(Mutex::new(Gathered {
            batch: JobBatch::new(),
            at_once: 0,
        }))
    }

    /// Queues a job that was woken. The outbox's thread only.
    pub(crate) fn push(&self, job: Runnable) -> Outgoing {
        let mut gathered = lock(&self.0);
        // SAFETY: the runnable's right goes into the batch.
        unsafe { gathered.batch.push(job.into_ptr().as_raw().as_ptr()) };
        let goes_at_once = gathered.at_once < AT_ONCE;
        gathered.at_once += u32::from(goes_at_once);
        match goes_at_once || gathered.batch.len() >= MOST {
            true => Outgoing::Due(gathered.take()),
            false if gathered.batch.len() == 1 => Outgoing::First,
            false => Outgoing::Gathered,
        }
    }

    /// Whether nothing has gathered. A moment old.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).batch.len() == 0
    }

    /// Takes what has gathered, for the injector, and begins a round. Any thread.
    pub(crate) fn take(&self) -> JobBatch<Header> {
        let mut gathered = lock(&self.0);
        gathered.at_once = 0;
        gathered.take()
    }
}

impl Gathered {
    fn take(&mut self) -> JobBatch<Header> {
        std::mem::replace(&mut self.batch, JobBatch::new())
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

    #[test]
    fn the_first_job_of_a_batch_says_so_and_the_outbox_is_not_empty_until_it_leaves() {
        let outbox = Outbox::new();
        let push = || outbox.push(runnable());
        let at_once = || {
            for _ in 0..AT_ONCE {
                let Outgoing::Due(single) = push() else {
                    panic!("the first wakes of a round go at once")
                };
                assert_eq!(drop_all(single), 1);
                assert!(outbox.is_empty());
            }
        };
        at_once();
        assert!(matches!(push(), Outgoing::First));
        assert!(!outbox.is_empty());
        assert!(matches!(push(), Outgoing::Gathered));
        assert_eq!(drop_all(outbox.take()), 2);
        assert!(outbox.is_empty());
        at_once();
        assert!(matches!(push(), Outgoing::First));
        for _ in 2..MOST {
            assert!(matches!(push(), Outgoing::Gathered));
        }
        let Outgoing::Due(full) = push() else {
            panic!("a full batch leaves")
        };
        assert_eq!(drop_all(full), MOST);
        assert!(outbox.is_empty());
    }
}
