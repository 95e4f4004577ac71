//! The current runtime: the one that the running job has entered, else the one that the calling thread works for, or
//! else the default one. And the unit whose code the calling thread runs.

use crate::{
    FEATURES,
    report::LateName,
    scheduler::{
        stackful::foreign_runtime,
        threads::blocking_call,
        workers::{
            context::{self, Context},
            shared::Shared,
        },
    },
};

/// Runs `act` with the current runtime.
#[inline]
pub(crate) fn with_current<R>(act: impl FnOnce(&Shared) -> R) -> R {
    context::with(|cx| {
        let shared = match of_thread(cx) {
            Some(shared) => shared,
            None => (FEATURES.default_runtime)(),
        };
        // At one place, so that the compiler inlines it.
        act(shared)
    })
}

/// The current runtime, unless that is the default one because the thread works for none.
#[inline]
pub(crate) fn of_thread(cx: &Context) -> Option<&Shared> {
    foreign_runtime::entered(cx).or_else(|| cx.shared())
}

/// The unit whose code the calling thread runs: a job, or the caller whose closure runs here. Waits for nothing.
pub(crate) fn running_unit() -> Option<LateName> {
    let job = context::again().job_ref();
    let running = job.map(|job| LateName::try_of(job.header()));
    running.or_else(blocking_call::unit_of_running)
}
