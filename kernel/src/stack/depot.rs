//! The depot: the free stacks that no thread caches, and the address space from which new ones are cut.
//!
//! Slots are cut from mappings of 64 MiB or more that reserve no memory. Where the system has guard markers
//! (MADV_GUARD_INSTALL, Linux 6.13), a guard is a marker in the page table, and a million stacks need a handful of
//! mappings; on older systems each guard is a mapping of its own, and a process may have some 32,000.
//!
//! Invariants, for each class:
//! - The number of slots in the depot is the number of claims ([`crate::stack::pool`]) plus `unclaimed`. So each claim
//!   finds a slot, and if the system refuses a stack, it does so when the claim is made.
//! - Where guards are mappings, only a slot that has its guard counts, because the system may refuse the guard.

#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    io,
    ptr::{self, NonNull},
};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};

use crate::stack::{LARGEST, PAGE, SMALLEST, Stack, StackError, switch};

pub(super) const CLASSES: usize =
    (LARGEST.trailing_zeros() - SMALLEST.trailing_zeros() + 1) as usize;
/// The smallest mapping of address space. Larger than most stacks, so that a program that is refused one still has
/// address space for its heap.
const REGION: usize = 64 << 20;
/// How many guards may be mappings: the system's default limit, with room for the process's other mappings.
const MAPPED_GUARDS: usize = 32_000;
/// MADV_GUARD_INSTALL of Linux 6.13, which rustix does not have yet.
const GUARD_INSTALL: i32 = 102;

pub(super) fn index(class: u32) -> usize {
    (class - SMALLEST.trailing_zeros()) as usize
}

/// The depot of all classes.
pub(super) struct Depot {
    classes: [ClassSlots; CLASSES],
    guards: Guards,
    /// How many guards may be mappings; see [`Bound::MappedGuards`].
    mapped_guards: usize,
    /// How many slots have been cut.
    cut: usize,
}

/// What a guard is on this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guards {
    /// A marker in the page table.
    Markers,
    /// A mapping.
    Mappings,
}

/// What limits the number of stacks, apart from the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Where guards are mappings, there may be only so many of them.
    MappedGuards,
    /// Nothing: without the stack of a loop, a job would have to hold its OS thread.
    Nothing,
}

/// The slots of one class.
struct ClassSlots {
    free: Vec<Stack>,
    /// The rests of regions.
    rests: Vec<Rest>,
    /// How many slots nobody has claimed.
    unclaimed: usize,
}

/// The uncut slots of a region.
struct Rest {
    start: NonNull<u8>,
    slots: usize,
    /// Whether its slots count.
    counts: bool,
}

// SAFETY: an address; slots are cut from it only under the depot's lock.
unsafe impl Send for Rest {}

impl ClassSlots {
    const fn new() -> ClassSlots {
        ClassSlots {
            free: Vec::new(),
            rests: Vec::new(),
            unclaimed: 0,
        }
    }
}

impl Depot {
    pub(super) const fn new() -> Depot {
        Depot {
            classes: [const { ClassSlots::new() }; CLASSES],
            guards: Guards::Markers,
            mapped_guards: MAPPED_GUARDS,
            cut: 0,
        }
    }

    /// Whether a claim needs more address space.
    pub(super) fn is_exhausted(&self, class: u32) -> bool {
        self.classes[index(class)].unclaimed == 0
    }

    /// Makes one claim, and up to `more` if many slots are unclaimed. Returns how many it made.
    ///
    /// # Errors
    /// If the system refuses a further stack.
    pub(super) fn claim(
        &mut self,
        class: u32,
        more: usize,
        bound: Bound,
    ) -> Result<usize, StackError> {
        if self.is_exhausted(class) {
            self.grow(class, bound)?;
        }
        let unclaimed = &mut self.classes[index(class)].unclaimed;
        let claims = 1 + more.min(*unclaimed / 2);
        *unclaimed -= claims;
        Ok(claims)
    }

    /// Takes claims back.
    pub(super) fn unclaim(&mut self, class: u32, claims: usize) {
        self.classes[index(class)].unclaimed += claims;
    }

    /// Takes the slot of a claim, which ends, and up to `more` free stacks that nobody has claimed.
    ///
    /// # Errors
    /// If the system has no memory left for the guard's marker. The claim lasts.
    pub(super) fn take(
        &mut self,
        class: u32,
        more: usize,
    ) -> Result<(Stack, Vec<Stack>), StackError> {
        let slots = &mut self.classes[index(class)];
        let Some(stack) = slots.free.pop() else {
            return Ok((self.cut_claimed(class)?, Vec::new()));
        };
        let more = more.min(slots.unclaimed).min(slots.free.len());
        slots.unclaimed -= more;
        let others = slots.free.split_off(slots.free.len() - more);
        Ok((stack, others))
    }

    /// Adds free stacks, which nobody has claimed.
    pub(super) fn give(&mut self, class: u32, stacks: impl Iterator<Item = Stack>) {
        let slots = &mut self.classes[index(class)];
        let before = slots.free.len();
        slots.free.extend(stacks);
        slots.unclaimed += slots.free.len() - before;
    }

    /// Returns the pages of the free stacks to the system, and an upper bound of their size to the caller: pages that
    /// were never touched count too.
    pub(super) fn trim(&mut self) -> usize {
        let mut bytes = 0;
        for stack in self.classes.iter().flat_map(|slots| &slots.free) {
            let usable = stack.size() - PAGE;
            // SAFETY: the guard is a page of the slot.
            let start = unsafe { stack.limit().byte_add(PAGE) };
            let start = start.as_ptr().cast::<c_void>();
            // SAFETY: the pages are mapped, private and anonymous, and unused: their stack is free, and the depot
            // locked.
            let dropped = unsafe { madvise(start, usable, Advice::LinuxDontNeed) };
            dropped.expect("a mapped range can be given back");
            bytes += usable;
        }
        bytes
    }

    /// How many slots of `class` count, and how many of them are unclaimed.
    #[cfg(test)]
    pub(super) fn balance(&self, class: u32) -> (usize, usize) {
        let slots = &self.classes[index(class)];
        let rests = slots.rests.iter().filter(|rest| rest.counts);
        let uncut: usize = rests.map(|rest| rest.slots).sum();
        (slots.free.len() + uncut, slots.unclaimed)
    }

    /// Adds unclaimed slots: a new region's, or one if guards are mappings.
    fn grow(&mut self, class: u32, bound: Bound) -> Result<(), StackError> {
        let are_mappings = self.guards == Guards::Mappings;
        if are_mappings && bound == Bound::MappedGuards && self.cut >= self.mapped_guards {
            return Err(StackError::TooManyStacks { stacks: self.cut });
        }
        let rests = &mut self.classes[index(class)].rests;
        let mut rest = match rests.iter().position(|rest| !rest.counts) {
            Some(known) => rests.swap_remove(known),
            None => reserve(1 << class)?,
        };
        // The first guard shows what guards are on this system.
        let cut = self.cut(&mut rest, class);
        rest.counts = cut.is_ok() && self.guards == Guards::Markers;
        let slots = &mut self.classes[index(class)];
        if rest.counts {
            slots.unclaimed += rest.slots;
        }
        if rest.slots > 0 {
            slots.rests.push(rest);
        }
        slots.free.push(cut?);
        slots.unclaimed += 1;
        Ok(())
    }

    /// Cuts the slot of a claim.
    #[cold]
    fn cut_claimed(&mut self, class: u32) -> Result<Stack, StackError> {
        let rests = &mut self.classes[index(class)].rests;
        let known = rests.iter().position(|rest| rest.counts);
        let mut rest = rests.swap_remove(known.expect("a claim has a slot"));
        let cut = self.cut(&mut rest, class);
        let slots = &mut self.classes[index(class)];
        if rest.slots > 0 {
            slots.rests.push(rest);
        }
        cut
    }

    /// Cuts a slot, unless the system refuses its guard.
    fn cut(&mut self, rest: &mut Rest, class: u32) -> Result<Stack, StackError> {
        self.guard(rest.start)?;
        let stack = Stack::new(rest.start, class);
        rest.slots -= 1;
        if rest.slots > 0 {
            // SAFETY: at least one more slot follows this one.
            rest.start = unsafe { rest.start.byte_add(1 << class) };
        }
        self.cut += 1;
        switch::register(&stack);
        Ok(stack)
    }

    /// Makes the page at `start` a guard.
    fn guard(&mut self, start: NonNull<u8>) -> Result<(), StackError> {
        let page = start.as_ptr().cast::<c_void>();
        if self.guards == Guards::Markers {
            // SAFETY: the page belongs to a slot that is not in use yet.
            if unsafe { libc::madvise(page, PAGE, GUARD_INSTALL) } == 0 {
                return Ok(());
            }
            // Any other error concerns this guard only.
            if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
                self.guards = Guards::Mappings;
            }
        }
        // SAFETY: as above.
        unsafe { mprotect(page, PAGE, MprotectFlags::empty()) }
            .map_err(|_| StackError::TooManyStacks { stacks: self.cut })
    }
}

/// Address space for slots of `size`, aligned to `size`.
fn reserve(size: usize) -> Result<Rest, StackError> {
    let bytes = REGION.max(size);
    let refused = StackError::NoAddressSpace { bytes: size };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing else.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes + size, protection, flags) };
    let mapped = mapped.map_err(|_| refused)?;
    let skip = mapped.addr().next_multiple_of(size) - mapped.addr();
    // SAFETY: less than one slot is skipped, and one more than the region was mapped.
    let start = unsafe { mapped.byte_add(skip) };
    // A huge page would commit 2 MiB at the first touch of a stack. A system without huge pages refuses.
    // SAFETY: the range was mapped above; the advice changes no contents.
    let _advised = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
    Ok(Rest {
        start: NonNull::new(start.cast()).ok_or(refused)?,
        slots: bytes / size,
        counts: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depot(guards: Guards) -> Depot {
        Depot {
            guards,
            ..Depot::new()
        }
    }

    fn claim_one(depot: &mut Depot, class: u32) -> Result<(), StackError> {
        depot
            .claim(class, 0, Bound::MappedGuards)
            .map(|claims| assert_eq!(claims, 1))
    }

    #[test]
    fn a_claim_finds_its_slot_however_many_there_are() {
        for guards in [Guards::Markers, Guards::Mappings] {
            let (mut depot, class) = (depot(guards), Stack::class_of(16 << 20));
            // The slots of a region are four.
            for claims in 1..=10 {
                claim_one(&mut depot, class).expect("a slot");
                let (slots, unclaimed) = depot.balance(class);
                assert_eq!(slots, claims + unclaimed);
            }
            let stacks: Vec<_> = (0..10)
                .map(|_| depot.take(class, 0).expect("the claim's slot").0)
                .collect();
            let (slots, unclaimed) = depot.balance(class);
            assert_eq!(slots, unclaimed, "no claim is left");
            depot.give(class, stacks.into_iter());
            assert_eq!(depot.balance(class), (slots + 10, slots + 10));
        }
    }

    #[test]
    fn where_guards_are_mappings_the_claims_beyond_the_bound_are_refused() {
        let mut depot = Depot {
            mapped_guards: 3,
            ..depot(Guards::Mappings)
        };
        let class = Stack::class_of(0);
        for _ in 0..3 {
            claim_one(&mut depot, class).expect("below the bound");
        }
        let refused = claim_one(&mut depot, class);
        assert_eq!(refused, Err(StackError::TooManyStacks { stacks: 3 }));
        // A loop's stack is exempt.
        assert_eq!(depot.claim(class, 0, Bound::Nothing), Ok(1));
        depot.unclaim(class, 1);
        claim_one(&mut depot, class).expect("one was given back");
        // The claims have their guards already.
        for _ in 0..4 {
            let stack = depot.take(class, 8).expect("a slot for each claim").0;
            assert_eq!(stack.class(), class);
        }
        assert_eq!(depot.cut, 4);
    }
}
