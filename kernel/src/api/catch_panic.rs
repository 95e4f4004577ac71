//! A panic of one piece of work, caught in a job that continues with the next piece.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{
    job::body,
    report::payload::{self, Payload},
    report::{self, JobName},
    scheduler::{
        stackful::wait,
        workers::{context, run},
    },
};

/// Calls `code`. If it panics, the panic is reported, with the name that the running job has at that moment, and the
/// caller continues. For a job that does one piece of work after another and must not end because one of them panics.
/// The caller must repair what `code` left half done.
///
/// None after a panic. The unwinding by which a cancelled job leaves a wait with its stack is no panic, and is not
/// caught.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let worker = weald::Spawn::new().name("resizer").spawn(async {
///     let results = [4, 0, 2].map(|size| weald::catch_panic(|| 100 / size));
///     assert_eq!(results, [Some(25), None, Some(50)]);
/// });
/// worker.await
/// # }).unwrap();
/// ```
pub fn catch_panic<T>(code: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Some(value),
        Err(payload) => {
            caught(payload);
            None
        }
    }
}

/// As [`catch_panic`].
///
/// # Errors
/// The message of the panic, which is reported, too.
pub fn catch_panic_message<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Ok(value),
        Err(payload) => {
            let message = body::message_of(&payload);
            caught(payload);
            Err(message)
        }
    }
}

/// As [`catch_panic`], for code of others that must not end the caller's own work halfway: no unwinding leaves the
/// code, whatever causes it. If the running job is cancelled, the waits of `code` last to their ends. The job's next
/// wait afterwards unwinds.
pub fn catch_unwinding<T>(code: impl FnOnce() -> T) -> Option<T> {
    let _shield = wait::shield_if_cancelled();
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Some(value),
        // It was cancelled meanwhile.
        Err(payload) if run::is_own_cancel(&payload) => {
            wait::deliver_cancel_again();
            payload::discard(payload);
            None
        }
        Err(payload) => {
            caught(payload);
            None
        }
    }
}

#[cold]
fn caught(payload: Payload) {
    if run::is_own_cancel(&payload) {
        resume_unwind(payload);
    }
    if let Some(job) = context::again().job_ref() {
        report::caught_panic(&JobName::of(job.header()), &body::message_of(&payload));
    }
    payload::discard(payload);
    // A destructor that catches its own panic does not stop the one that runs it.
    if !std::thread::panicking()
        && let Some(job) = context::again().unit_ref()
    {
        run::tell_attachment_of_survival(job.header());
    }
}
