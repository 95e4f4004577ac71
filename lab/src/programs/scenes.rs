//! What happens in the demo and when, and how its ticks are counted; the same for Weald and its rivals.
//!
//! Many units each tick once a [`PERIOD`], at fixed instants that are spread over it evenly. A tick that comes a
//! whole period late, or later, replaces those that it has missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two ticks of a unit.
pub const PERIOD: Duration = Duration::from_millis(100);

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A unit blocks its OS thread.
    Blocks,
    /// A unit computes without a wait.
    Computes,
    /// A unit panics.
    Panics,
    /// Two units wait for each other's lock.
    Deadlock,
}

/// All scenes with the share of the whole length after which each begins. The first two overlap.
pub const SCENES: [(f64, Scene); 4] = [
    (0.15, Scene::Blocks),
    (0.3, Scene::Computes),
    (0.6, Scene::Panics),
    (0.75, Scene::Deadlock),
];

/// How long a unit blocks or computes in a demo of this length.
pub fn offence(length: Duration) -> Duration {
    length.mul_f64(0.25)
}

/// The ticks of all units.
#[derive(Debug)]
pub struct Ticks {
    begin: Instant,
    units: u32,
    done: AtomicU64,
    worst_ns: AtomicU64,
}

impl Ticks {
    /// No ticks yet; the first one of `units` units is due at `begin`.
    pub fn new(begin: Instant, units: u32) -> Self {
        Self {
            begin,
            units,
            done: AtomicU64::new(0),
            worst_ns: AtomicU64::new(0),
        }
    }

    /// When the first tick of this unit is due.
    pub fn first(&self, unit: u32) -> Instant {
        self.begin + PERIOD.mul_f64(f64::from(unit) / f64::from(self.units.max(1)))
    }

    /// Counts a tick that was due at `due` and has come, and returns when the next one is due.
    pub fn count(&self, due: Instant) -> Instant {
        let late = due.elapsed();
        let nanoseconds = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.done.fetch_add(1, Ordering::Relaxed);
        if nanoseconds > self.worst_ns.load(Ordering::Relaxed) {
            self.worst_ns.fetch_max(nanoseconds, Ordering::Relaxed);
        }
        let mut next = due + PERIOD;
        while next.elapsed() >= PERIOD {
            next += PERIOD;
        }
        next
    }

    /// The time until the first tick is due.
    pub fn until_first(&self) -> Duration {
        self.begin.saturating_duration_since(Instant::now())
    }

    /// The time since the first tick was due.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// How many ticks have come.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The greatest lateness since the last call.
    pub fn take_worst(&self) -> Duration {
        Duration::from_nanos(self.worst_ns.swap(0, Ordering::Relaxed))
    }
}

/// How many ticks of `units` units are due in this time.
pub fn due(units: u32, elapsed: Duration) -> f64 {
    f64::from(units) * elapsed.as_secs_f64() / PERIOD.as_secs_f64()
}
