//! A runtime's clock, for its timers: the system's monotonic clock, or a virtual one.

use std::time::{Duration, Instant};

use crate::sys::{AtomicU64, Ordering};

/// One tick of the timer wheels, and the time after which another worker takes overdue work.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// A clock; ticks are counted from its start.
pub(crate) struct Clock {
    start: Instant,
    /// By how many ticks a virtual clock was advanced since the start; unused by a real one. Nanoseconds would
    /// overflow after 584 years.
    moved: AtomicU64,
    kind: ClockKind,
}

/// What advances the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// The system.
    Real,
    /// The test runtime, when nothing can run before the next deadline.
    Virtual,
}

impl Clock {
    pub(crate) fn new(kind: ClockKind) -> Clock {
        Clock {
            start: Instant::now(),
            moved: AtomicU64::new(0),
            kind,
        }
    }

    pub(crate) fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The present. Costs 35 to 50 ns on a real clock: too much for each message.
    pub(crate) fn now(&self) -> Instant {
        match self.kind {
            ClockKind::Real => Instant::now(),
            ClockKind::Virtual => self.start + since_start(self.moved.load(Ordering::Acquire)),
        }
    }

    /// The tick that contains `instant`.
    pub(crate) fn tick_at(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(since / TICK.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The first tick that begins at or after `instant`.
    pub(crate) fn tick_after(&self, instant: Instant) -> u64 {
        // In parts: a 128-bit division costs more than everything else that an insertion does.
        let since = instant.saturating_duration_since(self.start);
        // The bound keeps the product from overflowing; it is later than 290 million years.
        let whole = since.as_secs().min(u64::MAX / 2_000) * 1_000;
        whole + u64::from(since.subsec_nanos().div_ceil(1_000_000))
    }

    /// When `tick` begins; at most a century after the start.
    pub(crate) fn start_of(&self, tick: u64) -> Instant {
        let century = 100 * 365 * 24 * 3600 * 1000;
        self.start + since_start(tick.min(century))
    }

    /// Advances a virtual clock to the beginning of `tick`.
    pub(crate) fn move_to(&self, tick: u64) {
        self.moved.fetch_max(tick, Ordering::AcqRel);
    }
}

/// The time from the clock's start to the beginning of `tick`. Even `u64::MAX` ticks after the start are an instant.
fn since_start(tick: u64) -> Duration {
    const { assert!(TICK.as_nanos() == 1_000_000, "a tick is a millisecond") };
    Duration::from_millis(tick)
}
