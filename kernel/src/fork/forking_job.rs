//! The job that runs a root fork, which other threads ask for.
//!
//! The job is alive while the root fork lasts, and may be freed as soon as that has ended. So a thread that reads the
//! job counts itself among the readers first, and the end of the root fork waits until no thread reads it. Either the
//! reader's load of `active` sees that the root fork has ended, or the end sees the reader: each stores, then passes a
//! full fence, then loads.
//!
//! The thread of the root fork calls `begin` and `end`, any thread the rest.

use std::ptr::{self, NonNull};

use crate::sys::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, barrier, yield_now};

/// See the head of this file. `T` is the job's header.
pub(crate) struct ForkingJob<T> {
    /// Whether there is a root fork.
    active: AtomicBool,
    /// Null on a foreign thread.
    job: AtomicPtr<T>,
    readers: AtomicUsize,
}

impl<T> ForkingJob<T> {
    pub(crate) fn new() -> ForkingJob<T> {
        ForkingJob {
            active: AtomicBool::new(false),
            job: AtomicPtr::new(ptr::null_mut()),
            readers: AtomicUsize::new(0),
        }
    }

    /// A root fork begins, run by `job`, which stays alive until [`end`](ForkingJob::end) has returned.
    pub(crate) fn begin(&self, job: Option<NonNull<T>>) {
        let job = job.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.job.store(job, Ordering::Relaxed);
        // Release: pairs with the loads in `is_active` and `with`.
        self.active.store(true, Ordering::Release);
    }

    /// The root fork has ended. Waits while another thread reads the job, which takes a few instructions.
    pub(crate) fn end(&self) {
        self.active.store(false, Ordering::Release);
        if !self.job.load(Ordering::Relaxed).is_null() {
            barrier::full();
            // Acquire: pairs with the decrement in `with`. The reader's accesses come before the job is freed.
            while self.readers.load(Ordering::Acquire) > 0 {
                yield_now();
            }
        }
        self.job.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// The address of the job, which may have ended, to compare it with another one. Null if there is none.
    pub(crate) fn address(&self) -> *mut T {
        self.job.load(Ordering::Relaxed)
    }

    /// What `read` makes of the job; none if no job runs a root fork here. The job is alive until `read` returns, which
    /// must be soon: the root fork's thread may wait for it.
    pub(crate) fn with<R>(&self, read: impl FnOnce(NonNull<T>) -> R) -> Option<R> {
        self.readers.fetch_add(1, Ordering::Relaxed);
        barrier::full();
        let job = match self.is_active() {
            true => self.address(),
            false => ptr::null_mut(),
        };
        let answer = NonNull::new(job).map(read);
        self.readers.fetch_sub(1, Ordering::Release);
        answer
    }
}
