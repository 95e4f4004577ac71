//! The jobs that wait for a lock, or for the end of another job or its answer: of those circles of waits are made.
//!
//! A sample of all jobs ([`super`]) collects them, in steps. The monitor then passes them to a
//! [`CircleWatch`](crate::scheduler::threads::monitor::circle_watch::CircleWatch), so that jobs that wait for each
//! other are reported although others go on.

use weald_sync::{
    holders,
    reason::{Kind, Reason},
};

use crate::job::{JobPtr, JobRef};

/// A sample collects no more than this many.
const MOST: usize = 100_000;

/// A job that waited at one moment for what another one holds, or for its end or its answer, and for nothing else.
#[derive(Clone, Copy)]
pub(crate) struct DependingJob {
    pub(crate) job: JobPtr,
    /// What the job waited for.
    pub(crate) reason: Reason,
    /// The address of the other job, or of this one.
    pub(crate) holder: usize,
}

/// Adds `job` to `found`, if it depends on a job.
#[inline]
pub(super) fn collect(job: &JobRef, found: &mut Vec<DependingJob>) {
    if found.len() < MOST
        && let Some((reason, holder)) = only_holder_of(job)
    {
        found.push(DependingJob {
            job: job.ptr(),
            reason,
            holder,
        });
    }
}

/// What `job` waits for, and the address of the job that can end the wait, if it is known, and `job` waits for nothing
/// else.
#[inline]
pub(crate) fn only_holder_of(job: &JobRef) -> Option<(Reason, usize)> {
    let reason = job.header().waits_only_for()?;
    let is_waiting = job.header().state.is_waiting();
    is_waiting.then(|| Some((reason, holder(reason)?)))?
}

/// The address of the job that can end the wait of `job`, if it is known.
pub(crate) fn holder_of(job: &JobRef) -> Option<usize> {
    holder(job.header().waits_for()?)
}

fn holder(reason: Reason) -> Option<usize> {
    match reason.kind {
        Kind::End | Kind::Call => Some(reason.object),
        Kind::Mutex | Kind::RwLock => holders::holder(reason.object),
        _ => None,
    }
}
