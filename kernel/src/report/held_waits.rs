//! Reports of jobs whose waits hold their OS threads, because their stacks must not be suspended. Made by those threads.

use std::time::Duration;

use super::{LateName, ReportKind, of_job_late};

/// A job has waited for long where its stack must not be suspended, on a thread of the pool.
pub(crate) fn holds_thread(named: LateName, held: Duration) {
    let held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    of_job_late(ReportKind::HoldsThread { held_ms }, named, move |named| {
        format!(
            "{named} has waited for {held:.1?} in a destructor, while it unwinds or at its end, or in a panic hook, and \
             so holds an OS thread. Other jobs run on other threads meanwhile. Let it wait before it ends."
        )
    });
}

/// A job waits and holds its thread meanwhile, on which other jobs' stacks must resume.
pub(crate) fn holds_pinned_jobs(named: LateName, others: usize) {
    of_job_late(ReportKind::HoldsPinnedJobs, named, move |named| {
        format!(
            "{named} waits in a panic hook, in a destructor while it unwinds, or for a fork, and so holds its OS \
             thread, on which {others} suspended jobs must resume. If it waits for one of them, neither ends: let it wait \
             before it unwinds, or join what it needs inside the fork."
        )
    });
}
