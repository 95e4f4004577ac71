//! The report of jobs that stay just below the bound. Made by the monitor.

use std::time::Duration;

use super::{LateName, ReportKind, of_job_late};

/// Runs of a job, or of its kind, reached half of `bound` again and again, without exceeding it. `is_moved`: jobs of
/// this kind now run in quarantine.
pub(crate) fn just_below(named: LateName, who: JustBelow, bound: Duration, is_moved: bool) {
    of_job_late(ReportKind::JustBelow, named, move |named| {
        let moved = match is_moved {
            true => "it now runs on threads of its own, so that it delays no other job",
            false => "each time it delays others on its thread",
        };
        let often = match who {
            JustBelow::Job => "again and again",
            JustBelow::Kind => "as others that were spawned there do again and again",
        };
        format!(
            "{named} holds its thread for more than half of {bound:.1?}, {often}; {moved}. Wrap blocking calls in \
             weald::blocking, or let long computations yield."
        )
    });
}

/// What stays just below the bound again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JustBelow {
    Job,
    /// Many jobs of one kind.
    Kind,
}
