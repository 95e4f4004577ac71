//! A queue of timer entries, first in first out: callbacks that are ready, or that were cancelled.
//!
//! Invariants:
//! - Of each entry in it the queue holds the scheduler's claim. The entries are callbacks; sleeps go elsewhere.
//! - A queue is emptied before it is dropped: what is left of a callback may be foreign code, and its owner decides
//!   where that runs.

#![allow(unsafe_code)]

use crate::timer::entry::{EntryLinks, EntryPlace, EntryPtr};

/// The queue. That of a worker is touched inside the lock of the worker's core only.
#[derive(Default)]
#[must_use = "a queue that is forgotten leaks its callbacks"]
pub(crate) struct EntryQueue {
    first: Option<EntryPtr>,
    last: Option<EntryPtr>,
    len: usize,
}

impl EntryQueue {
    pub(crate) fn new() -> EntryQueue {
        EntryQueue::default()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends an entry that is in no list, with the scheduler's claim.
    #[inline]
    pub(crate) fn push(&mut self, entry: EntryPtr) {
        self.append(entry, EntryPlace::READY);
    }

    /// As [`push`](EntryQueue::push), for a queue that no worker's lock guards.
    pub(crate) fn push_apart(&mut self, entry: EntryPtr) {
        self.append(entry, EntryPlace::OUT);
    }

    #[inline]
    fn append(&mut self, entry: EntryPtr, slot: u16) {
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
    pub(crate) fn pop(&mut self) -> Option<EntryPtr> {
        let entry = self.first?;
        let next = links(entry).next;
        self.first = next;
        match next {
            Some(next) => links(next).prev = None,
            None => self.last = None,
        }
        // SAFETY: claim: the queue held one.
        unsafe { entry.get() }.set_slot(EntryPlace::OUT);
        self.len -= 1;
        Some(entry)
    }

    /// Takes off one that is in this queue, with the scheduler's claim.
    pub(crate) fn remove(&mut self, entry: EntryPtr) {
        let EntryLinks { next, prev, .. } = *links(entry);
        match prev {
            Some(prev) => links(prev).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => links(next).prev = prev,
            None => self.last = prev,
        }
        // SAFETY: claim: the queue held one.
        unsafe { entry.get() }.set_slot(EntryPlace::OUT);
        self.len -= 1;
    }

    /// Takes all, so that no worker's lock guards them any more; O(n).
    pub(crate) fn take(&mut self) -> EntryQueue {
        let taken = std::mem::take(self);
        let mut next = taken.first;
        while let Some(entry) = next {
            next = links(entry).next;
            // SAFETY: claim: the queue holds one.
            unsafe { entry.get() }.set_slot(EntryPlace::OUT);
        }
        taken
    }
}

impl Drop for EntryQueue {
    fn drop(&mut self) {
        debug_assert!(self.is_empty(), "callbacks in a queue that is dropped leak");
    }
}

fn links<'a>(entry: EntryPtr) -> &'a mut EntryLinks {
    // SAFETY: claim: callers pass entries that are in a queue or about to be.
    let entry = unsafe { entry.get() };
    // SAFETY: a queue is touched by one thread at a time, and no two links are held at once here.
    unsafe { &mut *entry.links.get() }
}
