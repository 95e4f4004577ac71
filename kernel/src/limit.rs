//! The process limit: how many counted jobs may live at once.
//!
//! What is free is a number that all threads share; a worker takes from it in batches, so that
//! spawning and ending touch only what the worker owns. Batches are single where the limit is small,
//! so that a small limit is exact; a large one may refuse up to 512 processes a worker too early.

use crate::{
    context,
    job::Header,
    shared::{self, Shared},
    sys::{AtomicUsize, Ordering},
};

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
    pub(crate) fn keep(&self) -> usize {
        match self.limit < EXACT_BELOW {
            true => 0,
            false => BATCH,
        }
    }

    /// Takes up to `most` places; at least one.
    fn take(&self, most: usize) -> Result<usize, Reached> {
        // Relaxed: it is a count, and guards no other memory.
        let before = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                (free > 0).then(|| free - free.min(most))
            });
        before.map(|free| free.min(most)).map_err(|_| Reached)
    }

    /// Gives places back.
    pub(crate) fn put(&self, places: usize) {
        self.free.fetch_add(places, Ordering::Relaxed);
    }
}

/// Takes a place for one process that is about to be spawned.
#[inline]
pub(crate) fn count(shared: &Shared) -> Result<(), Reached> {
    context::with(|cx| {
        if let Some((worker, epoch)) = cx.worker_of(shared.id()) {
            if let Ok(mut inside) = worker.gate.enter(epoch) {
                if inside.places == 0 {
                    inside.places = shared.limit.take(1 + shared.limit.keep())?;
                }
                inside.places -= 1;
                return Ok(());
            }
            cx.lose();
        }
        shared.limit.take(1).map(|_| ())
    })
}

/// Gives back the place of a job whose future is gone, before anyone can see that the job is done. Any
/// thread.
#[inline]
pub(crate) fn uncount(job: &Header) {
    if !job.is_counted() {
        return;
    }
    let here = context::here();
    let place = here.worker_of(job.runtime_if_not_local());
    if let (Some((worker, epoch)), Some(shared)) = (place, here.shared()) {
        if let Ok(mut inside) = worker.gate.enter(epoch) {
            inside.places += 1;
            let keep = shared.limit.keep();
            if inside.places > 2 * keep {
                shared.limit.put(inside.places - keep);
                inside.places = keep;
            }
            return;
        }
        here.lose();
    }
    if let Some(shared) = shared::find(job.runtime()) {
        shared.limit.put(1);
    }
}
