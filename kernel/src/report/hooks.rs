//! Reports of panic hooks that take long. Made by the monitor.

use std::time::Duration;

use super::{LateName, ReportKind, Retake, of_job_late};

/// A job that has held its thread for `held` is in the panic hook, which may print a backtrace.
pub(crate) fn panic_hook_runs(named: LateName, held: Duration, retake: Retake) {
    of_job_late(ReportKind::PanicHookRuns, named, move |named| {
        format!(
            "{named} panicked, and its panic hook runs; the thread has been held for {held:.1?}, the time before the panic \
             included; {retake}."
        )
    });
}

/// A job's panic hook was reported `held` ago, and still runs.
pub(crate) fn long_panic_hook(named: LateName, held: Duration) {
    of_job_late(ReportKind::LongPanicHook, named, move |named| {
        format!(
            "{named} panicked, and its panic hook has held a thread for {held:.1?}: let hooks neither block nor compute."
        )
    });
}
