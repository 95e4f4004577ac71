//! The workloads of units that sleep, `callbacks` and `timers`, which are the same in every rival.
//!
//! A rival says how it starts something that sleeps; sizes, deadlines and the count of latenesses are here.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::programs::slope::line;
use crate::report::print_metrics;

/// How long a sleeper that must never run sleeps.
pub const HOUR: Duration = Duration::from_secs(3600);
/// The time over which deadlines are spread, in nanoseconds.
const SPREAD_NS: u64 = 2_000_000_000;
/// Latenesses are counted in steps of ten microseconds, up to a second and above.
const PLACES: usize = 100_000;
const PLACE_US: u128 = 10;

/// Prints the line through points of a number of sleepers and a resident memory, and ends the program.
pub fn print_line(points: &[(f64, f64)]) -> ! {
    let line = line(points);
    print_metrics(&[
        ("bytes_per_callback", line.slope),
        ("intercept_bytes", line.intercept),
        ("r", line.r2.max(0.0).sqrt()),
        ("r2", line.r2),
    ])
}

/// How late this many timers were, whose deadlines are spread over two seconds, but not in the order of
/// their numbers.
#[derive(Debug)]
pub struct Lateness99 {
    start: Instant,
    pending: usize,
    counts: Vec<AtomicU64>,
}

impl Lateness99 {
    /// The first deadline should come after all timers have been started.
    pub fn leak(pending: usize) -> &'static Self {
        let lead = Duration::from_millis(500) + Duration::from_micros(2) * pending as u32;
        let new = Self {
            start: Instant::now() + lead,
            pending,
            counts: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        };
        Box::leak(Box::new(new))
    }

    /// The deadline of the timer with this number.
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
    pub fn is_complete(&self) -> bool {
        let counts = self.counts.iter();
        counts
            .map(|count| count.load(Ordering::Relaxed))
            .sum::<u64>()
            == self.pending as u64
    }

    /// The lateness in microseconds that 99 of 100 do not exceed.
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

/// The data and the work of something that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Captured([usize; 2]);

impl Captured {
    /// Hides the captured values from the compiler.
    pub fn new(index: usize) -> Self {
        Self(black_box([index; 2]))
    }

    /// Uses the captured values.
    pub fn run(self) {
        black_box(self.0);
    }
}
