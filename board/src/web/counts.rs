//! What the server has counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the durations that are told apart, in microseconds.
pub(crate) const BOUNDS: [u64; 8] = [
    100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// What the server has counted since it began.
#[derive(Default)]
pub(crate) struct Counts {
    /// Answers by the first digit of their status.
    by_class: [AtomicU64; 6],
    /// Answers by duration: each counter has those above the bound before it, up to its own; the last has all longer
    /// ones.
    by_duration: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The counts at about one moment.
pub(crate) struct Counted {
    pub(crate) by_class: [u64; 6],
    pub(crate) by_duration: [u64; BOUNDS.len() + 1],
    pub(crate) total: Duration,
}

impl Counts {
    /// Counts an answer.
    pub(crate) fn count(&self, status: u16, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = usize::from(status / 100).min(self.by_class.len() - 1);
        let bound = BOUNDS
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(BOUNDS.len());
        self.by_class[class].fetch_add(1, Ordering::Relaxed);
        self.by_duration[bound].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counted {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            by_class: self.by_class.each_ref().map(load),
            by_duration: self.by_duration.each_ref().map(load),
            total: Duration::from_micros(load(&self.micros)),
        }
    }
}
