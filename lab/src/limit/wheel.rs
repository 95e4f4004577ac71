//! A timer wheel in one array: six levels of 64 slots, one millisecond a tick.
//!
//! A timer is on the level of the highest digit, to base 64, in which its time differs from now. When that digit
//! has come, it moves to a lower level. Slots are lists, linked through the timers both ways.

use super::queue::{NONE, index};

const LEVELS: usize = 6;
const SLOTS: usize = 64;
/// In `before`: the timer is the first one of the slot with the other bits.
const FIRST: u32 = 1 << 31;

/// What a timer does, with what it captured.
pub(super) type TimerCode = fn([usize; 2]);

struct Timer {
    due: u64,
    next: u32,
    before: u32,
    /// Counts the uses of this place, so that an old handle cancels nothing.
    uses: u32,
    code: TimerCode,
    captured: [usize; 2],
}

/// A started timer.
#[derive(Clone, Copy)]
pub(super) struct Started {
    timer: u32,
    uses: u32,
}

pub(super) struct Wheel {
    now: u64,
    slots: [u32; LEVELS * SLOTS],
    timers: Vec<Timer>,
    free: u32,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            slots: [NONE; LEVELS * SLOTS],
            timers: Vec::new(),
            free: NONE,
        }
    }

    /// The tick that has come.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Starts a timer; one whose tick has come is due at the next.
    #[inline]
    pub(super) fn start(&mut self, due: u64, code: TimerCode, captured: [usize; 2]) -> Started {
        let due = due.max(self.now + 1);
        let timer = self.free;
        let timer = if timer == NONE {
            self.timers.push(Timer {
                due,
                next: NONE,
                before: NONE,
                uses: 0,
                code,
                captured,
            });
            index(self.timers.len() - 1)
        } else {
            let place = &mut self.timers[timer as usize];
            self.free = place.next;
            (place.due, place.code, place.captured) = (due, code, captured);
            timer
        };
        self.put(timer);
        let uses = self.timers[timer as usize].uses;
        Started { timer, uses }
    }

    /// Cancels a timer, unless it has fired.
    #[inline]
    pub(super) fn cancel(&mut self, started: Started) {
        let timer = &self.timers[started.timer as usize];
        if timer.uses != started.uses {
            return;
        }
        let (before, next) = (timer.before, timer.next);
        if before & FIRST != 0 {
            self.slots[(before ^ FIRST) as usize] = next;
        } else {
            self.timers[before as usize].next = next;
        }
        if next != NONE {
            self.timers[next as usize].before = before;
        }
        self.release(started.timer);
    }

    /// Lets time pass and runs what is due.
    pub(super) fn advance(&mut self, to: u64) {
        while self.now < to {
            self.now += 1;
            let digits = self.now.trailing_zeros() as usize / 6;
            for level in (1..=digits.min(LEVELS - 1)).rev() {
                self.each_of(level, Self::put);
            }
            self.each_of(0, Self::fire);
        }
    }

    /// Empties the slot of a level whose digit has come.
    fn each_of(&mut self, level: usize, then: impl Fn(&mut Self, u32)) {
        let slot = slot(level, self.now);
        let mut timer = std::mem::replace(&mut self.slots[slot], NONE);
        while timer != NONE {
            let next = self.timers[timer as usize].next;
            then(self, timer);
            timer = next;
        }
    }

    #[inline]
    fn put(&mut self, timer: u32) {
        let due = self.timers[timer as usize].due;
        let differing = 63 - ((due ^ self.now) | 1).leading_zeros() as usize;
        let slot = slot((differing / 6).min(LEVELS - 1), due);
        let next = std::mem::replace(&mut self.slots[slot], timer);
        if next != NONE {
            self.timers[next as usize].before = timer;
        }
        let own = &mut self.timers[timer as usize];
        (own.next, own.before) = (next, index(slot) | FIRST);
    }

    fn fire(&mut self, timer: u32) {
        let own = &self.timers[timer as usize];
        (own.code)(own.captured);
        self.release(timer);
    }

    fn release(&mut self, timer: u32) {
        let place = &mut self.timers[timer as usize];
        place.uses = place.uses.wrapping_add(1);
        place.next = self.free;
        self.free = timer;
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a remainder below 64 fits a usize"
)]
fn slot(level: usize, tick: u64) -> usize {
    level * SLOTS + ((tick >> (6 * level)) % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static FIRED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    fn note([name, _]: [usize; 2]) {
        FIRED.with_borrow_mut(|fired| fired.push(name));
    }

    #[test]
    fn each_fires_at_its_tick_and_those_cancelled_never() {
        let mut wheel = Wheel::new();
        wheel.advance(60);
        let dues = [61, 63, 64, 65, 4_095, 4_096, 5_000, 262_145];
        let started: Vec<Started> = dues
            .iter()
            .map(|due| wheel.start(*due as u64, note, [*due, 0]))
            .collect();
        let cancelled: [usize; 2] = [2, 6];
        for place in cancelled {
            wheel.cancel(started[place]);
        }
        for tick in 61..=262_200 {
            wheel.advance(tick);
            let fired = FIRED.take();
            let place = dues.iter().position(|due| *due as u64 == tick);
            let wanted = place.filter(|place| !cancelled.contains(place));
            assert_eq!(fired, wanted.map(|place| dues[place]).as_slice(), "{tick}");
        }
        // An old handle cancels nothing of the place's next user.
        let again = wheel.start(0, note, [7, 0]);
        started.into_iter().for_each(|old| {
            if old.timer == again.timer {
                wheel.cancel(old);
            }
        });
        wheel.advance(262_201);
        assert_eq!(FIRED.take(), [7]);
    }

    #[test]
    fn a_list_loses_its_first_middle_and_last() {
        let mut wheel = Wheel::new();
        let started: Vec<Started> = (0..5).map(|name| wheel.start(9, note, [name, 0])).collect();
        for place in [4, 2, 0] {
            wheel.cancel(started[place]);
        }
        wheel.advance(9);
        assert_eq!(FIRED.take(), [3, 1]);
    }
}
