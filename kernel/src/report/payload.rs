//! The payloads of panics: values of user types, whose destructors may panic too.
//!
//! Wherever the kernel drops a payload that nobody takes, it calls [`discard`]. A payload that was given to the user,
//! by [`Panic::into_payload`](crate::Panic::into_payload) or by an unwinding, is the user's.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::REPORT_UPCALLS;

/// What an unwinding carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// The payload of the one unwinding by which a job leaves `wait()` when it is cancelled.
pub(crate) struct CancelUnwind;

/// Whether `payload` unwinds some job for a cancel.
pub(crate) fn is_cancel(payload: &Payload) -> bool {
    payload.is::<CancelUnwind>()
}

/// Whether `payload`, which user code has unwound with and which goes no further, is for a cancel. That was no panic
/// then, and the running job's own next wait ends, too.
#[must_use]
pub(crate) fn delivers_cancel_again(payload: &Payload) -> bool {
    let is_cancel = is_cancel(payload);
    if is_cancel {
        (REPORT_UPCALLS.deliver_cancel_again)();
    }
    is_cancel
}

/// Drops `payload`. If its destructor panics, the panic ends here, and its own payload is leaked. If a cancel of the
/// running job has ended a wait in the destructor, the job's own next wait ends, too.
pub(crate) fn discard(payload: Payload) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        let _cancel = delivers_cancel_again(&second);
        // Dropping the second payload could panic again, and so on for ever.
        mem::forget(second);
    }
}
