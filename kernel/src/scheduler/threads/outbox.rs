//! The outbox of a pool thread: jobs that it woke while it owned no worker, on their way to the injector.
//!
//! A job that sends for long is detached from its worker. Each of its wakes then crosses from one core to another: one
//! by one they cost the lock of the injector and often a sleeping worker's wake-up. So wakes that follow each other
//! within [`BURST`] go to the injector in batches; a single one goes at once.
//!
//! Nothing is lost or forgotten: a batch leaves when it is full, with the first wake after a pause, when the thread's
//! poll ends or the job announces that it blocks, in the monitor's next round, and when the runtime stops. The first job
//! of a batch wakes the monitor if it sleeps, and it does not fall asleep while an outbox has jobs.

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

    /// Queues a job that was woken at `now`. The outbox's thread only.
    pub(crate) fn push(&self, job: Runnable, now: Instant) -> Outgoing {
        let mut inner = lock(&self.inner);
        // SAFETY: the runnable's right goes into the batch.
        unsafe { inner.batch.push(job.into_ptr().as_raw().as_ptr()) };
        let last = inner.last.replace(now);
        let is_burst = last.is_some_and(|last| now.saturating_duration_since(last) < BURST);
        let pushed = match is_burst && inner.batch.len() < MOST {
            true if inner.batch.len() == 1 => Outgoing::First,
            true => Outgoing::Gathered,
            false => Outgoing::Due(inner.take()),
        };
        // Relaxed: `take` takes the lock; for `is_empty`, `MonitorSleep::outbox_begun` orders it.
        self.len.store(inner.batch.len(), Ordering::Relaxed);
        pushed
    }

    /// Whether nothing has gathered. A moment old.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Takes what has gathered, for the injector. Any thread.
    pub(crate) fn take(&self) -> JobBatch<Header> {
        if self.is_empty() {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::job::{self, JobPtr, Spec, transition::Inbox};

    fn job() -> Runnable {
        let spec = Spec {
            runtime: 0,
            site: Location::caller(),
            inbox: Inbox::None,
            pinned: None,
            flags: 0,
            refs: 0,
        };
        job::new(spec, |_| async {})
    }

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
        let (outbox, begin) = (Outbox::new(), Instant::now());
        let push = |nanos| outbox.push(job(), begin + Duration::from_nanos(nanos));
        let Outgoing::Due(single) = push(0) else {
            panic!("a single wake goes at once")
        };
        assert_eq!(drop_all(single), 1);
        assert!(outbox.is_empty());
        assert!(matches!(push(100), Outgoing::First));
        assert!(!outbox.is_empty());
        assert!(matches!(push(200), Outgoing::Gathered));
        assert_eq!(drop_all(outbox.take()), 2);
        assert!(outbox.is_empty());
        assert!(matches!(push(300), Outgoing::First));
        for n in 2..MOST as u64 {
            assert!(matches!(push(300 + n), Outgoing::Gathered));
        }
        let Outgoing::Due(full) = push(500) else {
            panic!("a full batch leaves")
        };
        assert_eq!(drop_all(full), MOST);
        assert!(outbox.is_empty());
    }
}
