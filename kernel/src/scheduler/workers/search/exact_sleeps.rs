//! How exactly a worker sleeps for its timers: to the step of the clock, unless it would wake too often.
//!
//! A sleep that ends at its deadline costs a wake-up of the thread, some microseconds. With very many timers a worker
//! would wake for nearly each of them. So it sleeps exactly for the first few deadlines of a tick only, and for the
//! next one until the tick is over: it then fires all others of that tick together, at most a tick late.

use std::cell::Cell;

use crate::timer::clock::STEPS_PER_TICK;

/// For how many deadlines in one tick a worker sleeps exactly. By an estimate, all of them together cost it less than
/// a twentieth of a core.
const EXACT_PER_TICK: u32 = 8;

/// The last deadline for which a worker slept, and how many more of the same tick it may sleep for exactly.
#[derive(Default)]
pub(crate) struct ExactSleeps {
    deadline: Cell<u64>,
    end: Cell<u64>,
    left: Cell<u32>,
}

impl ExactSleeps {
    /// The step until which to sleep for this deadline. A sleep that something else ended may begin again, to the same
    /// end.
    pub(crate) fn end_for(&self, deadline: u64) -> u64 {
        let before = self.deadline.replace(deadline);
        if before == deadline {
            return self.end.get();
        }
        if before / STEPS_PER_TICK != deadline / STEPS_PER_TICK {
            self.left.set(EXACT_PER_TICK);
        }
        let end = match self.left.get() {
            0 => (deadline + 1).next_multiple_of(STEPS_PER_TICK),
            left => {
                self.left.set(left - 1);
                deadline
            }
        };
        self.end.set(end);
        end
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_deadlines_of_each_tick_are_slept_for_exactly() {
        let sleeps = ExactSleeps::default();
        for tick in [5, 6, 9] {
            let start = tick * STEPS_PER_TICK;
            for step in start..start + u64::from(EXACT_PER_TICK) {
                assert_eq!(sleeps.end_for(step), step);
                assert_eq!(sleeps.end_for(step), step, "it begins again");
            }
            let end = start + STEPS_PER_TICK;
            for step in start + u64::from(EXACT_PER_TICK)..end {
                assert_eq!(sleeps.end_for(step), end);
                assert_eq!(sleeps.end_for(step), end, "it begins again");
            }
        }
    }
}
