//! Callbacks that were started by threads without the worker's right, on their way to the worker.
//!
//! To enter a worker's gate costs an outsider microseconds, which is too much for each callback. So an
//! outsider leaves them here, and the worker takes them at its next look around, or wherever it is looked
//! after (the monitor, the shutdown).
//!
//! Invariants:
//! - Of each callback in it the stack holds the scheduler's claim; the links are its owner's: the pusher's
//!   before the push, the taker's after the taking.
//! - It is taken and closed inside the worker's gate only, so by one thread at a time.
//! - Whoever pushes onto an empty one tells the worker, which does not sleep while there are arrivals.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::{
    sys::{AtomicPtr, Ordering},
    timer::entry::{Entry, EntryLinks, EntryPtr},
};

/// Stands for a stack that is closed; no entry has this address.
const CLOSED: *mut Entry = ptr::without_provenance_mut(1);

/// The stack.
pub(crate) struct Arrivals(AtomicPtr<Entry>);

/// What a push found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Nothing: the caller tells the worker.
    Nothing,
    /// Others, of which the worker was told.
    Others,
    /// The stack is closed: the entry still belongs to the caller.
    Closed,
}

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds an entry that is in no list. Any thread; O(1).
    #[must_use]
    pub(crate) fn push(&self, entry: EntryPtr) -> Pushed {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            if head == CLOSED {
                return Pushed::Closed;
            }
            links(entry).next = NonNull::new(head).map(EntryPtr::from_raw);
            // Release: pairs with the swaps in `take` and `close`, which see the entry and its links.
            let new = entry.as_raw().as_ptr();
            let order = (Ordering::Release, Ordering::Relaxed);
            match self.0.compare_exchange_weak(head, new, order.0, order.1) {
                Ok(_) if head.is_null() => return Pushed::Nothing,
                Ok(_) => return Pushed::Others,
                Err(now) => head = now,
            }
        }
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: the lock under which a sleeper is announced and told orders it for who is about to
        // sleep; others look again.
        let head = self.0.load(Ordering::Relaxed);
        head.is_null() || head == CLOSED
    }

    /// Whether it was closed. Exact inside the gate.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSED
    }

    /// Takes all, in the order in which they came. Inside the gate.
    pub(crate) fn take(&self) -> Arrived {
        match self.is_empty() {
            true => Arrived(None),
            // Acquire: pairs with `push`. Nobody closes it meanwhile: that too is done inside the gate.
            false => Arrived::reversed(self.0.swap(ptr::null_mut(), Ordering::Acquire)),
        }
    }

    /// Takes all, for the last time: nothing can be added any more. Inside the gate.
    pub(crate) fn close(&self) -> Arrived {
        // Acquire: as in `take`.
        Arrived::reversed(self.0.swap(CLOSED, Ordering::Acquire))
    }
}

/// Entries taken off, first come first; with the scheduler's claims.
pub(crate) struct Arrived(Option<EntryPtr>);

impl Arrived {
    /// Turns a stack round.
    fn reversed(head: *mut Entry) -> Arrived {
        let mut chain = Arrived(None);
        if head == CLOSED {
            return chain;
        }
        let mut rest = NonNull::new(head).map(EntryPtr::from_raw);
        while let Some(entry) = rest {
            rest = std::mem::replace(&mut links(entry).next, chain.0.replace(entry));
        }
        chain
    }
}

impl Iterator for Arrived {
    type Item = EntryPtr;

    fn next(&mut self) -> Option<EntryPtr> {
        let entry = self.0?;
        self.0 = links(entry).next.take();
        Some(entry)
    }
}

fn links<'a>(entry: EntryPtr) -> &'a mut EntryLinks {
    // SAFETY: claim: callers have the scheduler's.
    let entry = unsafe { entry.get() };
    // SAFETY: the links are the pusher's or the taker's, and no two are held at once here.
    unsafe { &mut *entry.links.get() }
}
