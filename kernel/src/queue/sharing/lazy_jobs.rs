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
//! If the system refuses what a job needs, none is made of those behind it either: all of them go into a list of the
//! runtime ([`refused_lazy_jobs`](crate::queue::sharing::refused_lazy_jobs)).
//!
//! # Safety
//! - *linked*: the links of a lazy job, and where it is, are changed only by whoever is inside the lock of the list
//!   that has it, or will have it, or has taken it out.
//! - *alive*: a lazy job stays where it is while it is in a list.

#![allow(unsafe_code)]

use std::{cell::Cell, ptr};

use crate::sys::{AtomicUsize, Ordering};

/// Makes a job of code that was taken out of its list, and tells its joiner. False if the system refuses what the job
/// needs, or if the runtime ends: then nothing has happened, and the caller still has the code.
///
/// # Safety
/// The code was taken out by the caller, and is still in its place.
pub type MakeJob = unsafe fn(*const LazyJob) -> bool;

/// The number of the list of those that were refused what they need. No worker has it.
pub(super) const REFUSED: usize = usize::MAX - 1;

/// What stands for the code. It belongs to the record of whoever joins it.
#[derive(Debug)]
pub struct LazyJob {
    next: Cell<*const LazyJob>,
    previous: Cell<*const LazyJob>,
    make: Cell<Option<MakeJob>>,
    /// The number of the worker that has it, or [`REFUSED`], and one more; zero: nobody has.
    place: AtomicUsize,
}

impl LazyJob {
    /// In no list.
    #[inline(always)]
    pub fn new() -> LazyJob {
        LazyJob {
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
            make: Cell::new(None),
            place: AtomicUsize::new(0),
        }
    }

    /// Whether the system has refused what its job needs, so that the workers try again at times. A moment old.
    pub fn is_refused(&self) -> bool {
        self.place() == Some(REFUSED)
    }

    /// The number of the list that has it. Exact for whoever is inside the lock of that list; elsewhere a moment old.
    #[inline(always)]
    pub(crate) fn place(&self) -> Option<usize> {
        // Relaxed: the locks order it.
        self.place.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Sets what makes a job of it. For whoever has taken it out.
    pub(crate) fn set_make(&self, make: MakeJob) {
        self.make.set(Some(make));
    }
}

impl Default for LazyJob {
    fn default() -> LazyJob {
        LazyJob::new()
    }
}

/// The lazy jobs of one worker, from the oldest to the newest, or those that were refused.
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

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Whether one that is in this list is the oldest.
    #[inline(always)]
    pub(crate) fn is_oldest(&self, lazy: &LazyJob) -> bool {
        ptr::eq(self.first, lazy)
    }

    /// Adds the newest, for the worker with this number.
    ///
    /// # Safety
    /// *Alive*; it is in no list.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, lazy: &LazyJob, make: MakeJob, worker: usize) {
        lazy.make.set(Some(make));
        // SAFETY: the caller's promise.
        unsafe { self.link_last(lazy, worker) };
    }

    /// Adds one, behind all others, to the list with this number.
    ///
    /// # Safety
    /// As for [`push`](LazyJobs::push).
    #[inline(always)]
    pub(super) unsafe fn link_last(&mut self, lazy: &LazyJob, number: usize) {
        lazy.next.set(ptr::null());
        lazy.previous.set(self.last);
        // SAFETY: *linked*, *alive*.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(lazy),
            None => self.first = lazy,
        }
        self.last = lazy;
        lazy.place.store(number + 1, Ordering::Relaxed);
    }

    /// The same, before all others.
    ///
    /// # Safety
    /// As for [`push`](LazyJobs::push).
    pub(super) unsafe fn link_first(&mut self, lazy: &LazyJob, number: usize) {
        lazy.next.set(self.first);
        lazy.previous.set(ptr::null());
        // SAFETY: *linked*, *alive*.
        match unsafe { self.first.as_ref() } {
            Some(first) => first.previous.set(lazy),
            None => self.last = lazy,
        }
        self.first = lazy;
        lazy.place.store(number + 1, Ordering::Relaxed);
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

impl TakenLazyJobs {
    /// One.
    ///
    /// # Safety
    /// *Alive*; the caller has taken it out.
    pub(crate) unsafe fn one(lazy: &LazyJob) -> TakenLazyJobs {
        lazy.next.set(ptr::null());
        TakenLazyJobs(lazy)
    }

    /// Makes jobs of them, up to the first that is refused what it needs. Returns how many it has made, and the rest.
    ///
    /// # Safety
    /// The caller has taken them out, is inside of no lock, and may call what makes jobs of them.
    pub(crate) unsafe fn make(mut self) -> (usize, TakenLazyJobs) {
        let mut made = 0;
        while let Some(lazy) = self.next() {
            // SAFETY: the caller's promise; *alive*.
            if !unsafe { make_one(lazy) } {
                // Its link leads to the others still.
                self.0 = lazy;
                break;
            }
            made += 1;
        }
        (made, self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}

/// Makes a job of one. False if it was refused what it needs.
///
/// # Safety
/// As for [`TakenLazyJobs::make`].
pub(super) unsafe fn make_one(lazy: *const LazyJob) -> bool {
    // SAFETY: *alive*.
    let make = unsafe { &*lazy }.make.get();
    // SAFETY: the caller's promise.
    make.is_none_or(|make| unsafe { make(lazy) })
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

    fn no_job(_: *const LazyJob) -> bool {
        true
    }

    fn refused(_: *const LazyJob) -> bool {
        false
    }

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

    #[test]
    fn jobs_are_made_up_to_the_first_that_is_refused() {
        let all: [LazyJob; 4] = std::array::from_fn(|_| LazyJob::new());
        let mut list = LazyJobs::new();
        for (lazy, make) in all.iter().zip([no_job, no_job, refused, no_job]) {
            // SAFETY: it stays, and is in no list.
            unsafe { list.push(lazy, make, 0) };
        }
        // SAFETY: they were taken out; this makes no job.
        let (made, rest) = unsafe { list.take_oldest(usize::MAX).0.make() };
        assert_eq!(made, 2);
        assert!(rest.eq([&raw const all[2], &raw const all[3]]));
    }
}
