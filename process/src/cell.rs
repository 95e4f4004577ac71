//! A cell for one value, from a unit that fills it to one that waits for it: notices of monitors.
//!
//! The lock is held for some instructions, and never while user code runs: wakers are woken and values are dropped
//! outside of it.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use weald_kernel::note_wait;
use weald_sync::reason::Reason;

enum Slot<T> {
    Empty(Option<Waker>),
    Full(T),
    /// The value was taken.
    Closed,
}

pub(crate) struct Cell<T>(Mutex<Slot<T>>);

impl<T> Cell<T> {
    pub(crate) fn new() -> Cell<T> {
        Cell(Mutex::new(Slot::Empty(None)))
    }

    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the value in, and wakes the job that waits for it. Returns the value if nobody will take it.
    pub(crate) fn fill(&self, value: T) -> Result<(), T> {
        let mut slot = self.lock();
        match &mut *slot {
            Slot::Empty(waker) => {
                let waker = waker.take();
                *slot = Slot::Full(value);
                drop(slot);
                waker.into_iter().for_each(Waker::wake);
                Ok(())
            }
            Slot::Full(_) | Slot::Closed => Err(value),
        }
    }

    /// Whether the value is there; if not, `cx` is woken when it is. Notes that the caller waits for `reason`.
    pub(crate) fn poll_full(&self, cx: &mut Context<'_>, reason: Reason) -> Poll<()> {
        let mut slot = self.lock();
        let Slot::Empty(known) = &mut *slot else {
            return Poll::Ready(());
        };
        if known
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            note_wait(reason);
            return Poll::Pending;
        }
        // A waker is user code: cloned and dropped outside the lock.
        drop(slot);
        let waker = cx.waker().clone();
        let mut slot = self.lock();
        let Slot::Empty(known) = &mut *slot else {
            drop(slot);
            return Poll::Ready(());
        };
        let former = known.replace(waker);
        drop(slot);
        drop(former);
        note_wait(reason);
        Poll::Pending
    }

    /// Takes the value, if it is there, and closes the cell if so.
    pub(crate) fn take(&self) -> Option<T> {
        let mut slot = self.lock();
        if matches!(*slot, Slot::Empty(_)) {
            return None;
        }
        match mem::replace(&mut *slot, Slot::Closed) {
            Slot::Full(value) => Some(value),
            Slot::Empty(_) | Slot::Closed => None,
        }
    }
}
