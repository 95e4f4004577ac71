//! What every function of the face does around its code: failures become codes, and no panic crosses into C.
//!
//! A panic here is a mistake in this library, or a cancel that unwinds a wait. Each becomes an error code. The frames
//! of C above are left as they are: C is told, and returns by itself.

use std::{
    any::Any,
    mem::{self, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::{
    codes::{Code, Failure, WEALD_CANCELLED, WEALD_INTERNAL, WEALD_NULL, WEALD_OK, failure},
    current::is_cancelled,
    saved::keeping_errno,
};

/// Runs the code of a function, and returns its code.
pub(crate) fn guard(act: impl FnOnce() -> Result<(), Failure>) -> Code {
    match keeping_errno(|| catch_unwind(AssertUnwindSafe(act))) {
        Ok(Ok(())) => WEALD_OK,
        Ok(Err(failure)) => failure.note(),
        Err(payload) => unwound(payload).note(),
    }
}

#[cold]
fn unwound(payload: Box<dyn Any + Send>) -> Failure {
    if !is_cancelled() {
        // Its drop may panic in its turn.
        mem::forget(payload);
        let sentence =
            "a call has panicked, which is a mistake in this library; its report says where";
        return failure(WEALD_INTERNAL, sentence);
    }
    if !payload.is::<Again>() {
        // The kernel catches it, and will unwind the unit again: at the latest when its function has returned.
        let _caught: Option<()> = weald_kernel::catch_unwinding(|| resume_unwind(payload));
    }
    cancelled()
}

/// Does what the kernel does at the first wait of a unit that was cancelled, before any wait.
pub(crate) fn check_cancel() {
    if is_cancelled() {
        resume_unwind(Box::new(Again));
    }
}

/// The payload of an unwinding that is not the kernel's.
struct Again;

pub(crate) fn cancelled() -> Failure {
    failure(
        WEALD_CANCELLED,
        "the calling unit was cancelled, or its runtime shuts down; let its function return",
    )
}

/// Memory into which a function writes.
pub(crate) fn needed<T>(out: Option<&mut MaybeUninit<T>>) -> Result<&mut MaybeUninit<T>, Failure> {
    out.ok_or_else(|| failure(WEALD_NULL, "the address for the result is null"))
}

/// Writes a result, if its address is not null.
pub(crate) fn give<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}
