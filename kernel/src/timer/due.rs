//! Timers that have left a wheel because they are due: sleeps to fire, and cancelled callbacks. Other callbacks go to
//! the worker's queue of ready callbacks.

#![allow(unsafe_code)]

use crate::timer::{
    entry::{EntryPtr, TimerKind},
    entry_queue::EntryQueue,
};

/// Sleeps that are due, and callbacks that were cancelled. The sleeps are woken, and the callbacks dropped, outside
/// the worker's lock, because wakers and closures may run user code.
#[must_use]
#[derive(Default)]
pub(crate) struct Due {
    pub(crate) sleeps: Vec<EntryPtr>,
    pub(crate) cancelled: EntryQueue,
    /// How many of the cancelled callbacks were counted as cancelled timers.
    pub(crate) counted: isize,
}

impl Due {
    /// Adds a timer that left the wheel. A callback that was not cancelled goes to `ready` instead, the queue of the
    /// worker whose lock the caller holds.
    #[inline]
    pub(crate) fn add(&mut self, entry: EntryPtr, ready: &mut EntryQueue) {
        // SAFETY: an entry from the wheel is alive until the wheel's claim is given up.
        let timer = unsafe { entry.get() };
        if timer.kind == TimerKind::Sleep {
            return self.sleeps.push(entry);
        }
        match timer.phase.is_taken() {
            true => {
                self.counted += isize::from(timer.phase.is_counted());
                self.cancelled.push_unlisted(entry);
            }
            false => ready.push(entry),
        }
    }
}
