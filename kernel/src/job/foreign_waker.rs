//! Calling wakers that may be foreign: user code, whose panic must not unwind a thread of the runtime.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task,
};

use crate::{
    JOB_UPCALLS,
    report::{
        self, panic_message,
        payload::{self, Payload},
    },
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

/// Reports that a foreign waker panicked with `payload`, in the unit that the calling thread runs, and drops the
/// payload. If a cancel of the running job has ended a wait in the waker, that is no panic, and the job's own next wait
/// ends, too.
pub(crate) fn report_panic(payload: Payload) {
    if !payload::delivers_cancel_again(&payload) {
        let message = panic_message(payload.as_ref());
        report::waker_panicked((JOB_UPCALLS.running_unit)(), message);
    }
    payload::discard(payload);
}
