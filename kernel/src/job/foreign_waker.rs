//! Calling wakers that may be foreign: user code, whose panic must not unwind a thread of the runtime.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    task,
};

use crate::{
    report::payload,
    report::{self, panic_message},
};

/// Wakes `waker`. A panic of a foreign waker is reported and ends here.
pub(crate) fn wake(waker: task::Waker) {
    isolate(|| waker.wake());
}

/// Drops `waker` without waking it. A panic of its destructor is reported and ends here.
pub(crate) fn discard(waker: task::Waker) {
    isolate(|| drop(waker));
}

fn isolate(call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        report_panic(payload);
    }
}

/// Reports that a foreign waker panicked with `payload`, and drops that.
pub(crate) fn report_panic(payload: Box<dyn Any + Send>) {
    report::waker_panicked(&panic_message(payload.as_ref()));
    payload::discard(payload);
}
