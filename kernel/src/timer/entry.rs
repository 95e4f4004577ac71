//! One timer: shared by the wheel that will fire it and the future that may cancel it first.
//!
//! States: `LINKED` (in a wheel) → `EXPIRING` (taken out by the worker that is about to fire it) →
//! `FIRED`; or `CANCELLED`, from the first two.
//!
//! Who frees the entry: the future, once it finds `FIRED` or has itself unlinked the entry inside the
//! gate; the worker, once it finds `CANCELLED`. Exactly one of them swaps second.
//!
//! The waker is touched by the worker alone while the entry is not cancelled, and moved out before
//! the swap to `FIRED`, so that the future may free the entry while the worker still wakes.

#![allow(unsafe_code)]

use std::{cell::UnsafeCell, ptr::NonNull, task::Waker};

use crate::{
    memory::Owned,
    sys::{AtomicU8, Ordering},
};

const LINKED: u8 = 0;
const EXPIRING: u8 = 1;
const FIRED: u8 = 2;
const CANCELLED: u8 = 3;

/// The state, apart from what it guards, so that a model can explore it.
pub(crate) struct EntryState(AtomicU8);

/// What the caller of a transition now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    /// Nothing: the other side frees the entry.
    Nothing,
    /// The caller owns the entry: it frees it.
    Free,
    /// The entry expires: the caller takes its waker, then calls [`EntryState::fire`].
    Fire,
    /// The entry has fired: the caller wakes the waker that it took.
    Wake,
}

impl EntryState {
    pub(crate) fn new() -> EntryState {
        EntryState(AtomicU8::new(LINKED))
    }

    /// The worker unlinked the entry because its time has come, or in a sweep.
    pub(crate) fn expire(&self) -> Owes {
        // Acquire: pairs with the swap in `cancel`, before the entry is freed.
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(LINKED, EXPIRING, order.0, order.1) {
            Ok(_) => Owes::Fire,
            Err(_) => Owes::Free,
        }
    }

    /// The worker took the waker of an entry that expires.
    pub(crate) fn fire(&self) -> Owes {
        // Release: pairs with the load in `has_fired`. Acquire: as in `expire`.
        match self.0.swap(FIRED, Ordering::AcqRel) {
            CANCELLED => Owes::Free,
            _ => Owes::Wake,
        }
    }

    /// The future no longer wants the entry, and could not unlink it itself.
    pub(crate) fn cancel(&self) -> Owes {
        // Release: the worker frees after this thread's last access. Acquire: the other way round.
        match self.0.swap(CANCELLED, Ordering::AcqRel) {
            FIRED => Owes::Free,
            _ => Owes::Nothing,
        }
    }

    /// Whether the entry is still in its wheel. Only inside the gate of that wheel's worker.
    pub(crate) fn is_linked(&self) -> bool {
        self.0.load(Ordering::Acquire) == LINKED
    }

    /// Whether the wheel still holds an entry that nobody wants. Only inside the gate.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }

    /// Whether the time has come.
    pub(crate) fn has_fired(&self) -> bool {
        self.0.load(Ordering::Acquire) == FIRED
    }
}

/// The entry.
pub(crate) struct Entry {
    pub(crate) state: EntryState,
    /// The list that the entry is in. Only inside the gate.
    pub(crate) links: UnsafeCell<Links>,
    /// The tick at which to fire. Never changes.
    pub(crate) deadline: u64,
    /// Whose wheel the entry is in. Never changes.
    pub(crate) worker: usize,
    waker: UnsafeCell<Option<Waker>>,
}

/// Neighbours in a slot of the wheel.
pub(crate) struct Links {
    pub(crate) next: Option<EntryPtr>,
    pub(crate) prev: Option<EntryPtr>,
    /// Level and slot, as one index.
    pub(crate) slot: usize,
}

/// The address of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryPtr(NonNull<Entry>);

// SAFETY: an address; the protocol at the head of this file says who may follow it.
unsafe impl Send for EntryPtr {}
// SAFETY: as above.
unsafe impl Sync for EntryPtr {}

impl EntryPtr {
    /// A linked entry; the wheel's claim and the future's are this one pointer.
    pub(crate) fn new(worker: usize, deadline: u64, waker: Waker) -> EntryPtr {
        let entry = Entry {
            state: EntryState::new(),
            links: UnsafeCell::new(Links {
                next: None,
                prev: None,
                slot: 0,
            }),
            deadline,
            worker,
            waker: UnsafeCell::new(Some(waker)),
        };
        EntryPtr(Owned::new(entry).into_raw())
    }

    /// # Safety
    /// The entry was not freed: the caller has a claim by the protocol.
    pub(crate) unsafe fn get<'a>(self) -> &'a Entry {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// The caller unlinked the entry and was told [`Owes::Fire`], and has not fired it yet.
    pub(crate) unsafe fn take_waker(self) -> Option<Waker> {
        // SAFETY: the caller's promise: nobody else touches the waker now.
        let entry = unsafe { self.get() };
        // SAFETY: as above.
        unsafe { (*entry.waker.get()).take() }
    }

    /// # Safety
    /// The caller was told [`Owes::Free`], or has unlinked the entry inside the gate.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller's promise: it alone still has a claim.
        drop(unsafe { Owned::from_raw(self.0) });
    }
}
