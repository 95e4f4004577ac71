//! Waking wakers that may be foreign: user code, whose panic must not unwind a thread of the runtime.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task,
};

use crate::report::{self, panic_message};

/// Wakes `waker`, if there is one. A panic of a foreign waker is reported and ends here.
pub(crate) fn wake(waker: Option<task::Waker>) {
    let Some(waker) = waker else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        report::waker_panicked(&panic_message(payload.as_ref()));
        std::mem::forget(payload);
    }
}
