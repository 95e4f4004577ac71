//! Waking: the one place where wakers, which are user code, are called.
//!
//! A waker that panics stops nobody: the others of the same round are woken, the tool's state stays whole,
//! and who released the tool goes on. The panic hook has told of it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

/// Wakes. Called by who holds no lock and no claim.
pub(crate) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Dropping it may panic, too.
        std::mem::forget(payload);
    }
}

/// Wakes each of them.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(wake);
}
