//! Lazy jobs: code that a worker is given to run, and that becomes a job only if somebody else than its joiner wants
//! it.
//!
//! A recursion that forks in two creates a thread for each half, and joins most of them on the same worker. Such a
//! thread is a place in a list of its worker until its joiner takes it back, and then runs as a call. Only if its
//! creator waits, or another worker has nothing to do, is a job made of it ([`push_lazy`](crate::push_lazy)). The list
//! is behind the worker's lock, which costs its owner no locked operation; a thief pays for both.
//!
//! After Mohr, Kranz and Halstead, "Lazy Task Creation" (1991), where a thief makes the task, too.
//!
//! # Safety
//! - *linked*: the links of a lazy job, and where it is, are changed only by whoever is inside the lock of the worker
//!   that has it, or will have it.
//! - *alive*: a lazy job stays where it is while it is in a list.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Makes a job of code that was taken out of its list, and tells its joiner.
///
/// # Safety
/// The code was taken out by the caller, and is still in its place.
pub type MakeJob = unsafe fn(*const LazyJob);

/// What stands for the code. It belongs to the record of whoever joins it.
#[derive(Debug)]
pub struct LazyJob {
    next: Cell<*const LazyJob>,
    previous: Cell<*const LazyJob>,
    make: Cell<Option<MakeJob>>,
    /// The number of the worker that has it, and one more; zero: none has.
    place: AtomicUsize,
}

impl LazyJob {
    /// In no list.
    #[inline(always)]
    pub const fn new() -> LazyJob {
        LazyJob {
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
            make: Cell::new(None),
            place: AtomicUsize::new(0),
        }
    }

    /// The worker that has it. Exact for whoever is inside that worker's lock; elsewhere a moment old.
    #[inline(always)]
    pub(crate) fn place(&self) -> Option<usize> {
        // Relaxed: the locks order it.
        self.place.load(Ordering::Relaxed).checked_sub(1)
    }

    /// What makes a job of it. For whoever has taken it out.
    pub(crate) fn make(&self) -> Option<MakeJob> {
        self.make.get()
    }
}

impl Default for LazyJob {
    fn default() -> LazyJob {
        LazyJob::new()
    }
}

/// The lazy jobs of one worker, from the oldest to the newest.
pub(crate) struct LazyJobs {
    first: *const LazyJob,
    last: *const LazyJob,
}

// SAFETY: *linked*: whoever is inside the lock.
unsafe impl Send for LazyJobs {}

/// Lazy jobs that were taken out of a list together, the oldest first.
pub(crate) struct TakenLazyJobs(*const LazyJob);

impl LazyJobs {
    pub(crate) const fn new() -> LazyJobs {
        LazyJobs {
            first: ptr::null(),
            last: ptr::null(),
        }
    }

    /// Adds the newest, for the worker with this number.
    ///
    /// # Safety
    /// *Alive*; it is in no list.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, lazy: &LazyJob, make: MakeJob, worker: usize) {
        lazy.make.set(Some(make));
        lazy.next.set(ptr::null());
        lazy.previous.set(self.last);
        // SAFETY: *linked*, *alive*.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(lazy),
            None => self.first = lazy,
        }
        self.last = lazy;
        lazy.place.store(worker + 1, Ordering::Relaxed);
    }

    /// Takes one that is in this list.
    ///
    /// # Safety
    /// It is.
    #[inline(always)]
    pub(crate) unsafe fn remove(&mut self, lazy: &LazyJob) {
        let (next, previous) = (lazy.next.get(), lazy.previous.get());
        // SAFETY: *linked*, *alive*.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(previous),
            None => self.last = previous,
        }
        // SAFETY: as above.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => self.first = next,
        }
        lazy.place.store(0, Ordering::Relaxed);
    }

    /// Takes the `most` oldest, and returns how many these are.
    pub(crate) fn take_oldest(&mut self, most: usize) -> (TakenLazyJobs, usize) {
        let first = self.first;
        let mut count = 0;
        // SAFETY: *linked*, *alive*.
        while let Some(lazy) = unsafe { self.first.as_ref() }
            && count < most
        {
            count += 1;
            self.first = lazy.next.get();
            lazy.place.store(0, Ordering::Relaxed);
            if count == most {
                lazy.next.set(ptr::null());
            }
        }
        // SAFETY: as above.
        match unsafe { self.first.as_ref() } {
            Some(first) => first.previous.set(ptr::null()),
            None => self.last = ptr::null(),
        }
        let taken = if count == 0 { ptr::null() } else { first };
        (TakenLazyJobs(taken), count)
    }
}

impl Iterator for TakenLazyJobs {
    type Item = *const LazyJob;

    fn next(&mut self) -> Option<*const LazyJob> {
        // SAFETY: *alive*: its joiner waits for whoever has taken it.
        let lazy = unsafe { self.0.as_ref() }?;
        self.0 = lazy.next.get();
        Some(lazy)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn no_job(_: *const LazyJob) {}

    fn numbers(list: &mut LazyJobs, all: &[LazyJob], most: usize) -> Vec<usize> {
        let (taken, count) = list.take_oldest(most);
        let place = |it| all.iter().position(|lazy| ptr::eq(lazy, it)).unwrap();
        let numbers: Vec<_> = taken.map(place).collect();
        assert_eq!(numbers.len(), count);
        assert!(numbers.iter().all(|&number| all[number].place().is_none()));
        numbers
    }

    #[test]
    fn any_is_removed_and_the_oldest_are_taken_first() {
        let all: [LazyJob; 7] = std::array::from_fn(|_| LazyJob::new());
        let mut list = LazyJobs::new();
        for lazy in &all {
            // SAFETY: it stays, and is in no list.
            unsafe { list.push(lazy, no_job, 3) };
            assert_eq!(lazy.place(), Some(3));
        }
        for number in [6, 0, 3] {
            // SAFETY: it is in the list.
            unsafe { list.remove(&all[number]) };
        }
        assert_eq!(numbers(&mut list, &all, 2), [1, 2]);
        // SAFETY: it was taken out.
        unsafe { list.push(&all[0], no_job, 0) };
        assert_eq!(numbers(&mut list, &all, usize::MAX), [4, 5, 0]);
        assert_eq!(numbers(&mut list, &all, usize::MAX), []);
        // SAFETY: as above.
        unsafe { list.push(&all[2], no_job, 0) };
        assert_eq!(numbers(&mut list, &all, 1), [2]);
    }
}
