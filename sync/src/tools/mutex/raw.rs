//! The word of a mutex and its transitions, without the guarded value.
//!
//! The word holds the owner's number in the middle, a name, and the flags below. Invariants:
//! - `LIST` is held by the thread that touches the list, for a few instructions.
//! - `WAITERS` is set while the list is not empty, and changed only under `LIST`.
//! - `WOKEN` is set while the first waiter was woken to try again and has not tried yet; then its node, and no
//!   other, says so. It is changed only under `LIST`.
//! - A release clears the owner without a look at the word, so that its locked operation waits for no load. If it
//!   finds `WAITERS` and not `WOKEN` behind it, and no other owner, it must wake the first waiter, or hand the mutex
//!   over.
//! - `DUE` is set while a waiter has been passed over too often. Nobody else takes the mutex then, so the release,
//!   which finds it free, can hand it over. It is set by that waiter, together with the look that finds an owner, and
//!   so before that owner's release; and it is changed only under `LIST`. While it is set, `WAITERS` is, and `WOKEN` is
//!   not.
//!
//! Orderings: each exchange that sets an owner acquires; `unlock`, which clears one, releases. Whatever changes the
//! word between the two reads it in the same operation, and so continues that release. `LIST` is a lock of its own and
//! does both.

#![allow(unsafe_code)]

use std::{mem::MaybeUninit, pin::Pin, task::Waker};

use crate::{
    queue::{
        offer::{Offer, OfferNode, Offers},
        ticket::Ticket,
    },
    runtime::{holders, reason::Name, unit},
    sys::{AtomicU64, MutPtr, Ordering, UnsafeCell, relax},
};

/// Set while a thread touches the list.
const LIST: u64 = 1 << 0;
/// Set while a unit waits.
const WAITERS: u64 = 1 << 1;
/// Set while the first waiter was woken and has not tried yet.
const WOKEN: u64 = 1 << 2;
/// Set if the owner is a thread and not a unit.
const THREAD: u64 = 1 << 47;
/// The owner: an address below 2^47, aligned to 8, and `THREAD`. Zero: the mutex is free.
const OWNER: u64 = (1 << 48) - 8;
const NAME_SHIFT: u32 = 48;
/// Set while a waiter was passed over `MOST_PASSES` times.
const DUE: u64 = 1 << 62;

/// How often a waiter may be passed over by units that came later.
const MOST_PASSES: u32 = if cfg!(loom) { 1 } else { 8 };
/// How often a unit looks again before it waits: a critical section without a wait is short.
const SPINS: u32 = if cfg!(loom) { 0 } else { 40 };

/// A waiter.
pub(super) struct MutexWaiter {
    /// Its number as an owner.
    owner: u64,
    /// How often it was woken and found the mutex taken again.
    passed_over: u32,
    woken: bool,
}

/// The slot of a waiter, which is written when it is put into the list: a lock that is free costs no such write.
pub(super) type MutexSlot = MaybeUninit<MutexWaiter>;

/// A mutex without a value.
///
/// # Safety
/// *Listed*: only the thread that has set `LIST` touches the list. *Left*: a node is bound to the list by
/// [`Listed::leave`] only, which writes its slot.
pub(crate) struct RawMutex {
    word: AtomicU64,
    list: UnsafeCell<Offers<MutexSlot>>,
}

// SAFETY: *listed*.
unsafe impl Send for RawMutex {}
// SAFETY: *listed*.
unsafe impl Sync for RawMutex {}

/// The right to the list: `LIST` is set while this lives.
pub(super) struct Listed<'a> {
    raw: &'a RawMutex,
    access: Option<MutPtr<Offers<MutexSlot>>>,
}

/// The calling unit's number as an owner.
#[inline(always)]
fn me() -> u64 {
    match unit::with(unit::Unit::id) as u64 {
        0 => this_thread(),
        id => {
            debug_assert!(id & OWNER == id, "a unit's number is an owner's");
            id
        }
    }
}

/// The calling thread's number as an owner.
#[cold]
fn this_thread() -> u64 {
    (unit::current() as u64 & OWNER) | THREAD
}

/// The unit that a word's owner is, if it is one.
#[inline]
fn unit_of(word: u64) -> Option<usize> {
    let is_unit = word & OWNER != 0 && word & THREAD == 0;
    is_unit.then(|| usize::try_from(word & OWNER).expect("an address fits"))
}

/// Whether a unit may take the mutex. `is_due`: it is the waiter for which `DUE` is set.
#[inline(always)]
fn is_free(word: u64, is_due: bool) -> bool {
    word & OWNER == 0 && (word & DUE == 0 || is_due)
}

impl RawMutex {
    pub(crate) fn new(name: Name) -> RawMutex {
        RawMutex {
            word: AtomicU64::new(u64::from(name.number()) << NAME_SHIFT),
            list: UnsafeCell::new(Offers::new()),
        }
    }

    pub(crate) fn name(&self) -> Name {
        let word = self.word.load(Ordering::Relaxed);
        let number = (word >> NAME_SHIFT) & ((1 << Name::BITS) - 1);
        Name::of_number(u16::try_from(number).expect("a name has 14 bits"))
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & OWNER != 0
    }

    /// Takes the mutex if it is free.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // The common case apart: its exchange has a constant in place of what was loaded, and need not wait for the
        // load.
        if word == 0 {
            return self.exchange(0, me());
        }
        is_free(word, false) && self.exchange(word, word | me())
    }

    /// Takes the mutex if it is free, or becomes free within a moment.
    #[inline(always)]
    pub(super) fn try_hard(&self) -> bool {
        self.try_lock() || self.spin()
    }

    #[cold]
    fn spin(&self) -> bool {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.try_lock() {
                return true;
            }
        }
        false
    }

    /// Releases the mutex. Called by its owner.
    #[inline(always)]
    pub(crate) fn unlock(&self) {
        // Only whether anything is left: that is what the processor's operation tells, which gives no former value.
        // Release: pairs with the acquire of whatever sets the next owner (`exchange`, `update`).
        if self.word.fetch_and(!OWNER, Ordering::Release) & !OWNER != 0 {
            self.pass_on();
        }
    }

    #[inline(always)]
    fn exchange(&self, word: u64, new: u64) -> bool {
        // Acquire: pairs with the release in `unlock`. Relaxed: without the mutex there is nothing to be seen.
        self.word
            .compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The mutex was released, and has a name or waiters.
    #[inline(never)]
    fn pass_on(&self) {
        // Relaxed: it is the word that the release has left, or a later one, and `Listed::pass_on` looks again under
        // `LIST`.
        let word = self.word.load(Ordering::Relaxed);
        // Another owner's release comes here as well, and a waiter that was woken tries again.
        if word & OWNER == 0 && word & (WAITERS | WOKEN) == WAITERS {
            self.pass_to_waiter();
        }
    }

    #[cold]
    fn pass_to_waiter(&self) {
        let waker = self.listed().pass_on();
        if let Some(waker) = waker {
            crate::queue::wake::wake(waker);
        }
    }

    /// Changes the word; returns the word before.
    #[inline]
    fn update(&self, change: impl Fn(u64) -> u64) -> u64 {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let exchanged = self.word.compare_exchange_weak(
                word,
                change(word),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(before) => return before,
                Err(found) => word = found,
            }
        }
    }

    /// Takes the right to the list.
    #[inline]
    pub(super) fn listed(&self) -> Listed<'_> {
        let mut round = 0;
        // Acquire: pairs with the release in the drop.
        while self.word.fetch_or(LIST, Ordering::Acquire) & LIST != 0 {
            relax(&mut round);
        }
        Listed {
            raw: self,
            access: Some(self.list.get_mut()),
        }
    }
}

impl Listed<'_> {
    #[inline]
    pub(super) fn list(&mut self) -> &mut Offers<MutexSlot> {
        let access = self
            .access
            .as_ref()
            .expect("there is access until the drop");
        // SAFETY: *listed*.
        unsafe { access.deref() }
    }

    /// Takes the mutex if it is free, else sets `WAITERS`. True if it was taken.
    #[inline]
    pub(super) fn take_or_set_waiters(&mut self) -> bool {
        let before = self.raw.update(|word| match is_free(word, false) {
            true => word | me(),
            false => word | WAITERS,
        });
        let taken = is_free(before, false);
        if !taken && before & WAITERS == 0 {
            holders::note(self.raw, unit_of(before));
        }
        taken
    }

    /// Leaves an offer. Called after [`Listed::take_or_set_waiters`] returned false.
    #[inline]
    pub(super) fn leave(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>, ticket: &Ticket<'_>) {
        self.list().value(node.as_mut()).slot.write(MutexWaiter {
            owner: me(),
            passed_over: 0,
            woken: false,
        });
        self.list().leave(node, ticket);
    }

    /// A waiter tries again. True if it is now the owner, and no longer in the list.
    #[inline]
    pub(super) fn try_again(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>) -> bool {
        assert!(node.is_bound(), "a waiter that tries again was in the list");
        let waiter = waiter(self.list().value(node.as_mut()));
        let (was_woken, is_due) = (std::mem::take(&mut waiter.woken), waiter.is_due());
        waiter.passed_over += u32::from(was_woken);
        let woken = if was_woken { WOKEN } else { 0 };
        // Only with `WOKEN`, which is cleared in its place.
        let (due_before, due_now) = (flag(is_due), flag(was_woken && waiter.is_due()));
        let before = self.raw.update(|word| match is_free(word, is_due) {
            true => (word | me()) & !(woken | due_before),
            // A release comes, and sees it.
            false if word & OWNER != 0 => (word & !woken) | due_now,
            false => word & !woken,
        });
        if is_free(before, is_due) {
            self.list().remove(node);
            self.note_waiters();
            self.note_holder(me());
            return true;
        }
        if was_woken {
            self.note_holder(before);
        }
        false
    }

    /// A waiter gives up. Returns the waker of the waiter to wake in its place.
    #[inline]
    pub(super) fn retract(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>) -> Option<Waker> {
        let waiter = waiter(self.list().value(node.as_mut()));
        let (was_woken, due) = (waiter.woken, flag(waiter.is_due()));
        if self.list().remove(node) {
            if due != 0 {
                self.raw.update(|word| word & !DUE);
            }
            self.note_waiters();
        }
        if !was_woken {
            return None;
        }
        let before = self.raw.update(|word| word & !WOKEN);
        // A holder will wake the next one.
        match before & OWNER {
            0 => self.wake_first(),
            _ => {
                self.note_holder(before);
                None
            }
        }
    }

    /// The step behind a release. Returns the waker to wake.
    fn pass_on(&mut self) -> Option<Waker> {
        let word = self.raw.word.load(Ordering::Relaxed);
        // As before `LIST` was set.
        if word & (OWNER | WOKEN) != 0 {
            return None;
        }
        if word & DUE != 0
            && let Some(waker) = self.hand_over()
        {
            return waker;
        }
        // Unknown, until a waiter looks again: the former owner no longer has it, and may itself wait for a waiter.
        self.note_holder(0);
        self.wake_first()
    }

    /// Makes the first waiter whose wait has not ended the owner, and returns its waker. The mutex is free, and `DUE`
    /// is set.
    fn hand_over(&mut self) -> Option<Option<Waker>> {
        let raw = self.raw;
        let Some(mut next) = self.list().accept() else {
            raw.update(|word| word & !DUE);
            return None;
        };
        let owner = waiter_in(next.slot()).owner;
        // First: as soon as the claim is won, the new owner may release the mutex.
        raw.update(|word| (word & !DUE) | owner);
        let waker = next.win();
        self.note_waiters();
        self.note_holder(owner);
        Some(waker)
    }

    /// Takes the waker of the first waiter whose wait has not ended, so that it tries again.
    #[inline]
    fn wake_first(&mut self) -> Option<Waker> {
        let waker = self.list().nudge(|slot| waiter_in(slot).woken = true);
        if waker.is_some() {
            self.raw.update(|word| word | WOKEN);
        }
        self.note_waiters();
        waker.flatten()
    }

    /// Notes the owner for reports, if a unit still waits.
    #[inline]
    fn note_holder(&mut self, owner: u64) {
        if !self.list().is_empty() {
            holders::note(self.raw, unit_of(owner));
        }
    }

    /// Clears `WAITERS` if no unit waits any longer.
    #[inline]
    fn note_waiters(&mut self) {
        if self.list().is_empty() {
            let before = self.raw.update(|word| word & !WAITERS);
            if before & WAITERS != 0 {
                holders::forget(self.raw);
            }
        }
    }
}

impl MutexWaiter {
    #[inline]
    fn is_due(&self) -> bool {
        self.passed_over >= MOST_PASSES
    }
}

#[inline]
fn flag(is_due: bool) -> u64 {
    if is_due { DUE } else { 0 }
}

#[inline]
fn waiter(offer: &mut Offer<MutexSlot>) -> &mut MutexWaiter {
    waiter_in(&mut offer.slot)
}

#[inline]
fn waiter_in(slot: &mut MutexSlot) -> &mut MutexWaiter {
    // SAFETY: *left*: callers pass the slot of a node that is, or was, in the list.
    unsafe { slot.assume_init_mut() }
}

impl Drop for Listed<'_> {
    #[inline]
    fn drop(&mut self) {
        self.access = None;
        // Release: pairs with the acquire in `listed`.
        self.raw.word.fetch_and(!LIST, Ordering::Release);
    }
}
