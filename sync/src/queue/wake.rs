//! Waking: the one place where wakers, which are user code, are called.
//!
//! A waker that panics affects nothing else: the other wakers of the same round are woken, the tool's state
//! stays whole, and the code that released the tool continues. The panic hook has reported the panic.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

/// Wakes. The caller holds no lock and no claim.
pub(crate) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Dropping it may panic as well.
        std::mem::forget(payload);
    }
}

/// Wakes each of them. The caller holds no lock and no claim.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(wake);
}
