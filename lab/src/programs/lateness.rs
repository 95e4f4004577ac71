//! How late many timers are whose deadlines are spread over two seconds, but not in the order of their numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time over which deadlines are spread, in nanoseconds.
pub const SPREAD_NS: u64 = 2_000_000_000;
/// Latenesses are counted in steps of ten microseconds, up to a second and above.
const PLACES: usize = 100_000;
const PLACE_US: u128 = 10;

/// The deadlines, and a count for each lateness.
#[derive(Debug)]
pub struct Lateness99 {
    start: Instant,
    pending: usize,
    counts: Vec<AtomicU64>,
}

impl Lateness99 {
    /// So many timers. The first deadline comes after all of them have been started. It lives until the program ends.
    #[must_use]
    pub fn leak(pending: usize) -> &'static Self {
        let starting = Duration::from_micros(2) * u32::try_from(pending).unwrap_or(u32::MAX);
        let new = Self {
            start: Instant::now() + Duration::from_millis(500) + starting,
            pending,
            counts: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        };
        Box::leak(Box::new(new))
    }

    /// The deadline of the timer with this number.
    #[must_use]
    pub fn deadline(&self, index: usize) -> Instant {
        let pending = self.pending as u64;
        let place = (index as u64).wrapping_mul(7_919) % pending;
        self.start + Duration::from_nanos(place * SPREAD_NS / pending)
    }

    /// A timer runs.
    pub fn count(&self, deadline: Instant) {
        let late = Instant::now().saturating_duration_since(deadline);
        let place = usize::try_from(late.as_micros() / PLACE_US).unwrap_or(PLACES);
        self.counts[place.min(PLACES - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether every timer has run.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let counts = self
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        counts.sum::<u64>() == self.pending as u64
    }

    /// The lateness in microseconds that 99 of 100 do not exceed.
    #[must_use]
    pub fn microseconds(&self) -> f64 {
        let mut left = self.pending as u64 / 100;
        for (place, count) in self.counts.iter().enumerate().rev() {
            let count = count.load(Ordering::Relaxed);
            if count > left {
                return (place as u64 + 1) as f64 * PLACE_US as f64;
            }
            left -= count;
        }
        0.0
    }
}
