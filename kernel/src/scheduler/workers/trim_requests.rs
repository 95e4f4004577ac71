//! Which trim was requested last, and which one each worker has seen: a trim waits for the sleepers that it woke, and
//! for no other worker.
//!
//! - A trim takes the next number, and all sleepers from their list. It wakes them, and waits until each of them has
//!   seen that number or a later one.
//! - A worker that looks around, or that wakes, before it does anything else, compares the last number with the one
//!   that its thread has seen. If they differ, it gives back the thread's caches, then notes the number. A thread that
//!   gets a worker notes what the thread has seen.
//! - A worker that falls asleep compares the numbers after it has prepared its sleep, and does not park if they differ.
//!
//! No sleeper is left out: a trim takes both its number and the list under the list's lock, and a sleep is prepared
//! under that lock, too. If the sleep is prepared first, the trim takes the sleeper, even if it has seen the number and
//! does not park. Otherwise the worker sees the number. So all accesses to the last number are relaxed.

use crate::{
    queue::sleepers::Sleepers,
    sys::{AtomicUsize, Ordering},
};

/// The trims of a runtime.
pub(crate) struct TrimRequests {
    /// The number of the last trim; the first one is 1. Counted up by any thread.
    last: AtomicUsize,
    /// For each worker the last trim that its owner has seen. Written by the owner.
    seen: Box<[AtomicUsize]>,
}

/// A trim that waits for the sleepers that it woke.
#[must_use]
pub(crate) struct WaitingTrim {
    number: usize,
    workers: Vec<usize>,
}

impl TrimRequests {
    /// For `workers` workers, and no trim yet.
    pub(crate) fn new(workers: usize) -> TrimRequests {
        TrimRequests {
            last: AtomicUsize::new(0),
            seen: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Requests a trim, and takes all sleepers for `wake`. Any thread.
    pub(crate) fn request<S>(
        &self,
        sleepers: &Sleepers<S>,
        mut wake: impl FnMut(S),
    ) -> WaitingTrim {
        let next = || self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (number, woken) = sleepers.take_all_after(next);
        let workers = woken.into_iter().map(|(worker, sleeper)| {
            wake(sleeper);
            worker
        });
        WaitingTrim {
            number,
            workers: workers.collect(),
        }
    }

    /// The number of the last trim.
    pub(crate) fn last(&self) -> usize {
        self.last.load(Ordering::Relaxed)
    }

    /// The thread that owns `worker` has given back what it cached before the trim `number`. By the owner.
    pub(crate) fn note_seen(&self, worker: usize, number: usize) {
        // Pairs with the load in `is_seen`: what was given back is there for the thread that trims.
        self.seen[worker].store(number, Ordering::Release);
    }

    /// Whether every sleeper that `trim` woke has seen it.
    pub(crate) fn is_seen(&self, trim: &WaitingTrim) -> bool {
        let mut woken = trim.workers.iter();
        woken.all(|worker| self.seen[*worker].load(Ordering::Acquire) >= trim.number)
    }
}
