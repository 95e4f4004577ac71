//! The process limit: how many counted jobs may live at once.
//!
//! What is free is a number that all threads share; a worker takes from it in batches, so that
//! spawning and ending touch only what the worker owns. Batches are single where the limit is small,
//! so that a small limit is exact; a large one may refuse up to 512 processes a worker too early.

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

    /// What is left, apart from what workers hold.
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// How many places a worker keeps in hand.
    fn keep(&self) -> usize {
        match self.limit < EXACT_BELOW {
            true => 0,
            false => BATCH,
        }
    }

    /// Takes a place for one process, from those that a worker has in hand if there are some.
    ///
    /// # Errors
    /// If no place is free.
    #[inline]
    pub(crate) fn take_one(&self, in_hand: &mut usize) -> Result<(), Reached> {
        if *in_hand == 0 {
            *in_hand = self.take(1 + self.keep())?;
        }
        *in_hand -= 1;
        Ok(())
    }

    /// Gives a place back, to those that a worker has in hand.
    #[inline]
    pub(crate) fn give_back(&self, in_hand: &mut usize) {
        *in_hand += 1;
        let keep = self.keep();
        if *in_hand > 2 * keep {
            self.put(*in_hand - keep);
            *in_hand = keep;
        }
    }

    /// Takes up to `most` places; at least one.
    pub(crate) fn take(&self, most: usize) -> Result<usize, Reached> {
        // Relaxed: it is a count, and guards no other memory.
        let before = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                (free > 0).then(|| free - free.min(most))
            });
        before.map(|free| free.min(most)).map_err(|_| Reached)
    }

    /// Gives places back.
    pub(crate) fn put(&self, spare_places: usize) {
        self.free.fetch_add(spare_places, Ordering::Relaxed);
    }
}
