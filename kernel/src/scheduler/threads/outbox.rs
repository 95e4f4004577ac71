//! The outbox of a pool thread: jobs that it woke while it owned no worker, on their way to the injector.
//!
//! A job that sends for long is detached from its worker. Each of its wakes then crosses from one core to another, or
//! takes the core from the sender: one by one they cost the lock of the injector and often a sleeping worker's wake-up.
//! So only the first wakes of a round of the monitor go to the injector at once; the others go in batches.
//!
//! Nothing is lost or forgotten. A batch leaves when it is full, with the monitor's next round, when the thread's poll
//! ends, when the job announces that it blocks, and when the runtime stops. The monitor does not sleep while there is a
//! batch; before it sleeps it begins a new round, so that the next wake goes at once, and wakes a worker and by it the
//! monitor.

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

    /// Queues a job that was woken. Returns the jobs that must go to the injector now. The outbox's thread only.
    pub(crate) fn push(&self, job: Runnable) -> JobBatch<Header> {
        let mut gathered = lock(&self.0);
        // SAFETY: the runnable's right goes into the batch.
        unsafe { gathered.batch.push(job.into_ptr().as_raw().as_ptr()) };
        let goes_at_once = gathered.at_once < AT_ONCE;
        gathered.at_once += u32::from(goes_at_once);
        match goes_at_once || gathered.batch.len() >= MOST {
            true => gathered.take(),
            false => JobBatch::new(),
        }
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
