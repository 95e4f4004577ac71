//! The outbox of a pool thread: jobs that it woke while it owned no worker, on their way to the injector.
//!
//! A job that sends for long is detached from its worker. Each of its wakes then crosses from one core to another: one
//! by one they cost the lock of the injector and often a sleeping worker's wake-up. So wakes that follow each other
//! within [`BURST`] go to the injector in batches; a single one goes at once.
//!
//! Nothing is lost or forgotten: a batch leaves when it is full, with the first wake after a pause, when the thread's
//! poll ends or the job announces that it blocks, in the monitor's next round, and when the runtime stops.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::{
    job::{Header, runnable::Runnable},
    queue::injector::JobBatch,
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// Wakes that follow each other within this time go in batches. Less than any answer takes to come back from another
/// thread, so that a dialogue is not delayed.
const BURST: Duration = Duration::from_micros(2);
/// The most jobs in a batch.
const MOST: usize = 64;

/// The outbox of one thread.
pub(crate) struct Outbox {
    inner: Mutex<Gathered>,
    /// How many jobs there are, for a look without the lock.
    len: AtomicUsize,
}

struct Gathered {
    batch: JobBatch<Header>,
    /// The last wake.
    last: Option<Instant>,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            inner: Mutex::new(Gathered {
                batch: JobBatch::new(),
                last: None,
            }),
            len: AtomicUsize::new(0),
        }
    }

    /// Queues a job that was woken at `now`. Returns the jobs that must go to the injector now. The outbox's thread
    /// only.
    pub(crate) fn push(&self, job: Runnable, now: Instant) -> JobBatch<Header> {
        let mut inner = lock(&self.inner);
        // SAFETY: the runnable's right goes into the batch.
        unsafe { inner.batch.push(job.into_ptr().as_raw().as_ptr()) };
        let last = inner.last.replace(now);
        let is_burst = last.is_some_and(|last| now.saturating_duration_since(last) < BURST);
        let batch = match is_burst && inner.batch.len() < MOST {
            true => JobBatch::new(),
            false => inner.take(),
        };
        // Relaxed: `take` takes the lock.
        self.len.store(inner.batch.len(), Ordering::Relaxed);
        batch
    }

    /// Takes what has gathered, for the injector. Any thread.
    pub(crate) fn take(&self) -> JobBatch<Header> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return JobBatch::new();
        }
        let mut inner = lock(&self.inner);
        self.len.store(0, Ordering::Relaxed);
        inner.take()
    }
}

impl Gathered {
    fn take(&mut self) -> JobBatch<Header> {
        std::mem::replace(&mut self.batch, JobBatch::new())
    }
}
