//! Reports of panic hooks that take long. Made by the monitor.

use std::time::Duration;

use super::{LateName, ReportKind, Retake, of_job_late};

/// A job's panic hook, which may print a backtrace, takes long.
pub(crate) fn panic_hook_runs(named: LateName, stuck: Duration, retake: Retake) {
    of_job_late(ReportKind::PanicHookRuns, named, move |named| {
        format!("{named} panicked, and its panic hook has run for {stuck:.1?}; {retake}.")
    });
}

/// A job's panic hook was reported, and still runs.
pub(crate) fn long_panic_hook(named: LateName, held: Duration) {
    of_job_late(ReportKind::LongPanicHook, named, move |named| {
        format!(
            "{named} panicked, and its panic hook has held a thread for {held:.1?}: let hooks neither block nor compute."
        )
    });
}
