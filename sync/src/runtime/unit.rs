//! The unit that runs on the calling thread: its number, and how much it may still do in this poll.
//!
//! A runtime writes the unit here when it begins to run it; the tools read it. There is no destructor, so an
//! access is one load from the thread's base register.

#![allow(unsafe_code)]

mod first_poll;

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering},
};

pub(crate) use first_poll::tell_of_wakers;
pub use first_poll::{CANCELLED, Obstacle, notes};

/// What a thread runs. Only the thread itself writes the fields.
#[derive(Debug)]
pub struct Unit {
    /// The unit's number, which no other unit has at the same time: its address, which is a multiple of eight below
    /// 2^48. Zero while the thread runs no unit.
    id: Cell<usize>,
    /// The operations of all units that ran on the thread. The number wraps. Atomic, and always relaxed, because a
    /// runtime may look at it from another thread; it guards no other memory.
    operations: AtomicU32,
    /// What `operations` may reach in this poll; the difference is the budget that is left.
    limit: Cell<u32>,
    /// The state of the thread's own generator of random numbers, which is odd; zero until the first one is drawn,
    /// and while they are drawn from a seed.
    random: Cell<u32>,
    /// The state of the generator that repeats its numbers; zero if the thread uses its own.
    seeded: Cell<u32>,
    /// See [`notes`](Unit::notes).
    notes: Cell<u8>,
    /// The [obstacles](Obstacle) to a first poll that there are now, a bit each.
    obstacles: Cell<u8>,
}

thread_local! {
    static UNIT: Unit = const {
        Unit {
            id: Cell::new(0),
            operations: AtomicU32::new(0),
            limit: Cell::new(0),
            random: Cell::new(0),
            seeded: Cell::new(0),
            notes: Cell::new(0),
            obstacles: Cell::new(Obstacle::NO_STACK.bit()),
        }
    };
}

/// Runs `act` with the calling thread's unit.
#[inline(always)]
pub fn with<R>(act: impl FnOnce(&Unit) -> R) -> R {
    // `try_with` and not `with`, which the default release profile does not inline.
    match UNIT.try_with(act) {
        Ok(result) => result,
        Err(_) => unreachable!("it has no destructor"),
    }
}

/// A number for what runs on this thread: the unit's (even), or the thread's own (odd).
#[inline(always)]
pub fn current() -> usize {
    with(|unit| match unit.id.get() {
        0 => std::ptr::from_ref(unit).addr() | 1,
        id => id,
    })
}

/// A pseudo-random number below `below`, for fair choices.
#[inline]
pub(crate) fn random(below: u32) -> u32 {
    if cfg!(loom) {
        // A model is the same each time it runs.
        return 0;
    }
    let x = with(|unit| match unit.random.get() {
        0 => unit.draw_apart(),
        state => {
            // A product by a constant of Steele and Vigna (2021). Its high bits are the good ones, and they decide
            // below.
            let x = state.wrapping_mul(0x93d7_65dd);
            unit.random.set(x);
            x
        }
    });
    ((u64::from(x) * u64::from(below)) >> 32) as u32
}

impl Unit {
    /// The thread now runs the unit `id` (zero: none; else a multiple of eight below 2^48) with `budget` reductions.
    /// Called by runtimes.
    ///
    /// # Safety
    /// If the thread is to begin waits without an [`Obstacle`] while it runs the unit, the number is what
    /// [`Hooks::wakers`](crate::hooks::Hooks::wakers) promises, for as long as the unit runs.
    #[inline(always)]
    pub unsafe fn begin(&self, id: usize, budget: u32) {
        self.id.set(id);
        self.refill(budget);
    }

    /// As [`begin`](Unit::begin), where that is itself an operation that is counted and takes no reduction. Returns the
    /// number of operations.
    ///
    /// # Safety
    /// As [`begin`](Unit::begin).
    #[inline(always)]
    pub unsafe fn begin_counted(&self, id: usize, budget: u32) -> u32 {
        let operations = self.operations().wrapping_add(1);
        self.operations.store(operations, Ordering::Relaxed);
        self.id.set(id);
        self.limit.set(operations.wrapping_add(budget));
        operations
    }

    /// The unit now has `budget` reductions.
    #[inline(always)]
    pub fn refill(&self, budget: u32) {
        self.limit.set(self.operations().wrapping_add(budget));
    }

    /// The unit's number; zero if the thread runs none.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.id.get()
    }

    /// Reductions left in this poll.
    #[inline(always)]
    pub fn budget(&self) -> u32 {
        self.limit.get().wrapping_sub(self.operations())
    }

    /// How many operations the thread's units have completed; the number wraps. Runtimes compare two of them.
    #[inline(always)]
    pub fn operations(&self) -> u32 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Where [`operations`](Unit::operations) are counted, for a thread that looks at another one. The count lives as
    /// long as the thread whose unit this is.
    pub fn count(&self) -> &AtomicU32 {
        &self.operations
    }

    /// Counts an operation that costs no reduction.
    #[inline(always)]
    pub fn count_free(&self) {
        self.operations
            .store(self.operations().wrapping_add(1), Ordering::Relaxed);
        self.limit.set(self.limit.get().wrapping_add(1));
    }

    /// From now on the thread draws its choices from `state`; returns the state before. A runtime whose runs repeat
    /// calls it when a run begins and when it ends. Zero: the next choice begins anew, with a state of the thread.
    pub fn set_random(&self, state: u32) -> u32 {
        self.random.set(0);
        self.seeded.replace(state)
    }

    /// A number from the seeded generator, or the first one of the thread's own.
    #[cold]
    fn draw_apart(&self) -> u32 {
        let mut x = self.seeded.get();
        let is_seeded = x != 0;
        if !is_seeded {
            // The count, lest a thread begin in the same way after each run that repeats.
            let low = std::ptr::from_ref(self).addr() & 0xffff_ffff;
            let low = u32::try_from(low).expect("it has 32 bits");
            x = low.wrapping_add(self.operations()) | 1;
        }
        // Marsaglia's xorshift (2003); zero would stay zero.
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        match is_seeded {
            true => self.seeded.set(x),
            false => self.random.set(x | 1),
        }
        x
    }

    /// Takes the unit off the thread for a nested run: another unit will run on top of its stack. Returns
    /// what [`begin`](Unit::begin) needs to resume it.
    pub fn take_off(&self) -> (usize, u32) {
        (self.id.replace(0), self.budget())
    }

    /// Spends one reduction for a completed operation. False if the budget is used up.
    #[inline(always)]
    pub fn spend_if_any(&self) -> bool {
        let operations = self.operations();
        let has_left = operations != self.limit.get();
        if has_left {
            self.operations
                .store(operations.wrapping_add(1), Ordering::Relaxed);
        }
        has_left
    }

    /// As [`spend_if_any`](Unit::spend_if_any), but always true for a thread that runs no unit.
    #[inline(always)]
    pub fn spend(&self) -> bool {
        self.spend_if_any() || self.id.get() == 0
    }

    /// As [`spend`](Unit::spend), for one operation that takes as long as several, and counts as so many reductions. If
    /// fewer are left, they are enough for it.
    #[inline(always)]
    pub fn spend_many(&self, reductions: u32) -> bool {
        let has_left = self.spend();
        let more = self.budget().min(reductions.saturating_sub(1));
        self.limit.set(self.limit.get().wrapping_sub(more));
        has_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_cover_their_range() {
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[random(7) as usize] += 1;
        }
        assert!(
            seen.iter().all(|count| (700..1300).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn each_pair_of_numbers_is_drawn() {
        let mut seen = [0; 64];
        for _ in 0..64_000 {
            seen[(random(8) * 8 + random(8)) as usize] += 1;
        }
        assert!(
            seen.iter().all(|count| (800..1200).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_seed_gives_the_numbers_that_it_has_always_given() {
        // The thread's own generator has begun.
        random(3);
        let before = with(|unit| unit.set_random(7));
        let numbers = [(); 8].map(|()| random(1000));
        with(|unit| unit.set_random(before));
        assert_eq!(numbers, [0, 109, 903, 714, 664, 488, 60, 184]);
        assert_ne!([(); 8].map(|()| random(1000)), numbers);
    }

    #[test]
    fn the_same_state_gives_the_same_numbers() {
        let numbers = |state| {
            let before = with(|unit| unit.set_random(state));
            let numbers: Vec<u32> = (0..100).map(|_| random(1000)).collect();
            with(|unit| unit.set_random(before));
            numbers
        };
        let first = numbers(7);
        random(3);
        assert_eq!(numbers(7), first);
        assert_ne!(numbers(8), first);
    }

    #[test]
    fn a_budget_is_spent_and_operations_are_counted() {
        let operations = || with(Unit::operations);
        // SAFETY: the thread is on no stack that can be suspended.
        with(|unit| unsafe { unit.begin(2, 2) });
        let before = operations();
        assert_eq!(
            [(); 3].map(|()| with(Unit::spend_if_any)),
            [true, true, false]
        );
        assert_eq!(operations().wrapping_sub(before), 2);
        with(Unit::count_free);
        assert_eq!(
            (with(Unit::budget), operations().wrapping_sub(before)),
            (0, 3)
        );
        // SAFETY: no unit.
        with(|unit| unsafe { unit.begin(0, 0) });
    }

    #[test]
    fn an_operation_may_take_many_reductions_and_is_counted_once() {
        let operations = || with(Unit::operations);
        // SAFETY: the thread is on no stack that can be suspended.
        with(|unit| unsafe { unit.begin(2, 10) });
        let before = operations();
        let spent = [(); 3].map(|()| (with(|unit| unit.spend_many(8)), with(Unit::budget)));
        assert_eq!(spent, [(true, 2), (true, 0), (false, 0)]);
        assert_eq!(operations().wrapping_sub(before), 2);
        // SAFETY: no unit.
        with(|unit| unsafe { unit.begin(0, 0) });
        assert!(with(|unit| unit.spend_many(8)));
    }

    #[test]
    fn threads_without_a_unit_have_numbers_of_their_own() {
        let here = current();
        let there = std::thread::spawn(current).join().expect("the thread ends");
        assert_ne!(here, there);
        assert_eq!((here % 2, there % 2), (1, 1));
    }
}
