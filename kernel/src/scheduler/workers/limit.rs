//! The process limit: how many counted jobs may live at once.
//!
//! All threads share the number of free places. A worker takes places in batches, so that a spawn or an end touches
//! only what the worker owns. Below a certain limit a batch is one place, so that a small limit is exact; a large
//! limit may refuse up to 512 processes per worker too early.

use crate::sys::{AtomicUsize, Ordering};

/// Below this limit every process is counted one by one.
const EXACT_BELOW: usize = 1 << 16;
const BATCH: usize = 256;

/// The shared part.
pub(crate) struct Limit {
    free: AtomicUsize,
    limit: usize,
}

/// The process limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached;

impl Limit {
    pub(crate) fn new(limit: usize) -> Limit {
        Limit {
            free: AtomicUsize::new(limit),
            limit,
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How many places are free, not counting those that workers hold.
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// How many places a worker holds.
    fn keep(&self) -> usize {
        match self.limit < EXACT_BELOW {
            true => 0,
            false => BATCH,
        }
    }

    /// Takes a place for one process, from those that the worker holds if there are any.
    ///
    /// # Errors
    /// If no place is free.
    #[inline]
    pub(crate) fn take_one(&self, held: &mut usize) -> Result<(), Reached> {
        if *held == 0 {
            *held = self.take(1 + self.keep())?;
        }
        *held -= 1;
        Ok(())
    }

    /// Gives a place back to those that the worker holds.
    #[inline]
    pub(crate) fn give_back(&self, held: &mut usize) {
        *held += 1;
        let keep = self.keep();
        if *held > 2 * keep {
            self.put(*held - keep);
            *held = keep;
        }
    }

    /// Takes up to `most` places, and at least one.
    pub(crate) fn take(&self, most: usize) -> Result<usize, Reached> {
        // Relaxed: a count, which guards no other memory.
        let before = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                (free > 0).then(|| free - free.min(most))
            });
        before.map(|free| free.min(most)).map_err(|_| Reached)
    }

    /// Gives places back.
    pub(crate) fn put(&self, spare_admissions: usize) {
        self.free.fetch_add(spare_admissions, Ordering::Relaxed);
    }
}
