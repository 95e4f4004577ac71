//! A hierarchical timer wheel: seven levels of 64 slots. A slot of the lowest level is a step of the clock, 1/64 ms;
//! one of the next level is a tick.
//!
//! Invariants:
//! - `elapsed` only grows; every entry's deadline is after it.
//! - An entry is in the level of the highest digit (base 64) in which its deadline differs from
//!   `elapsed`, in the slot with that digit's number; so slots at or before the present one are empty.
//! - Bit s of `occupied[l]` is set exactly if slot s of level l has an entry.
//! - Entries with the same deadline fire in the order of their insertion: slots are queues, and entries that cascade
//!   into a slot were inserted before any entry that enters it directly.
//!
//! Insert and cancel are O(1); an entry cascades at most six times. After Varghese and Lauck,
//! "Hashed and Hierarchical Timing Wheels", 1987. Used inside the lock of the wheel's worker.

#![allow(unsafe_code)]

use crate::timer::{
    clock::STEPS_PER_TICK,
    entry::{EntryLinks, EntryPlace, EntryPtr},
};

const LEVELS: usize = 7;
const SLOTS: usize = 64;
const _: () = assert!(STEPS_PER_TICK == SLOTS as u64);
const BITS: usize = 6;
/// Among how many entries of a slot the earliest is looked for before a sleep.
const MOST_COMPARED: usize = 16;
/// Deadlines farther away than this (two years) wait in the last level and are placed again later.
const HORIZON: u64 = 1 << (BITS * LEVELS);

#[derive(Clone, Copy, Default)]
struct WheelSlot {
    first: Option<EntryPtr>,
    last: Option<EntryPtr>,
}

/// The wheel.
pub(crate) struct Wheel {
    elapsed: u64,
    pending: usize,
    occupied: [u64; LEVELS],
    slots: Box<[WheelSlot; LEVELS * SLOTS]>,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            elapsed: 0,
            pending: 0,
            occupied: [0; LEVELS],
            slots: Box::new([WheelSlot::default(); LEVELS * SLOTS]),
        }
    }

    /// How many entries there are, cancelled ones included.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Links an entry that is in no wheel.
    #[inline]
    pub(crate) fn insert(&mut self, entry: EntryPtr) {
        let deadline = self.effective_deadline(entry);
        let level = level_of(self.elapsed, deadline);
        let slot = digit(deadline, level);
        self.occupied[level] |= 1 << slot;
        self.append(level * SLOTS + slot, entry);
        self.pending += 1;
    }

    /// Unlinks an entry that is in this wheel.
    pub(crate) fn remove(&mut self, entry: EntryPtr) {
        let EntryLinks { next, prev, .. } = *links(entry);
        // SAFETY: a linked entry is alive.
        let there = unsafe { entry.get() };
        let slot = usize::from(there.place().slot);
        there.set_slot(EntryPlace::OUT);
        match prev {
            Some(prev) => links(prev).next = next,
            None => self.slots[slot].first = next,
        }
        match next {
            Some(next) => links(next).prev = prev,
            None => self.slots[slot].last = prev,
        }
        if self.slots[slot].first.is_none() {
            self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        }
        self.pending -= 1;
    }

    /// A lower bound for the next deadline: nothing fires before this step, but entries may only cascade at it.
    pub(crate) fn next_step(&self) -> Option<u64> {
        self.first_slot().map(|(step, _)| step)
    }

    /// The next deadline, if few entries share its slot; else as [`next_step`](Wheel::next_step). So a worker that
    /// sleeps until the one timer of a later tick does not wake before it, only for a cascade.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let (step, slot) = self.first_slot()?;
        // The slots of the lowest level are steps. The last level also has deadlines beyond the horizon, behind which
        // there may be earlier ones.
        if !(SLOTS..(LEVELS - 1) * SLOTS).contains(&slot) {
            return Some(step);
        }
        let mut next = self.slots[slot].first;
        let mut earliest = u64::MAX;
        for _ in 0..MOST_COMPARED {
            let Some(entry) = next else {
                return Some(earliest.max(step));
            };
            earliest = earliest.min(links(entry).deadline);
            next = links(entry).next;
        }
        Some(step)
    }

    /// Advances time to `now`, unlinks the entries that are due and passes them to `due`, in the order of their
    /// deadlines. Stops soon after `limit` entries. True if there may be more.
    pub(crate) fn advance(
        &mut self,
        now: u64,
        limit: usize,
        due: &mut impl FnMut(EntryPtr),
    ) -> bool {
        let mut left = limit;
        while let Some((step, slot)) = self.next_slot(now) {
            if slot >= SLOTS {
                left = left.saturating_sub(self.cascade(step, slot, due));
                continue;
            }
            while let Some(entry) = self.slots[slot].first {
                if left == 0 {
                    return true;
                }
                left -= 1;
                self.remove_first(slot, entry);
                due(entry);
            }
            self.elapsed = step;
        }
        self.elapsed = self.elapsed.max(now);
        false
    }

    /// Unlinks an entry that is the first of its slot.
    #[inline]
    fn remove_first(&mut self, slot: usize, entry: EntryPtr) {
        let next = links(entry).next;
        self.slots[slot].first = next;
        match next {
            Some(next) => links(next).prev = None,
            None => {
                self.slots[slot].last = None;
                self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
            }
        }
        // SAFETY: a linked entry is alive.
        unsafe { entry.get() }.set_slot(EntryPlace::OUT);
        self.pending -= 1;
    }

    /// Moves the entries of a slot of a higher level, whose first step is `step`, to lower levels. Returns how many
    /// were due.
    fn cascade(&mut self, step: u64, slot: usize, due: &mut impl FnMut(EntryPtr)) -> usize {
        let mut count = 0;
        let mut next = std::mem::take(&mut self.slots[slot]).first;
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        self.elapsed = step;
        while let Some(entry) = next {
            next = links(entry).next;
            self.pending -= 1;
            if links(entry).deadline <= step {
                // SAFETY: a linked entry is alive.
                unsafe { entry.get() }.set_slot(EntryPlace::OUT);
                due(entry);
                count += 1;
            } else {
                self.insert(entry);
            }
        }
        count
    }

    /// Unlinks every entry for which `unwanted` is true, and passes it to `out`.
    pub(crate) fn sweep(
        &mut self,
        unwanted: impl Fn(EntryPtr) -> bool,
        out: &mut impl FnMut(EntryPtr),
    ) {
        let mut next = Some(0);
        while let Some(slot) = next {
            next = self.sweep_from(slot, &unwanted, out);
        }
    }

    /// Sweeps one slot, the first one from `slot` on that has entries. Returns where to continue, if there may be more.
    pub(crate) fn sweep_from(
        &mut self,
        slot: usize,
        unwanted: impl Fn(EntryPtr) -> bool,
        out: &mut impl FnMut(EntryPtr),
    ) -> Option<usize> {
        let slot = (slot..self.slots.len()).find(|slot| self.slots[*slot].first.is_some())?;
        let mut next = self.slots[slot].first;
        while let Some(entry) = next {
            next = links(entry).next;
            if unwanted(entry) {
                self.remove(entry);
                out(entry);
            }
        }
        Some(slot + 1)
    }

    fn next_slot(&self, now: u64) -> Option<(u64, usize)> {
        self.first_slot().filter(|(step, _)| *step <= now)
    }

    /// The first occupied slot, and the step at which it begins. All that is in a lower level comes before all that is
    /// in a higher one.
    fn first_slot(&self) -> Option<(u64, usize)> {
        (0..LEVELS).find_map(|level| self.next_in(level))
    }

    /// The first occupied slot of a level, and the step at which it begins.
    fn next_in(&self, level: usize) -> Option<(u64, usize)> {
        if self.occupied[level] == 0 {
            return None;
        }
        // The present slot comes last: only the last level, which wraps, can have entries there, and these are one full
        // revolution away.
        let after = digit(self.elapsed, level) + 1;
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        let ahead = self.occupied[level]
            .rotate_right(after as u32)
            .trailing_zeros() as usize;
        let slot = (after + ahead) % SLOTS;
        let span = 1_u64 << (BITS * level);
        let start = self.elapsed & !(span * SLOTS as u64 - 1);
        let mut step = start + slot as u64 * span;
        if step <= self.elapsed {
            step += span * SLOTS as u64;
        }
        Some((step, level * SLOTS + slot))
    }

    fn effective_deadline(&self, entry: EntryPtr) -> u64 {
        // Not `clamp`, which checks that its bounds are in order.
        let deadline = links(entry).deadline.max(self.elapsed + 1);
        deadline.min(self.elapsed + HORIZON - 1)
    }

    #[inline]
    fn append(&mut self, slot: usize, entry: EntryPtr) {
        let last = self.slots[slot].last.replace(entry);
        let own = links(entry);
        own.next = None;
        own.prev = last;
        #[expect(clippy::cast_possible_truncation, reason = "there are 448 slots")]
        let place = slot as u16;
        // SAFETY: the caller passes an entry that is alive.
        unsafe { entry.get() }.set_slot(place);
        match last {
            Some(last) => links(last).next = Some(entry),
            None => self.slots[slot].first = Some(entry),
        }
    }
}

fn digit(step: u64, level: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below 64")]
    let digit = (step >> (BITS * level)) as usize % SLOTS;
    digit
}

fn level_of(elapsed: u64, deadline: u64) -> usize {
    let differing = (elapsed ^ deadline) | (SLOTS as u64 - 1);
    ((63 - differing.leading_zeros() as usize) / BITS).min(LEVELS - 1)
}

fn links<'a>(entry: EntryPtr) -> &'a mut EntryLinks {
    // SAFETY: callers pass entries that are in this wheel or about to enter it, which are alive.
    let entry = unsafe { entry.get() };
    // SAFETY: links are touched only inside the worker's lock, and no two are held at once in this file.
    unsafe { &mut *entry.links.get() }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, task::Waker};

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Cancel(usize),
        Advance(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let far = prop_oneof![0..70_u64, 0..5_000_u64, 0..40_000_000_u64, 0..1_u64 << 40];
        let step = prop_oneof![
            far.clone().prop_map(Step::Insert),
            (0..64_usize).prop_map(Step::Cancel),
            far.prop_map(Step::Advance),
        ];
        prop::collection::vec(step, 1..200)
    }

    fn id(entry: EntryPtr) -> usize {
        // SAFETY: test entries are freed only at the end of the test.
        std::ptr::from_ref(unsafe { entry.get() }).addr()
    }

    #[test]
    fn the_deadline_of_the_only_entry_is_known_and_that_of_very_many_at_least_their_slot() {
        for deadline in [1, 63, 64, 70, 4_095, 4_097, 320 * 64 + 1, 1 << 30] {
            let mut wheel = Wheel::new();
            assert_eq!(wheel.next_deadline(), None);
            let entry = EntryPtr::new(0, deadline, Waker::noop().clone());
            wheel.insert(entry);
            assert_eq!(wheel.next_deadline(), Some(deadline));
            // SAFETY: the wheel is not used again.
            unsafe { entry.free() };
        }
        let mut wheel = Wheel::new();
        let entries: Vec<_> = (0..64_u64)
            .map(|place| EntryPtr::new(0, 640 + place, Waker::noop().clone()))
            .collect();
        for (count, entry) in (1..).zip(&entries[1..]) {
            wheel.insert(*entry);
            let expected = if count < MOST_COMPARED { 641 } else { 640 };
            assert_eq!(wheel.next_deadline(), Some(expected), "{count}");
        }
        for entry in entries {
            // SAFETY: the wheel is not used again.
            unsafe { entry.free() };
        }
    }

    proptest! {
        /// Against a sorted map: the same entries fire at the same times in the same order.
        #[test]
        fn fires_what_a_sorted_map_fires(steps in steps()) {
            let mut wheel = Wheel::new();
            let mut naive = BTreeMap::new();
            let mut entries = Vec::new();
            let mut now = 0;
            for (order, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(after) => {
                        let entry = EntryPtr::new(0, now + 1 + after, Waker::noop().clone());
                        wheel.insert(entry);
                        naive.insert((now + 1 + after, order), entry);
                        entries.push(entry);
                    }
                    Step::Cancel(which) => {
                        if let Some(key) = naive.keys().nth(which).copied() {
                            wheel.remove(naive.remove(&key).unwrap());
                        }
                    }
                    Step::Advance(by) => {
                        now += by;
                        let mut due = Vec::new();
                        let first = naive.keys().next().map(|(deadline, _)| *deadline);
                        let promised = wheel.next_step();
                        prop_assert!(promised.is_none_or(|step| first.is_some_and(|f| step <= f)));
                        let exact = wheel.next_deadline();
                        prop_assert!(exact.is_none_or(|step| first.is_some_and(|f| step <= f)));
                        prop_assert!(exact >= promised);
                        while wheel.advance(now, 3, &mut |entry| due.push(entry)) {}
                        let later = naive.split_off(&(now + 1, 0));
                        let expected: Vec<_> = naive.values().map(|entry| id(*entry)).collect();
                        naive = later;
                        let fired: Vec<_> = due.into_iter().map(id).collect();
                        prop_assert_eq!(fired, expected);
                    }
                }
                prop_assert_eq!(wheel.pending(), naive.len());
            }
            for entry in entries {
                // SAFETY: the wheel is not used again.
                unsafe { entry.free() };
            }
        }
    }
}
