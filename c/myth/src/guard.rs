//! What every function of the face does around its code: no panic crosses into C.
//!
//! A panic here is a mistake in this library, or its runtime ends and unwinds a wait. The first becomes an error code.
//! The second ends the thread, at its call of the library: the frames of C above it are left as they are.

use std::{
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
};

use weald_kernel::Unit;

use crate::thread;

/// Runs the code of a function, and returns its error code; zero for none.
#[inline]
pub(crate) fn guard(act: impl FnOnce() -> Result<(), c_int>) -> c_int {
    guard_value(|| act().err().unwrap_or(0), libc::ENOTRECOVERABLE)
}

/// Runs the code of a function, which returns `failed` after a panic.
#[inline]
pub(crate) fn guard_value<R>(act: impl FnOnce() -> R, failed: R) -> R {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(value) => value,
        Err(payload) => {
            drop(payload);
            end_if_cancelled();
            failed
        }
    }
}

#[cold]
fn end_if_cancelled() {
    if Unit::current().is_some_and(|unit| unit.is_cancelled()) {
        thread::exit(thread::CANCELED);
    }
}
