//! Wakes, and catches the panic of a foreign waker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes, and catches the panic of a foreign waker, so that the others are still woken.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}
