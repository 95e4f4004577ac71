//! How soon the next look is due, by the pace of the jobs since the last one.

use std::time::Duration;

use crate::timer::clock::TICK;

/// The most jobs that run between two looks.
const LOOK_EVERY_MAX: u32 = 64;

/// How many jobs run before the next look, if `every` ran before this one and took so long: half as many if that was longer
/// than half a tick, and twice as many if it was less than an eighth of a tick.
pub(super) fn next_look_after(every: u32, took: Duration) -> u32 {
    if took > TICK / 2 {
        (every / 2).max(1)
    } else if took < TICK / 8 {
        (every * 2).min(LOOK_EVERY_MAX)
    } else {
        every
    }
}
