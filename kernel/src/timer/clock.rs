//! The time by which a runtime's timers run: the system's monotonic clock, or a virtual one.

use std::time::{Duration, Instant};

use crate::sys::{AtomicU64, Ordering};

/// One tick of the timer wheels, and the time after which a neighbour takes what lies overdue.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// A clock; ticks are counted from its start.
pub(crate) struct Clock {
    start: Instant,
    /// Ticks that a virtual clock has moved since the start; unused by a real one. Ticks and not
    /// nanoseconds, which would end after 584 years.
    moved: AtomicU64,
    kind: ClockKind,
}

/// Who moves the clock.
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

    /// The present. Costs 35 to 50 ns on a real clock: never per message.
    pub(crate) fn now(&self) -> Instant {
        match self.kind {
            ClockKind::Real => Instant::now(),
            ClockKind::Virtual => self.start + since_start(self.moved.load(Ordering::Acquire)),
        }
    }

    /// The tick that `instant` lies in.
    pub(crate) fn tick_at(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(since / TICK.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The first tick that begins at or after `instant`.
    pub(crate) fn tick_after(&self, instant: Instant) -> u64 {
        // By parts: a division of 128 bits costs more than all else that an insertion does.
        let since = instant.saturating_duration_since(self.start);
        let whole = since.as_secs().saturating_mul(1_000);
        whole.saturating_add(u64::from(since.subsec_nanos().div_ceil(1_000_000)))
    }

    /// When `tick` begins; at most a century after the start.
    pub(crate) fn start_of(&self, tick: u64) -> Instant {
        let century = 100 * 365 * 24 * 3600 * 1000;
        self.start + since_start(tick.min(century))
    }

    /// Moves a virtual clock on to the beginning of `tick`.
    pub(crate) fn move_to(&self, tick: u64) {
        self.moved.fetch_max(tick, Ordering::AcqRel);
    }
}

/// The time from the clock's start to the beginning of `tick`. As many ticks as a word counts still
/// make an instant.
fn since_start(tick: u64) -> Duration {
    const { assert!(TICK.as_nanos() == 1_000_000, "a tick is a millisecond") };
    Duration::from_millis(tick)
}
