//! How many timers of a worker were cancelled, and are still in its wheel or among its arrivals: counts of timers and
//! sweeps rely on it.
//!
//! - A cancel is counted at the worker that the timer names, and the end of the timer at the worker in whose list it
//!   ends. The two may come in either order.
//! - A callback that is cancelled when it is ready is in no wheel, and is not counted (`Entry::take`).
//! - For a sleep the two workers are the same. A callback that becomes ready while it is cancelled may move to another
//!   worker in between, so only the sum over all workers is exact. What is wrong at one worker is set apart as soon as
//!   it shows: when the worker's number would fall below zero, or when a sweep finds fewer than were counted. So no
//!   worker sweeps for nothing again and again, and none puts off its sweep for timers that ended elsewhere.

#![allow(unsafe_code)]

use crate::{
    sys::{AtomicIsize, Ordering},
    timer::{entry::EntryPtr, wheel::Wheel},
};

/// A worker does not sweep its wheel for fewer cancelled timers than this.
const SWEEP_AT_LEAST: usize = 64;

/// The numbers of one worker. Relaxed everywhere: they are counts, and guard no other memory.
pub(crate) struct CancelledTimers {
    /// Those that the worker believes to be in its wheel. Below zero for a moment only.
    here: AtomicIsize,
    /// What was set apart.
    apart: AtomicIsize,
}

impl CancelledTimers {
    pub(crate) fn new() -> CancelledTimers {
        CancelledTimers {
            here: AtomicIsize::new(0),
            apart: AtomicIsize::new(0),
        }
    }

    /// Counts timers that were cancelled but not unlinked, or that left a list after their cancel. Returns the number.
    pub(crate) fn count(&self, change: isize) -> isize {
        let now = self.here.fetch_add(change, Ordering::Relaxed) + change;
        if now < 0 {
            let before = self.here.fetch_max(0, Ordering::Relaxed);
            self.apart.fetch_add(before.min(0), Ordering::Relaxed);
        }
        now
    }

    /// Sweeps the worker's wheel if that holds many cancelled timers, for its size. What is swept goes to `out`. Inside
    /// the worker's lock.
    pub(crate) fn sweep_if_many(&self, wheel: &mut Wheel, out: &mut impl FnMut(EntryPtr)) {
        let here = self.here.load(Ordering::Relaxed);
        let counted = usize::try_from(here).unwrap_or(0);
        let pending = wheel.pending();
        if counted > SWEEP_AT_LEAST && counted > pending / 2 {
            // SAFETY: entries in the wheel are alive.
            let unwanted = |entry: EntryPtr| unsafe { entry.get() }.is_cancelled();
            wheel.sweep(unwanted, out);
            self.note_swept(here, pending - wheel.pending());
        }
    }

    /// A sweep before which `counted` were counted has found this many.
    fn note_swept(&self, counted: isize, found: usize) {
        let found = isize::try_from(found).expect("a count of entries in memory fits");
        let missing = (counted - found).max(0);
        self.here.fetch_sub(missing, Ordering::Relaxed);
        self.apart.fetch_add(missing, Ordering::Relaxed);
    }

    fn sum(&self) -> isize {
        self.here.load(Ordering::Relaxed) + self.apart.load(Ordering::Relaxed)
    }

    /// How many cancelled timers are in the wheels and among the arrivals of all these `workers`, which are those of
    /// one runtime.
    pub(crate) fn sum_of<'a>(workers: impl Iterator<Item = &'a CancelledTimers>) -> usize {
        let all = workers.map(CancelledTimers::sum).sum::<isize>();
        usize::try_from(all).unwrap_or(0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_ends_at_another_worker_is_set_apart_and_the_sum_is_exact() {
        let [from, to] = [CancelledTimers::new(), CancelledTimers::new()];
        assert_eq!(from.count(100), 100);
        to.count(-100);
        assert_eq!(to.count(1), 1, "the next cancel counts");
        assert_eq!(from.sum() + to.sum(), 1);
        from.note_swept(100, 0);
        assert_eq!(from.count(1), 1, "no further sweep for nothing");
        assert_eq!(from.sum() + to.sum(), 2);
    }
}
