//! A queue of timer entries, first in first out: callbacks that are ready, or that were cancelled.
//!
//! Invariants:
//! - The queue holds the scheduler's claim to each entry in it. The entries are callbacks; sleeps go elsewhere.
//! - A queue is emptied before it is dropped: dropping a callback may run user code, and the owner of the queue
//!   decides where.

#![allow(unsafe_code)]

use crate::timer::entry::{EntryLinks, EntryPlace, EntryPtr};

/// The queue. A worker's queue is touched only inside the worker's lock.
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
    pub(crate) fn push_unlisted(&mut self, entry: EntryPtr) {
        self.append(entry, EntryPlace::UNLISTED);
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

    /// The first entry. The queue keeps the scheduler's claim.
    pub(crate) fn first(&self) -> Option<EntryPtr> {
        self.first
    }

    /// Takes the first entry, with the scheduler's claim.
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

    /// Removes an entry that is in this queue, with the scheduler's claim.
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

    /// Takes all entries into a queue that no worker's lock guards; O(n).
    pub(crate) fn take(&mut self) -> EntryQueue {
        let taken = std::mem::take(self);
        let mut next = taken.first;
        while let Some(entry) = next {
            next = links(entry).next;
            // SAFETY: claim: the queue holds one.
            unsafe { entry.get() }.set_slot(EntryPlace::UNLISTED);
        }
        taken
    }
}

impl EntryQueue {
    /// Takes the first entries, at most `most`, into a queue that no worker's lock guards.
    pub(crate) fn take_first(&mut self, most: usize) -> EntryQueue {
        let mut taken = EntryQueue::new();
        while taken.len() < most
            && let Some(entry) = self.pop()
        {
            taken.push_unlisted(entry);
        }
        taken
    }
}

impl Drop for EntryQueue {
    fn drop(&mut self) {
        debug_assert!(self.is_empty(), "dropping a queue leaks its callbacks");
    }
}

fn links<'a>(entry: EntryPtr) -> &'a mut EntryLinks {
    // SAFETY: claim: callers pass entries that are in a queue or about to enter one.
    let entry = unsafe { entry.get() };
    // SAFETY: a queue is touched by one thread at a time, and no two links are held at once here.
    unsafe { &mut *entry.links.get() }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_first_entries_are_taken_in_order_and_the_rest_stays() {
        let entries: Vec<_> = (0..10)
            .map(|tick| EntryPtr::new(0, tick, Waker::noop().clone()))
            .collect();
        let mut queue = EntryQueue::new();
        entries.iter().for_each(|entry| queue.push(*entry));
        let mut taken = queue.take_first(4);
        assert_eq!((taken.len(), queue.len()), (4, 6));
        for entry in &entries[..4] {
            assert!(taken.pop() == Some(*entry));
        }
        let mut rest = queue.take_first(100);
        for entry in &entries[4..] {
            assert!(rest.pop() == Some(*entry));
        }
        assert!(rest.is_empty() && queue.is_empty() && taken.is_empty());
        for entry in entries {
            // SAFETY: the entry is in no queue, and nothing else knows it.
            unsafe { entry.free() };
        }
    }
}
