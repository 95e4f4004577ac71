//! One timer: shared by the wheel that will fire it and by its future or handle, which may cancel it first.
//!
//! An entry is what a wheel knows of a timer. It is at the beginning of a larger block: that of a
//! [`TimerKind::Sleep`], which adds a waker and is described here, or of a [`TimerKind::Callback`], which adds a
//! closure ([`crate::callback`]).
//!
//! States: `LINKED` (in a wheel, or in the [arrivals](crate::timer::arrivals) of a worker, which must be admitted into
//! its wheel before anybody unlinks the entry) → `EXPIRING` (taken out by the thread that is about to fire it) →
//! `FIRED`. A cancel leads from `LINKED` or `EXPIRING` to `CANCELLED`.
//!
//! The future frees the entry if it finds `FIRED`, or has unlinked the entry itself inside the worker's lock. The
//! worker frees it if it finds `CANCELLED`. The side that swaps second frees.
//!
//! While the entry is not cancelled, only the worker touches the waker. It moves the waker out before the swap to
//! `FIRED`, so that the future may free the entry while the worker still wakes.

#![allow(unsafe_code)]

use std::{cell::UnsafeCell, ptr::NonNull, task::Waker};

use crate::{
    memory::Owned,
    sys::{AtomicU8, AtomicU32, Ordering},
    timer::phase::{PhaseWord, Take},
};

const LINKED: u8 = 0;
const EXPIRING: u8 = 1;
const FIRED: u8 = 2;
const CANCELLED: u8 = 3;

/// The state, separate from what it guards, so that a model can explore it.
pub(crate) struct EntryState(AtomicU8);

/// What the caller of a transition now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOwes {
    /// Nothing: the other side frees the entry.
    Nothing,
    /// The caller owns the entry and frees it.
    Free,
    /// The entry is expiring: the caller takes its waker, then calls [`EntryState::fire`].
    Fire,
    /// The entry has fired: the caller wakes the waker that it took.
    Wake,
}

impl EntryState {
    pub(crate) fn new() -> EntryState {
        EntryState(AtomicU8::new(LINKED))
    }

    /// The worker unlinked the entry because it is due, or in a sweep.
    pub(crate) fn expire(&self) -> TimerOwes {
        // Acquire: pairs with the swap in `cancel`, before the entry is freed.
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(LINKED, EXPIRING, order.0, order.1) {
            Ok(_) => TimerOwes::Fire,
            Err(_) => TimerOwes::Free,
        }
    }

    /// The worker took the waker of an expiring entry.
    pub(crate) fn fire(&self) -> TimerOwes {
        // Release: pairs with the load in `has_fired`. Acquire: as in `expire`.
        match self.0.swap(FIRED, Ordering::AcqRel) {
            CANCELLED => TimerOwes::Free,
            _ => TimerOwes::Wake,
        }
    }

    /// The future no longer wants the entry, and could not unlink it itself.
    pub(crate) fn cancel(&self) -> TimerOwes {
        // Release: the worker frees the entry after this thread's last access. Acquire: this thread frees it after the
        // worker's.
        match self.0.swap(CANCELLED, Ordering::AcqRel) {
            FIRED => TimerOwes::Free,
            _ => TimerOwes::Nothing,
        }
    }

    /// Whether the entry is still in its wheel. Only inside the lock of that wheel's worker, after its arrivals were
    /// admitted.
    pub(crate) fn is_linked(&self) -> bool {
        self.0.load(Ordering::Acquire) == LINKED
    }

    /// Whether the entry was cancelled while in its wheel. Only inside the worker's lock.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }

    /// Whether the entry has fired.
    pub(crate) fn has_fired(&self) -> bool {
        self.0.load(Ordering::Acquire) == FIRED
    }
}

/// What a wheel knows of a timer, at the beginning of the timer's block.
#[repr(C)]
pub(crate) struct Entry {
    /// The list that the entry is in, and its deadline. Only inside the worker's lock, or by the only thread that has
    /// the entry.
    pub(crate) links: UnsafeCell<EntryLinks>,
    /// Worker and slot; see [`EntryPlace`].
    place: AtomicU32,
    pub(crate) state: EntryState,
    /// What the block is. Never changes.
    pub(crate) kind: TimerKind,
    /// For callbacks only.
    pub(crate) phase: PhaseWord,
}

/// The deadline of a callback that is ready at once.
pub(crate) const READY_NOW: u64 = u64::MAX;

/// The bits of a place that name the slot.
const SLOT: u32 = 0xffff;

/// What kind of block an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// A future's timer.
    Sleep,
    /// A closure that runs at its deadline.
    Callback,
}

/// Neighbours in a slot of the wheel, and the step of the clock at which to fire.
pub(crate) struct EntryLinks {
    pub(crate) next: Option<EntryPtr>,
    pub(crate) prev: Option<EntryPtr>,
    pub(crate) deadline: u64,
}

/// Where an entry is: its worker and its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    /// The worker whose list the entry is in, or was last.
    pub(crate) worker: u16,
    /// Level and slot of the wheel as one index, or one of the constants below.
    pub(crate) slot: u16,
}

impl EntryPlace {
    /// In the worker's queue of callbacks that are ready.
    pub(crate) const READY: u16 = u16::MAX - 1;
    /// In a queue of callbacks that no worker's lock guards: ready ones on their way to another worker, or cancelled
    /// ones.
    pub(crate) const UNLISTED: u16 = u16::MAX - 2;
    /// In no queue, but perhaps among the arrivals.
    pub(crate) const OUT: u16 = u16::MAX;
}

impl Entry {
    pub(crate) fn new(kind: TimerKind, worker: usize, deadline: u64) -> Entry {
        Entry {
            links: UnsafeCell::new(EntryLinks {
                next: None,
                prev: None,
                deadline,
            }),
            place: AtomicU32::new(word(worker, EntryPlace::OUT)),
            state: EntryState::new(),
            kind,
            phase: PhaseWord::new(),
        }
    }

    /// Where the entry is. Exact inside the lock of the worker that it names; outside, only the worker of a sleep is
    /// exact, because it never changes.
    #[inline]
    pub(crate) fn place(&self) -> EntryPlace {
        // Relaxed: the worker's lock orders it, and outside nothing depends on it.
        let place = self.place.load(Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "two halves of a word")]
        let (worker, slot) = ((place >> 16) as u16, place as u16);
        EntryPlace { worker, slot }
    }

    /// Whether the entry was cancelled while in its wheel. Only inside the worker's lock.
    pub(crate) fn is_cancelled(&self) -> bool {
        match self.kind {
            TimerKind::Sleep => self.state.is_cancelled(),
            TimerKind::Callback => self.phase.is_taken(),
        }
    }

    /// Takes a callback from the scheduler. It counts as a cancelled timer unless it is ready, and so in no wheel. Its
    /// place may be read late; then the count is wrong until the callback is found.
    pub(crate) fn take(&self) -> Take {
        let is_ready = matches!(self.place().slot, EntryPlace::READY | EntryPlace::UNLISTED);
        match is_ready {
            true => self.phase.take(),
            false => self.phase.take_counted(),
        }
    }

    /// Sets the list. Inside the lock of the entry's worker.
    #[inline]
    pub(crate) fn set_slot(&self, slot: u16) {
        // Relaxed: as in `place`; no other thread writes it meanwhile.
        let worker = self.place.load(Ordering::Relaxed) & !SLOT;
        let place = worker | u32::from(slot);
        self.place.store(place, Ordering::Relaxed);
    }

    /// Gives the entry, which is in no list, to a worker. Inside the lock of that worker, or before the entry arrives
    /// there.
    #[inline]
    pub(crate) fn set_worker(&self, worker: usize) {
        self.place
            .store(word(worker, EntryPlace::OUT), Ordering::Relaxed);
    }
}

#[inline]
fn word(worker: usize, slot: u16) -> u32 {
    let worker = u16::try_from(worker).expect("there are fewer workers than 65,536");
    u32::from(worker) << 16 | u32::from(slot)
}

/// The block of a future's timer.
#[repr(C)]
struct Timer {
    entry: Entry,
    waker: UnsafeCell<Option<Waker>>,
}

/// The address of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryPtr(NonNull<Entry>);

// SAFETY: an address; the protocol at the head of this file says when it may be dereferenced.
unsafe impl Send for EntryPtr {}
// SAFETY: as above.
unsafe impl Sync for EntryPtr {}

impl EntryPtr {
    /// A new sleep, which counts as linked. The wheel and the future both hold the returned pointer.
    pub(crate) fn new(worker: usize, deadline: u64, waker: Waker) -> EntryPtr {
        let timer = Timer {
            entry: Entry::new(TimerKind::Sleep, worker, deadline),
            waker: UnsafeCell::new(Some(waker)),
        };
        EntryPtr(Owned::new(timer).into_raw().cast())
    }

    /// The entry at the beginning of a block.
    pub(crate) fn from_raw(entry: NonNull<Entry>) -> EntryPtr {
        EntryPtr(entry)
    }

    pub(crate) fn as_raw(self) -> NonNull<Entry> {
        self.0
    }

    /// # Safety
    /// The entry was not freed: the caller has a claim to it by the protocol.
    pub(crate) unsafe fn get<'a>(self) -> &'a Entry {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// The entry is a sleep's. The caller unlinked it, got [`TimerOwes::Fire`], and has not fired it yet; or it got
    /// [`TimerOwes::Free`], and has not freed it yet.
    pub(crate) unsafe fn take_waker(self) -> Option<Waker> {
        // SAFETY: a sleep's entry is at the beginning of a timer, and no other thread touches the waker now.
        let timer = unsafe { self.0.cast::<Timer>().as_ref() };
        // SAFETY: as above.
        unsafe { (*timer.waker.get()).take() }
    }

    /// # Safety
    /// The entry is a sleep's, and the caller got [`TimerOwes::Free`], or has unlinked the entry inside the worker's
    /// lock.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller's promise: only it still has a claim.
        drop(unsafe { Owned::from_raw(self.0.cast::<Timer>()) });
    }
}
