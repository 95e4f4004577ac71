//! A runtime's clock, for its timers: the system's monotonic clock, or a virtual one.
//!
//! Timers count in steps, which are so short that a sleep ends when it should, and not a part of a tick later. A
//! virtual clock moves by whole ticks only, so that what is due in one tick happens at once.

use std::time::{Duration, Instant};

use crate::sys::{AtomicU64, Ordering};

/// A tick: the time after which another worker takes overdue work, and within which a busy worker looks around.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// How many steps of the timer wheels are in a tick: the slots of a wheel's lowest level.
pub(crate) const STEPS_PER_TICK: u64 = 64;
const NS_PER_STEP: u32 = 15_625;
const STEPS_PER_SECOND: u64 = 64_000;

/// A clock; steps are counted from its start.
pub(crate) struct Clock {
    start: Instant,
    /// By how many steps a virtual clock was advanced since the start; unused by a real one. Nanoseconds would
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

    /// The step that contains `instant`.
    pub(crate) fn step_at(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start);
        whole_steps(since) + u64::from(since.subsec_nanos() / NS_PER_STEP)
    }

    /// The first step that begins at or after `instant`; on a virtual clock the first of a tick.
    #[inline]
    pub(crate) fn step_after(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start);
        let step = whole_steps(since) + u64::from(since.subsec_nanos().div_ceil(NS_PER_STEP));
        match self.kind {
            ClockKind::Real => step,
            ClockKind::Virtual => step.next_multiple_of(STEPS_PER_TICK),
        }
    }

    /// When `step` begins; at most a century after the start.
    pub(crate) fn start_of(&self, step: u64) -> Instant {
        let century = 100 * 365 * 24 * 3600 * STEPS_PER_SECOND;
        self.start + since_start(step.min(century))
    }

    /// Advances a virtual clock to the first tick that begins at `step` or later.
    pub(crate) fn move_to(&self, step: u64) {
        let step = step.next_multiple_of(STEPS_PER_TICK);
        self.moved.fetch_max(step, Ordering::AcqRel);
    }
}

/// The steps in the whole seconds of `since`.
// In parts: a 128-bit division costs more than everything else that an insertion does.
#[inline]
fn whole_steps(since: Duration) -> u64 {
    // The bound keeps the product from overflowing; it is later than four million years.
    since.as_secs().min(u64::MAX / (2 * STEPS_PER_SECOND)) * STEPS_PER_SECOND
}

/// The time from the clock's start to the beginning of `step`. Even `u64::MAX` steps after the start are an instant.
fn since_start(step: u64) -> Duration {
    const { assert!(TICK.as_nanos() == STEPS_PER_TICK as u128 * NS_PER_STEP as u128) };
    const { assert!(STEPS_PER_SECOND * NS_PER_STEP as u64 == 1_000_000_000) };
    let part = (step % STEPS_PER_SECOND) as u32;
    Duration::new(step / STEPS_PER_SECOND, part * NS_PER_STEP)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_follows_an_instant_begins_at_it_or_less_than_a_step_later() {
        let clock = Clock::new(ClockKind::Real);
        let step = Duration::from_nanos(NS_PER_STEP.into());
        for nanoseconds in [
            0,
            1,
            15_624,
            15_625,
            15_626,
            999_999_999,
            1_000_000_000,
            5_000_000_001,
        ] {
            let due = clock.start + Duration::from_nanos(nanoseconds);
            let after = clock.step_after(due);
            let late = clock.start_of(after).duration_since(due);
            assert!(late < step, "{nanoseconds} ns: {late:?}");
            assert_eq!(clock.step_at(clock.start_of(after)), after);
            assert!(after == 0 || clock.start_of(after - 1) < due);
        }
    }

    #[test]
    fn a_virtual_clock_knows_ticks_only() {
        let clock = Clock::new(ClockKind::Virtual);
        assert_eq!(clock.step_after(clock.start + TICK), STEPS_PER_TICK);
        let soon = clock.start + Duration::from_nanos(1);
        assert_eq!(clock.step_after(soon), STEPS_PER_TICK);
        assert_eq!(clock.step_after(soon + TICK), 2 * STEPS_PER_TICK);
        clock.move_to(1);
        assert_eq!(clock.now(), clock.start + TICK);
        clock.move_to(STEPS_PER_TICK);
        assert_eq!(clock.now(), clock.start + TICK);
    }
}
