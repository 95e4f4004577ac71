//! Quarantine: jobs of [suspect](crate::scheduler::threads::suspects) kinds run here, on pool threads that own no
//! worker. If such a job blocks or computes, no worker is held up, and none needs to be retaken.
//!
//! - A worker that takes such a job from its queues puts it into the quarantine's queue instead of running it. A
//!   callback comes as a job of its own ([`runner`](crate::callback)).
//! - The monitor starts threads for the queue until as many are *busy* (neither blocked nor in a run beyond
//!   `stuck_after`) as there are workers. While none is busy, each round doubles their number. So 600 jobs that block
//!   get their threads within ten rounds, and jobs that compute share few threads at first, but never wait for each
//!   other longer than the bound.
//! - A thread takes one job after the other until the queue is empty. Then it *lingers*: for a moment the next job
//!   wakes it, and need not wait for the monitor. No more threads linger than there are workers.
//!
//! Some spare threads are left for workers that are retaken. Beyond that bound the jobs wait for a thread, and the
//! workers continue to serve all others.

#![allow(unsafe_code)]

use std::{
    sync::atomic::fence,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    job::{Header, JobPtr, runnable::Runnable},
    queue::injector::{Injector, JobBatch},
    scheduler::threads::suspects::Suspects,
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// How many of `spare` spare threads may run quarantined jobs. An eighth, but at least one, is left for workers that
/// are retaken; a single one serves both.
pub(super) fn share_of_spare_threads(spare: usize) -> usize {
    (spare - spare.div_ceil(8)).max(spare.min(1))
}

/// How long a thread lingers: longer than two rounds of the monitor.
const LINGER: Duration = Duration::from_millis(2);
/// How many queued jobs a round checks for whether a worker may run them.
const CHECKED_AT_ONCE: usize = 64;

/// The jobs that wait for a thread of the quarantine.
pub(crate) struct Quarantine {
    queue: Injector<Header>,
    /// Threads that were given the queue and have not taken from it yet.
    starting: AtomicUsize,
    /// The threads that wait for the next job, and how many.
    lingering: Mutex<Vec<Thread>>,
    lingerers: AtomicUsize,
}

impl Quarantine {
    pub(crate) fn new() -> Quarantine {
        Quarantine {
            queue: Injector::new(),
            starting: AtomicUsize::new(0),
            lingering: Mutex::new(Vec::new()),
            lingerers: AtomicUsize::new(0),
        }
    }

    /// How many threads were given the queue and have not taken from it yet.
    pub(crate) fn starting(&self) -> usize {
        // Relaxed: a count for the monitor's decision.
        self.starting.load(Ordering::Relaxed)
    }

    /// A thread was given the queue.
    pub(crate) fn begin_start(&self) {
        self.starting.fetch_add(1, Ordering::Relaxed);
    }

    /// The thread has begun to serve the queue, or could not start.
    pub(crate) fn end_start(&self) {
        self.starting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Queues a job. Any thread.
    pub(crate) fn push(&self, job: Runnable) {
        let mut batch = JobBatch::new();
        // SAFETY: the runnable's right goes into the batch.
        unsafe { batch.push(job.into_ptr().as_raw().as_ptr()) };
        self.queue.push(batch);
        // Pairs with the fence in `linger`: the thread sees the job, or is seen here.
        fence(Ordering::SeqCst);
        if self.lingerers.load(Ordering::Relaxed) > 0 {
            self.wake_lingerer();
        }
    }

    fn wake_lingerer(&self) {
        let mut lingering = lock(&self.lingering);
        let thread = lingering.pop();
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// Waits a moment for the next job. True if there is one. Returns at once if `most` threads wait already.
    pub(super) fn linger(&self, most: usize) -> bool {
        let own = thread::current().id();
        let is_other = |thread: &Thread| thread.id() != own;
        let mut lingering = lock(&self.lingering);
        if lingering.len() >= most {
            return false;
        }
        lingering.push(thread::current());
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        fence(Ordering::SeqCst);
        let end = Instant::now() + LINGER;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A job that this thread was woken for may have gone to another one.
            if self.len() > 0 || left.is_zero() || lock(&self.lingering).iter().all(is_other) {
                break;
            }
            thread::park_timeout(left);
        }
        let mut lingering = lock(&self.lingering);
        lingering.retain(is_other);
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        self.len() > 0
    }

    /// Checks the first jobs, and takes those that a worker may run. These are jobs whose kinds are no longer suspect,
    /// and cancelled jobs, which end on the worker, unless the kind's destructors take long. The others go to the end
    /// of the queue. So each job is checked in turn. Called by the monitor while there is no thread for them.
    pub(crate) fn take_released(&self, suspects: &Suspects) -> JobBatch<Header> {
        let (mut released, mut others) = (JobBatch::new(), JobBatch::new());
        let mut first = self.queue.pop(CHECKED_AT_ONCE);
        while let Some(job) = first.pop() {
            // SAFETY: the queue held the job's right to run, which keeps it alive.
            let header = unsafe { &*job };
            if header.state.is_cancelled() {
                // So that a worker does not send it back.
                header.prove();
            }
            let batch = match suspects.includes(header) {
                true => &mut others,
                false => &mut released,
            };
            // SAFETY: the right to run goes into the batch.
            unsafe { batch.push(job) };
        }
        self.queue.push(others);
        released
    }

    /// Takes the job that waits longest. Any thread.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        let job = self.queue.pop(1).pop()?;
        let job = JobPtr::from_raw(std::ptr::NonNull::new(job).expect("a queued job"));
        // SAFETY: the queue held the job's right to run.
        Some(unsafe { Runnable::new(job) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::share_of_spare_threads;

    #[test]
    fn a_spare_thread_is_left_for_workers_and_one_runs_quarantined_jobs() {
        let most = [0, 1, 2, 7, 8, 9, 512].map(share_of_spare_threads);
        assert_eq!(most, [0, 1, 1, 6, 7, 7, 448]);
    }
}
