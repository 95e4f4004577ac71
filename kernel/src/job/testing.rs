//! Jobs for unit tests of code that keeps jobs and never runs them.

#![allow(unsafe_code)]

use std::panic::Location;

use super::{JobRef, Spec, runnable::Runnable, transition::Inbox};

/// A job of this future, with its right to run, and `refs` references beside it.
fn made(refs: u32, future: impl Future) -> Runnable {
    let spec = Spec {
        runtime: 0,
        site: Location::caller(),
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs,
    };
    super::new(super::Room::needed(), spec, |_| future)
}

/// The right to run a job that does nothing.
pub(crate) fn runnable() -> Runnable {
    made(0, async {})
}

/// A job of this future: the right to run it, and a reference.
pub(crate) fn job_of(future: impl Future) -> (Runnable, JobRef) {
    let runnable = made(1, future);
    // SAFETY: this is the one reference that the spec asked for.
    let job = unsafe { runnable.claim_ref() };
    (runnable, job)
}

/// A job that never runs, and is leaked.
pub(crate) fn job() -> JobRef {
    let (runnable, job) = job_of(async {});
    runnable.into_ptr();
    job
}
