//! Arrivals: timers that foreign threads started, callbacks and sleeps, on their way to a worker.
//!
//! To enter a worker's biased lock costs a foreign thread microseconds, too much to pay for each timer, and the worker
//! waits if the system stops the thread inside. So a foreign thread pushes timers here, and the worker takes them at
//! its next look around, or another thread does so for it (the monitor, the shutdown).
//!
//! Invariants:
//! - The stack holds the scheduler's claim to each entry in it. A sleep in it counts as linked. The links belong to the
//!   pusher before the push, and to the taker afterwards.
//! - The stack is taken and closed only inside the worker's lock, so by one thread at a time.
//! - Each thread that pushes then wakes the worker, which does not sleep while there are arrivals. It does not rely on
//!   the thread that pushed before it: the system may have stopped that one in between.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::{
    sys::{AtomicPtr, Ordering},
    timer::entry::{Entry, EntryLinks, EntryPtr},
};

/// The head of a closed stack; no entry has this address.
const CLOSED: *mut Entry = ptr::without_provenance_mut(1);

/// The stack.
pub(crate) struct Arrivals(AtomicPtr<Entry>);

/// Whether an entry was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is in the stack: the caller wakes the worker.
    Arrived,
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
                Ok(_) => return Pushed::Arrived,
                Err(now) => head = now,
            }
        }
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: for a worker that is about to sleep, the fence in `Sleepers::prepare` orders this load; other
        // callers check again.
        let head = self.0.load(Ordering::Relaxed);
        head.is_null() || head == CLOSED
    }

    /// Whether the stack was closed. Exact inside the worker's lock.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSED
    }

    /// Takes all entries, in order of arrival. Inside the worker's lock.
    pub(crate) fn take(&self) -> Arrived {
        match self.is_empty() {
            true => Arrived(None),
            // Acquire: pairs with `push`. The stack is not closed meanwhile, because that happens inside the lock too.
            false => Arrived::reversed(self.0.swap(ptr::null_mut(), Ordering::Acquire)),
        }
    }

    /// Takes all entries for the last time: no more can be pushed. Inside the worker's lock.
    pub(crate) fn close(&self) -> Arrived {
        // Acquire: as in `take`.
        Arrived::reversed(self.0.swap(CLOSED, Ordering::Acquire))
    }
}

/// Entries that were taken, in order of arrival, with the scheduler's claims.
pub(crate) struct Arrived(Option<EntryPtr>);

impl Arrived {
    /// Reverses a stack.
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
    // SAFETY: claim: callers have the scheduler's claim.
    let entry = unsafe { entry.get() };
    // SAFETY: the links are the pusher's or the taker's, and no two are held at once here.
    unsafe { &mut *entry.links.get() }
}
