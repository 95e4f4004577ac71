//! What came out of a wheel, apart from callbacks that are ready.

#![allow(unsafe_code)]

use crate::timer::{
    entry::{EntryPtr, TimerKind},
    entry_queue::EntryQueue,
};

/// The sleeps whose time has come, and callbacks that were cancelled. Both are told, or freed, outside of the worker's
/// lock, because what they leave behind may be foreign code.
#[must_use]
#[derive(Default)]
pub(crate) struct Due {
    pub(crate) sleeps: Vec<EntryPtr>,
    pub(crate) cancelled: EntryQueue,
}

impl Due {
    /// Takes a timer; a callback goes to `ready`, the queue of the worker inside whose lock the caller is.
    #[inline]
    pub(crate) fn add(&mut self, entry: EntryPtr, ready: &mut EntryQueue) {
        // SAFETY: what was in the wheel is alive until the wheel's claim is given up.
        let timer = unsafe { entry.get() };
        if timer.kind == TimerKind::Sleep {
            return self.sleeps.push(entry);
        }
        match timer.phase.is_taken() {
            true => self.cancelled.push_apart(entry),
            false => ready.push(entry),
        }
    }

    /// How many callbacks were cancelled.
    pub(crate) fn count_cancelled(&self) -> isize {
        isize::try_from(self.cancelled.len()).expect("there are not so many in memory")
    }
}
