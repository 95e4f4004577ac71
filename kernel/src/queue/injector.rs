//! The injector: the unbounded first-in-first-out queue for foreign threads and for the overflow of full rings.
//!
//! The list is intrusive: it links the jobs themselves, allocates nothing, and takes a whole overflow queue under one
//! lock. It uses a mutex and is not lock-free: workers come here once for many jobs, and a lock for a batch is cheaper
//! than a lock-free queue's atomics for each job.

#![allow(unsafe_code)]

use std::{iter, mem, ptr};

use crate::queue::queue_counts::QueueCounts;
use crate::sys::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// Something that can be linked into an injector. The owner of the job owns its link.
pub(crate) trait Linked {
    /// The link; null outside any list.
    fn next(&self) -> &AtomicPtr<Self>
    where
        Self: Sized;
}

/// A list of jobs, owned by the holder of this value.
///
/// # Safety
/// *Owned*: a job in a batch is valid until it is popped, and only the batch touches its link; see
/// [`push`](JobBatch::push).
pub(crate) struct JobBatch<T: Linked> {
    first: *mut T,
    last: *mut T,
    len: usize,
}

// SAFETY: a batch owns the right to run its jobs, which may be passed between threads.
unsafe impl<T: Linked> Send for JobBatch<T> {}

impl<T: Linked> JobBatch<T> {
    pub(crate) const fn new() -> JobBatch<T> {
        JobBatch {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts `job` last.
    ///
    /// # Safety
    /// `job` is valid until it is popped and is in no other list, and the caller gives up its ownership.
    pub(crate) unsafe fn push(&mut self, job: *mut T) {
        // SAFETY: the caller's promise.
        let link = unsafe { next_of(job) };
        link.store(ptr::null_mut(), Ordering::Relaxed);
        self.link_last(job);
        self.last = job;
        self.len += 1;
    }

    /// Takes the first job.
    pub(crate) fn pop(&mut self) -> Option<*mut T> {
        let job = self.first;
        if job.is_null() {
            return None;
        }
        // SAFETY: *owned*.
        let next = unsafe { next_of(job) };
        self.first = next.load(Ordering::Relaxed);
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        self.len -= 1;
        Some(job)
    }

    /// Takes the first job that `is_wanted` selects, if it is among the first `most`, and tells how many are before it.
    pub(crate) fn take_first(
        &mut self,
        most: usize,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Option<(usize, *mut T)> {
        let mut before = JobBatch::new();
        let found = loop {
            let job = match before.len() < most {
                true => self.pop(),
                false => None,
            };
            let Some(job) = job else { break None };
            // SAFETY: *owned*.
            if is_wanted(unsafe { &*job }) {
                break Some((before.len(), job));
            }
            // SAFETY: this batch owned the job, and `before` owns it now.
            unsafe { before.push(job) };
        };
        before.append(mem::replace(self, JobBatch::new()));
        *self = before;
        found
    }

    /// The jobs, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut T> {
        let first = (!self.first.is_null()).then_some(self.first);
        iter::successors(first, |job| {
            // SAFETY: *owned*, and the batch is borrowed meanwhile.
            let next = unsafe { next_of(*job) }.load(Ordering::Relaxed);
            (!next.is_null()).then_some(next)
        })
    }

    /// Puts the jobs of `other` last.
    pub(crate) fn append(&mut self, other: JobBatch<T>) {
        if other.first.is_null() {
            return;
        }
        self.link_last(other.first);
        self.last = other.last;
        self.len += other.len;
    }

    /// Links `job` behind the last job, if there is one; otherwise it becomes the first.
    #[inline(always)]
    fn link_last(&mut self, job: *mut T) {
        if self.last.is_null() {
            self.first = job;
            return;
        }
        // SAFETY: *owned*.
        let link = unsafe { next_of(self.last) };
        link.store(job, Ordering::Relaxed);
    }
}

/// # Safety
/// *Owned* ([`JobBatch`]), for as long as the result is used.
#[inline(always)]
unsafe fn next_of<'a, T: Linked>(job: *mut T) -> &'a AtomicPtr<T> {
    // SAFETY: the caller's promise.
    unsafe { &*job }.next()
}

/// The shared queue.
pub(crate) struct Injector<T: Linked> {
    jobs: Mutex<JobBatch<T>>,
    /// The length, for callers that only ask. Written under the lock.
    len: AtomicUsize,
    /// How many jobs were ever taken. Written under the lock.
    taken: AtomicU64,
}

impl<T: Linked> Injector<T> {
    pub(crate) fn new() -> Injector<T> {
        Injector {
            jobs: Mutex::new(JobBatch::new()),
            len: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Puts `batch` last. Any thread. The caller then calls
    /// [`Sleepers::take_one`](crate::queue::sleepers::Sleepers::take_one). `take_for_own_ring` is not enough: this is
    /// no owner's ring.
    pub(crate) fn push(&self, batch: JobBatch<T>) {
        let mut jobs = lock(&self.jobs);
        jobs.append(batch);
        // Release: pairs with the load in `len`: a thread that sees the length finds the jobs.
        self.len.store(jobs.len(), Ordering::Release);
    }

    /// Takes up to `limit` jobs from the front. Any thread.
    pub(crate) fn pop(&self, limit: usize) -> JobBatch<T> {
        let mut batch = JobBatch::new();
        if self.len() == 0 {
            return batch;
        }
        let mut jobs = lock(&self.jobs);
        while batch.len() < limit {
            let Some(job) = jobs.pop() else { break };
            // SAFETY: the queue owned the job, and the batch owns it now.
            unsafe { batch.push(job) };
        }
        let taken = self.taken.load(Ordering::Relaxed) + batch.len() as u64;
        self.taken.store(taken, Ordering::Relaxed);
        self.len.store(jobs.len(), Ordering::Release);
        batch
    }

    /// How many jobs have gone through; a moment old, and `put` may be off by one batch.
    pub(crate) fn counts(&self) -> QueueCounts {
        let len = self.len() as u64;
        let taken = self.taken.load(Ordering::Relaxed);
        let put = taken + len;
        QueueCounts { taken, put }
    }

    /// How many jobs there were a moment ago.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }
}
