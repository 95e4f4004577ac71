//! A queue of callbacks that are ready, in the order in which they became so.
//!
//! Invariant: of each callback in it the queue holds the scheduler's claim. One that is dropped cancels
//! what is in it.

#![allow(unsafe_code)]

use super::{cell::CallbackPtr, phase::Take};
use crate::timer::entry::{EntryPtr, Links, Place};

/// The queue. That of a worker is touched inside the worker's gate only.
#[derive(Default)]
pub(crate) struct Fifo {
    first: Option<EntryPtr>,
    last: Option<EntryPtr>,
    len: usize,
}

impl Fifo {
    pub(crate) fn new() -> Fifo {
        Fifo::default()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a callback that is in no list, with the scheduler's claim.
    #[inline]
    pub(super) fn push(&mut self, callback: CallbackPtr) {
        self.append(callback, Place::READY);
    }

    /// As [`push`](Fifo::push), for a queue that no worker's gate guards.
    pub(super) fn push_apart(&mut self, callback: CallbackPtr) {
        self.append(callback, Place::OUT);
    }

    #[inline]
    fn append(&mut self, callback: CallbackPtr, slot: u16) {
        let entry = callback.entry();
        let before = self.last.replace(entry);
        let own = links(entry);
        own.next = None;
        own.prev = before;
        // SAFETY: claim: the queue holds one.
        unsafe { entry.get() }.set_slot(slot);
        match before {
            Some(before) => links(before).next = Some(entry),
            None => self.first = Some(entry),
        }
        self.len += 1;
    }

    /// Takes the first one off, with the scheduler's claim.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<CallbackPtr> {
        let entry = self.first?;
        let next = links(entry).next;
        self.first = next;
        match next {
            Some(next) => links(next).prev = None,
            None => self.last = None,
        }
        // SAFETY: claim: the queue held one.
        unsafe { entry.get() }.set_slot(Place::OUT);
        self.len -= 1;
        // SAFETY: only callbacks are pushed.
        Some(unsafe { CallbackPtr::of(entry) })
    }

    /// Takes off one that is in this queue, with the scheduler's claim.
    pub(super) fn remove(&mut self, entry: EntryPtr) {
        let Links { next, prev, .. } = *links(entry);
        match prev {
            Some(prev) => links(prev).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => links(next).prev = prev,
            None => self.last = prev,
        }
        // SAFETY: claim: the queue held one.
        unsafe { entry.get() }.set_slot(Place::OUT);
        self.len -= 1;
    }

    /// Takes all, so that no worker's gate guards them any more; O(n).
    pub(crate) fn take(&mut self) -> Fifo {
        let taken = std::mem::take(self);
        let mut next = taken.first;
        while let Some(entry) = next {
            next = links(entry).next;
            // SAFETY: claim: the queue holds one.
            unsafe { entry.get() }.set_slot(Place::OUT);
        }
        taken
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        while let Some(callback) = self.pop() {
            // SAFETY: the queue held the scheduler's claim.
            unsafe { discard(callback) };
        }
    }
}

/// Cancels a callback that is in no list.
///
/// # Safety
/// The caller has the scheduler's claim, which it gives up.
pub(super) unsafe fn discard(callback: CallbackPtr) {
    // SAFETY: the caller's promise.
    if unsafe { callback.head() }.entry.phase.take() == Take::Won {
        // SAFETY: closure: it was just taken.
        unsafe { callback.drop_body() };
    }
    // SAFETY: the caller's promise.
    unsafe { callback.release() };
}

fn links<'a>(entry: EntryPtr) -> &'a mut Links {
    // SAFETY: claim: callers pass entries that are in a queue or about to be.
    let entry = unsafe { entry.get() };
    // SAFETY: a queue is touched by one thread at a time, and no two links are held at once here.
    unsafe { &mut *entry.links.get() }
}
