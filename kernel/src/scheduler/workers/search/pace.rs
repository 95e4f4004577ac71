//! How soon the next look is due, by the pace of the jobs since the last one.

use std::time::Duration;

use crate::timer::clock::TICK;

/// The most jobs that run between two looks.
const LOOK_EVERY_MAX: u32 = 64;

/// How many jobs run before the next look. Since the last one `every` jobs took `took`: after more than half a tick
/// half as many, after less than an eighth of a tick twice as many, else as many.
pub(super) fn next_look_after(every: u32, took: Duration) -> u32 {
    if took > TICK / 2 {
        (every / 2).max(1)
    } else if took < TICK / 8 {
        (every * 2).min(LOOK_EVERY_MAX)
    } else {
        every
    }
}
