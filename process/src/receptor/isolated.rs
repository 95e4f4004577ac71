//! Isolation from user code: values whose destructors may panic, and closures that are called where a panic must
//! not spread.
//!
//! The panic hook reports a panic here, and the panic goes no further. Otherwise it would hit the receptor's process,
//! which other threads use, or a crashed thread that is already unwinding, where a second panic ends the program.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A value whose destructor is isolated.
pub(super) struct Isolated<T>(Option<T>);

/// Runs `act`, which calls or drops what a user gave; a panic in it ends here.
pub(super) fn isolate(act: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
        // The payload's own destructor could panic, too.
        std::mem::forget(payload);
    }
}

impl<T> Isolated<T> {
    pub(super) fn new(value: T) -> Isolated<T> {
        Isolated(Some(value))
    }

    /// The value, no longer isolated.
    pub(super) fn into_inner(mut self) -> T {
        self.0.take().expect("a value is taken out once")
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0
            .as_mut()
            .expect("a value is used before it is taken out")
    }
}

impl<T> Drop for Isolated<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            isolate(|| drop(value));
        }
    }
}
