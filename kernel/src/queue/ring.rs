//! The ring of one worker, its run queue: a bounded queue that the owner fills, and that the owner and thieves empty.
//!
//! Invariants:
//! - `head <= tail <= head + CAPACITY`; both only grow, and 64 bits of them never wrap.
//! - The owner alone writes `tail` and the slots in `tail..head + CAPACITY`.
//! - A slot in `head..tail` holds a job; the thread that moves `head` past it owns that job.
//!
//! Whether thieves take is decided outside the ring ([`crate::queue::sharing`]).
//!
//! The owner takes one job and a thief half of them, at most [`BATCH`], both by one compare-and-swap of `head`. What
//! they read before it is valid only if it succeeds. The design is that of Go's local run queue, except that the
//! counters do not wrap, so that a thief that was preempted for hours cannot succeed.
//!
//! The owner also takes the last job, if its creator joins it ([`RingOwner::pop_last`]).
//!
//! If there is one worker, nobody steals, and its owner takes a job by a store ([`alone`]).
//!
//! Rejected: a full ring gives half of its jobs to the injector, as in Go. That lost the order of the jobs: with 10,000
//! runnable jobs, timers waited for 120 ms. New jobs go to the overflow queue instead.

use std::{ptr, sync::Arc};

use crate::memory::cache_padded::CachePadded;
use crate::queue::queue_counts::QueueCounts;
use crate::sys::{AtomicPtr, AtomicU64, Ordering};

/// How many jobs fit: 8 KiB for each worker. One that does not fit goes through the overflow queue and the injector, so
/// it is linked, unlinked and put into a ring as well. Models use fewer, so that overflow happens within few steps.
pub(crate) const CAPACITY: usize = if cfg!(any(loom, miri)) { 4 } else { 1024 };

/// How many jobs go into a ring at once, from another ring or from the injector. It bounds the place on the stack of a
/// thief, and what goes to one thief while others may come.
pub(crate) const BATCH: usize = if cfg!(any(loom, miri)) { 2 } else { 128 };
const _: () = assert!(BATCH <= CAPACITY / 2);

/// How many jobs a take of the last one moves at most. All of them and their new places fit.
const MOST_MOVED: u64 = if CAPACITY > 64 { 32 } else { 1 };
const _: () = assert!(2 * MOST_MOVED < CAPACITY as u64);

// In this order: `is_alone` is read with `head`.
#[repr(C)]
struct RingShared<T> {
    /// The next job to take. Written by the owner and by thieves.
    head: AtomicU64,
    /// The next slot to fill. Written by the owner.
    tail: AtomicU64,
    /// Whether nobody takes but the owner.
    is_alone: bool,
    slots: [AtomicPtr<T>; CAPACITY],
}

/// The end that fills the ring and takes from it. There is only one.
pub(crate) struct RingOwner<T>(Arc<CachePadded<RingShared<T>>>);

/// The end that only takes. There are many.
pub(crate) struct RingThief<T>(Arc<CachePadded<RingShared<T>>>);

/// Both ends of a ring.
pub(crate) type Ends<T> = (RingOwner<T>, RingThief<T>);

/// An empty ring.
pub(crate) fn new<T>() -> Ends<T> {
    with(false)
}

/// An empty ring from which nobody steals: the other end only counts.
pub(crate) fn alone<T>() -> Ends<T> {
    with(true)
}

fn with<T>(is_alone: bool) -> Ends<T> {
    let shared = Arc::new(CachePadded::from(RingShared {
        head: AtomicU64::new(0),
        tail: AtomicU64::new(0),
        is_alone,
        slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
    }));
    (RingOwner(shared.clone()), RingThief(shared))
}

impl<T> RingShared<T> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an index below a small capacity"
    )]
    fn slot(&self, index: u64) -> &AtomicPtr<T> {
        &self.slots[index as usize % CAPACITY]
    }

    /// Takes jobs into `place`, and returns how many. `amount` gets the number of jobs in the ring and returns how many
    /// to take.
    #[expect(clippy::cast_possible_truncation, reason = "at most the capacity")]
    fn take(&self, place: &mut [*mut T], amount: impl Fn(u64) -> u64) -> usize {
        loop {
            // Acquire: pairs with the exchange below, so that `tail` is not older than `head`.
            let head = self.head.load(Ordering::Acquire);
            // Acquire: pairs with the owner's store in `push`; the slots up to it are filled.
            let tail = self.tail.load(Ordering::Acquire);
            let count = amount(tail - head).min(place.len() as u64);
            if count == 0 {
                return 0;
            }
            for offset in 0..count {
                place[offset as usize] = self.slot(head + offset).load(Ordering::Relaxed);
            }
            // Release: the reads above come before the owner's load of `head` that lets it reuse the
            // slots. Acquire: as for the load above.
            let taken =
                self.head
                    .compare_exchange(head, head + count, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                return count as usize;
            }
        }
    }

    /// A hint, unless the owner asks: for a thief that is slow between the two loads it may exceed the capacity.
    #[expect(clippy::cast_possible_truncation, reason = "both are 64 bits")]
    fn len(&self) -> usize {
        // Acquire: as in `take`. The head first, so that it is not above the tail.
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        tail.saturating_sub(head) as usize
    }
}

impl<T> RingOwner<T> {
    /// Puts `job` last. Gives it back if the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, job: *mut T) -> Result<(), *mut T> {
        let tail = self.0.tail.load(Ordering::Relaxed);
        // Acquire: pairs with the exchange in `take`: the thief has read the slot we overwrite.
        let head = self.0.head.load(Ordering::Acquire);
        if tail - head == CAPACITY as u64 {
            return Err(job);
        }
        self.0.slot(tail).store(job, Ordering::Relaxed);
        // Release: pairs with the load in `take`: the slot is filled, and its job is complete.
        self.0.tail.store(tail + 1, Ordering::Release);
        Ok(())
    }

    /// Puts `job` where the next [`push`](RingOwner::push) would, for [`publish`](RingOwner::publish). Nothing is put
    /// there meanwhile. False if the ring is full.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, job: *mut T) -> bool {
        let tail = self.0.tail.load(Ordering::Relaxed);
        // Acquire: as in `push`.
        let has_room = tail - self.0.head.load(Ordering::Acquire) < CAPACITY as u64;
        if has_room {
            self.0.slot(tail).store(job, Ordering::Relaxed);
        }
        has_room
    }

    /// What was [prepared](RingOwner::prepare) is the last job from now on.
    #[inline(always)]
    pub(crate) fn publish(&mut self) {
        let tail = self.0.tail.load(Ordering::Relaxed);
        // Release: as in `push`.
        self.0.tail.store(tail + 1, Ordering::Release);
    }

    /// Takes the first job.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<*mut T> {
        if self.0.is_alone {
            return self.pop_alone();
        }
        let mut place = [ptr::null_mut()];
        (self.0.take(&mut place, |count| count.min(1)) == 1).then_some(place[0])
    }

    /// The same, if nobody steals.
    #[inline(always)]
    fn pop_alone(&mut self) -> Option<*mut T> {
        // Relaxed: the owner alone writes both.
        let head = self.0.head.load(Ordering::Relaxed);
        let is_empty = head == self.0.tail.load(Ordering::Relaxed);
        (!is_empty).then(|| {
            let job = self.0.slot(head).load(Ordering::Relaxed);
            // Release: pairs with the load in `counts`, which reads `tail` after it.
            self.0.head.store(head + 1, Ordering::Release);
            job
        })
    }

    /// Takes `job` if it is the last, for whoever joins what it queued last. Returns how many are before it, or None
    /// if it is not the last, if more than [`MOST_MOVED`] are, or if a thief was faster.
    ///
    /// `tail` never falls, or a thief that has read it could take what is queued there anew. So the owner takes all
    /// jobs, and puts the others behind, in their order.
    pub(crate) fn pop_last(&mut self, job: *mut T) -> Option<u64> {
        let tail = self.0.tail.load(Ordering::Relaxed);
        // Acquire: as in `push`.
        let head = self.0.head.load(Ordering::Acquire);
        let before = (tail - head).checked_sub(1)?;
        if before > MOST_MOVED || self.0.slot(tail - 1).load(Ordering::Relaxed) != job {
            return None;
        }
        // As in `take`.
        let taken = self
            .0
            .head
            .compare_exchange(head, tail, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_err() {
            // A thief has taken older ones.
            return self.pop_last(job);
        }
        for offset in 0..before {
            let moved = self.0.slot(head + offset).load(Ordering::Relaxed);
            self.0.slot(tail + offset).store(moved, Ordering::Relaxed);
        }
        // Release: as in `push`.
        self.0.tail.store(tail + before, Ordering::Release);
        Some(before)
    }

    /// How many jobs there are; thieves can only reduce the number.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> RingThief<T> {
    /// Steals the older half of the jobs, rounded up, or as many as fit into `place`. Returns how many.
    pub(crate) fn steal(&self, place: &mut [*mut T; BATCH]) -> usize {
        debug_assert!(!self.0.is_alone, "nobody steals from this ring");
        self.0.take(place, |count| count.div_ceil(2))
    }

    /// Steals the oldest job.
    pub(crate) fn steal_one(&self) -> Option<*mut T> {
        debug_assert!(!self.0.is_alone, "nobody steals from this ring");
        let mut place = [ptr::null_mut()];
        (self.0.take(&mut place, |count| count.min(1)) == 1).then_some(place[0])
    }

    /// How many jobs there were a moment ago.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many jobs have gone through.
    pub(crate) fn counts(&self) -> QueueCounts {
        // Acquire: as in `take`. The head first, so that it is never above the tail.
        let taken = self.0.head.load(Ordering::Acquire);
        let put = self.0.tail.load(Ordering::Acquire);
        QueueCounts { taken, put }
    }
}
