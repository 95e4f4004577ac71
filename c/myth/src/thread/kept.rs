//! The blocks of threads that end while the runtime does, and that nobody joins: a list through the blocks, until it is
//! known that nobody asks for them.
//!
//! # Safety
//! *Three holds*, at the head of [`super`]: a thread in the list counts as detached, and has not set `ENDED`.

#![allow(unsafe_code)]

use std::{
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

use super::{STORED, Thread, give_back};

static FIRST: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());

impl Thread {
    /// Keeps a thread whose code has ended.
    ///
    /// # Safety
    /// *Three holds*: [`State::end`](super::state::State::end) has told the caller to.
    pub(super) unsafe fn keep(thread: *const Thread) {
        let mut next = FIRST.load(Relaxed);
        loop {
            // What was passed to its function is of no use any longer.
            // SAFETY: the caller's promise.
            unsafe { &*thread }.argument.set(next.cast());
            // Pairs with the exchange in `free_kept`.
            match FIRST.compare_exchange_weak(next, thread.cast_mut(), AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }

    /// Frees them, or loses them if somebody may still ask for one.
    ///
    /// # Safety
    /// *Three holds*: `are_unused` only if no thread of the runtime runs any longer.
    pub(crate) unsafe fn free_kept(are_unused: bool) {
        let mut thread: *const Thread = FIRST.swap(ptr::null_mut(), Acquire);
        // SAFETY: `keep` took it over.
        while let Some(this) = unsafe { thread.as_ref() } {
            let next = this.argument.get().cast_const().cast();
            if are_unused && this.state.has(STORED) {
                // SAFETY: the caller's promise.
                unsafe { give_back(thread) };
            }
            thread = next;
        }
    }
}
