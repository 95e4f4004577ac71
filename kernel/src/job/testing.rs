//! Jobs for the unit tests of what only keeps jobs and never runs them.

#![allow(unsafe_code)]

use std::panic::Location;

use super::{JobRef, Spec, runnable::Runnable, transition::Inbox};

/// A job that does nothing, with its right to run, and `refs` references beside it.
fn made(refs: u32) -> Runnable {
    let spec = Spec {
        runtime: 0,
        site: Location::caller(),
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs,
    };
    super::new(super::Room::needed(), spec, |_| async {})
}

/// The right to run a job that does nothing.
pub(crate) fn runnable() -> Runnable {
    made(0)
}

/// A job that never runs, and is leaked.
pub(crate) fn job() -> JobRef {
    let runnable = made(1);
    // SAFETY: this is the one reference that the spec asked for.
    let job = unsafe { runnable.claim_ref() };
    runnable.into_ptr();
    job
}
