//! The word of a mutex and its transitions, without the guarded value.
//!
//! The word holds the owner's number in the middle, a name, and the flags below. Invariants:
//! - `LIST` is held by the thread that touches the list, for a few instructions.
//! - `WAITERS` is set while the list is not empty, and changed only under `LIST`.
//! - `WOKEN` is set while the first waiter was woken to try again and has not tried yet; then its node, and no
//!   other, says so. It is changed only under `LIST`.
//! - A release that finds `WAITERS` and not `WOKEN` must wake the first waiter, or hand the lock over.
//!
//! Orderings: each exchange that sets an owner acquires; each that clears one releases; `LIST` is a lock of
//! its own and does both.

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

/// How often a waiter may be passed over by units that came later.
const MOST_PASSES: u32 = 8;
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
        id => id & OWNER,
    }
}

/// The calling thread's number as an owner.
#[cold]
fn this_thread() -> u64 {
    (unit::current() as u64 & OWNER) | THREAD
}

/// The unit that a word's owner is, if it is one.
fn unit_of(word: u64) -> Option<usize> {
    let is_unit = word & OWNER != 0 && word & THREAD == 0;
    is_unit.then(|| usize::try_from(word & OWNER).expect("an address fits"))
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
        word & OWNER == 0 && self.exchange(word, word | me())
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
        let word = self.word.load(Ordering::Relaxed);
        // The first waiter was not woken yet: the list decides.
        let must_wake = word & (WAITERS | WOKEN) == WAITERS;
        if must_wake || !self.exchange(word, word & !OWNER) {
            self.unlock_late();
        }
    }

    #[inline(always)]
    fn exchange(&self, word: u64, new: u64) -> bool {
        self.word
            .compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn unlock_late(&self) {
        let waker = self.listed().release();
        if let Some(waker) = waker {
            crate::queue::wake::wake(waker);
        }
    }

    /// Takes the right to the list.
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
    pub(super) fn list(&mut self) -> &mut Offers<MutexSlot> {
        let access = self
            .access
            .as_ref()
            .expect("there is access until the drop");
        // SAFETY: *listed*.
        unsafe { access.deref() }
    }

    /// Changes the word until `change` refuses; returns the word before.
    fn update(&self, mut change: impl FnMut(u64) -> Option<u64>) -> u64 {
        let mut word = self.raw.word.load(Ordering::Relaxed);
        while let Some(new) = change(word) {
            let exchanged =
                self.raw
                    .word
                    .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed);
            match exchanged {
                Ok(_) => break,
                Err(found) => word = found,
            }
        }
        word
    }

    /// Takes the mutex if it is free, else sets `WAITERS`. True if it was taken.
    pub(super) fn take_or_set_waiters(&mut self) -> bool {
        let before = self.update(|word| {
            Some(match word & OWNER {
                0 => word | me(),
                _ => word | WAITERS,
            })
        });
        let taken = before & OWNER == 0;
        if !taken && before & WAITERS == 0 {
            holders::note(self.raw, unit_of(before));
        }
        taken
    }

    /// Leaves an offer. Called after [`Listed::take_or_set_waiters`] returned false.
    pub(super) fn leave(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>, ticket: &Ticket<'_>) {
        self.list().value(node.as_mut()).slot.write(MutexWaiter {
            owner: me(),
            passed_over: 0,
            woken: false,
        });
        self.list().leave(node, ticket);
    }

    /// A waiter tries again. True if it is now the owner, and no longer in the list.
    pub(super) fn try_again(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>) -> bool {
        assert!(node.is_bound(), "a waiter that tries again was in the list");
        let was_woken = std::mem::take(&mut waiter(self.list().value(node.as_mut())).woken);
        let woken = if was_woken { WOKEN } else { 0 };
        let before = self.update(|word| {
            Some(match word & OWNER {
                0 => (word | me()) & !woken,
                _ => word & !woken,
            })
        });
        if before & OWNER == 0 {
            self.list().remove(node);
            self.note_waiters();
            self.note_holder(me());
            return true;
        }
        if was_woken {
            self.note_holder(before);
            waiter(self.list().value(node)).passed_over += 1;
        }
        false
    }

    /// A waiter gives up. Returns the waker of the waiter to wake in its place.
    pub(super) fn retract(&mut self, mut node: Pin<&mut OfferNode<MutexSlot>>) -> Option<Waker> {
        let was_woken = waiter(self.list().value(node.as_mut())).woken;
        if self.list().remove(node) {
            self.note_waiters();
        }
        if !was_woken {
            return None;
        }
        let before = self.update(|word| Some(word & !WOKEN));
        // A holder will wake the next one.
        match before & OWNER {
            0 => self.wake_first(),
            _ => {
                self.note_holder(before);
                None
            }
        }
    }

    /// The owner's release. Returns the waker to wake.
    fn release(&mut self) -> Option<Waker> {
        let word = self.raw.word.load(Ordering::Relaxed);
        let is_due = self
            .list()
            .front()
            .is_some_and(|first| waiter(first).passed_over >= MOST_PASSES);
        if is_due && word & WOKEN == 0 {
            let handed = self
                .list()
                .accept()
                .map(|mut next| (waiter_in(next.slot()).owner, next.win()));
            if let Some((next, waker)) = handed {
                self.update(|word| Some((word & !OWNER) | next));
                self.note_waiters();
                self.note_holder(next);
                return waker;
            }
        }
        // Unknown, until a waiter looks again: the former owner no longer has it, and may itself wait for a waiter.
        self.note_holder(0);
        self.update(|word| Some(word & !OWNER));
        match word & WOKEN {
            0 => self.wake_first(),
            _ => None,
        }
    }

    /// Takes the waker of the first waiter whose wait has not ended, so that it tries again.
    fn wake_first(&mut self) -> Option<Waker> {
        let waker = self.list().nudge(|slot| waiter_in(slot).woken = true);
        if waker.is_some() {
            self.update(|word| Some(word | WOKEN));
        }
        self.note_waiters();
        waker.flatten()
    }

    /// Notes the owner for reports, if a unit still waits.
    fn note_holder(&mut self, owner: u64) {
        if !self.list().is_empty() {
            holders::note(self.raw, unit_of(owner));
        }
    }

    /// Clears `WAITERS` if no unit waits any longer.
    fn note_waiters(&mut self) {
        if self.list().is_empty() {
            let before = self.update(|word| Some(word & !WAITERS));
            if before & WAITERS != 0 {
                holders::forget(self.raw);
            }
        }
    }
}

fn waiter(offer: &mut Offer<MutexSlot>) -> &mut MutexWaiter {
    waiter_in(&mut offer.slot)
}

fn waiter_in(slot: &mut MutexSlot) -> &mut MutexWaiter {
    // SAFETY: *left*: callers pass the slot of a node that is, or was, in the list.
    unsafe { slot.assume_init_mut() }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.access = None;
        // Release: pairs with the acquire in `listed`.
        self.raw.word.fetch_and(!LIST, Ordering::Release);
    }
}
