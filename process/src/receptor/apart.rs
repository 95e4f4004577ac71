//! Values of users, whose destructors may panic, and closures of users that are called where nobody may be harmed.
//!
//! A panic here is told by the panic hook and goes no further: it comes in the receptor's process, which others
//! use, or while a crashed thread unwinds, where a second panic would end the program.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A value whose destructor harms nobody.
pub(super) struct Apart<T>(Option<T>);

/// Calls `act`, which is user code, or drops what users gave.
pub(super) fn apart(act: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
        // Its own destructor could panic again.
        std::mem::forget(payload);
    }
}

impl<T> Apart<T> {
    pub(super) fn new(value: T) -> Apart<T> {
        Apart(Some(value))
    }

    /// The value. What becomes of it is the caller's to know.
    pub(super) fn into_inner(mut self) -> T {
        self.0.take().expect("a value is taken out once")
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a value is taken out at last")
    }
}

impl<T> Drop for Apart<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            apart(|| drop(value));
        }
    }
}
