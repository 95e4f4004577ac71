//! A broadcast in a group, as one member gets it, and how far that member is behind.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// How far a member is behind.
#[derive(Default)]
pub(super) struct Gauge {
    pub(super) unhandled: AtomicUsize,
    pub(super) missed: AtomicUsize,
}

/// A broadcast, as one member gets it. It counts as unhandled until it is dropped.
pub struct Broadcast<T> {
    value: Arc<T>,
    /// None if nobody asks how far the member is behind.
    gauge: Option<Arc<Gauge>>,
    missed: usize,
}

impl<T> Broadcast<T> {
    pub(super) fn new(value: &Arc<T>, gauge: Option<&Arc<Gauge>>) -> Broadcast<T> {
        let missed = gauge.map_or(0, |gauge| {
            // Relaxed, here and in `drop`: counts, which guard no other memory.
            gauge.unhandled.fetch_add(1, Ordering::Relaxed);
            gauge.missed.swap(0, Ordering::Relaxed)
        });
        Broadcast {
            value: value.clone(),
            gauge: gauge.cloned(),
            missed,
        }
    }

    /// How many broadcasts the member missed between the one before and this one.
    pub fn missed(&self) -> usize {
        self.missed
    }
}

impl<T> Drop for Broadcast<T> {
    fn drop(&mut self) {
        if let Some(gauge) = &self.gauge {
            gauge.unhandled.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Deref for Broadcast<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Broadcast<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast")
            .field("value", &self.value)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}
