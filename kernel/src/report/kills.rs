//! Reports of jobs that were asked to end and have not. Made by the monitor.

use std::time::Duration;

use super::{JobName, LateName, ReportKind, of_job_late};

/// A job that was reported as stuck was asked to end, and has not waited since.
pub(crate) fn pending_kill(named: LateName, pending: Duration) {
    report(named, pending, move |named| {
        format!(
            "{named} still blocks or computes without a wait; a kill has been pending for {pending:.1?}, until its next \
             wait. It holds a thread until then: let long computations yield."
        )
    });
}

/// As [`pending_kill`], of a job that the kill has reached.
pub(crate) fn hangs_at_end(named: LateName, pending: Duration) {
    report(named, pending, move |named| {
        format!(
            "{named} was killed and has been ending for {pending:.1?}, because a destructor blocks or computes. It \
             holds a thread until then: let destructors be short."
        )
    });
}

/// A job that is being ended waits in a destructor, on a thread that calls `block_on`. Made by that thread.
pub(crate) fn keeps_block_on(job: LateName, pending: Duration) {
    report(job, pending, move |job| {
        format!(
            "{job} is being ended, and has waited in a destructor for {pending:.1?}. The call of `block_on` whose thread \
             it is on returns only after that: let destructors not wait."
        )
    });
}

fn in_ms(pending: Duration) -> u64 {
    u64::try_from(pending.as_millis()).unwrap_or(u64::MAX)
}

fn report(
    named: LateName,
    pending: Duration,
    sentence: impl FnOnce(&JobName) -> String + Send + 'static,
) {
    let pending_ms = in_ms(pending);
    of_job_late(ReportKind::PendingKill { pending_ms }, named, sentence);
}
