//! The jobs that wait for a lock, or for the end of another job: those of which circles of waits are made.
//!
//! A sample of all jobs ([`super::queue_watch`]) collects them, in steps. The monitor then passes them to a [`CircleWatch`],
//! so that jobs that wait for each other are reported although others go on.

use weald_sync::{
    holders,
    reason::{Kind, Reason},
};

use crate::{
    job::{JobPtr, JobRef},
    scheduler::workers::shared::Shared,
};

/// A sample collects no more than this many.
const MOST: usize = 100_000;

/// A job that waited at one moment for what another one holds, or for its end, and for nothing else.
#[derive(Clone, Copy)]
pub(crate) struct DependingJob {
    pub(crate) job: JobPtr,
    /// The address of the other job, or of this one.
    pub(crate) holder: usize,
}

/// What looks for circles of waits. Called by the monitor.
pub(crate) trait CircleWatch: Send {
    /// Every worker has slept for a while.
    fn look_when_quiet(&mut self, shared: &Shared);

    /// A sample has found these jobs.
    fn look_at(&mut self, shared: &Shared, depending: Vec<DependingJob>);

    /// Whether a circle was seen once, so that the next sample decides whether it is one.
    fn must_look_again(&self) -> bool;
}

/// Passes on what the last sample has found, once. Called by the monitor each round.
pub(super) fn pass_on(shared: &Shared, circles: &mut dyn CircleWatch) {
    if let Some(depending) = shared.queues.take_depending() {
        circles.look_at(shared, depending);
    }
}

/// Adds `job` to `found`, if it depends on a job.
#[inline]
pub(super) fn collect(job: &JobRef, found: &mut Vec<DependingJob>) {
    if found.len() < MOST
        && let Some(holder) = only_holder_of(job)
    {
        let job = job.ptr();
        found.push(DependingJob { job, holder });
    }
}

/// The address of the job that can end the wait of `job`, if it is known, and `job` waits for nothing else.
#[inline]
pub(crate) fn only_holder_of(job: &JobRef) -> Option<usize> {
    let reason = job.header().waits_only_for()?;
    job.header().state.is_waiting().then(|| holder(reason))?
}

/// The address of the job that can end the wait of `job`, if it is known.
pub(crate) fn holder_of(job: &JobRef) -> Option<usize> {
    holder(job.header().waits_for()?)
}

fn holder(reason: Reason) -> Option<usize> {
    match reason.kind {
        Kind::End => Some(reason.object),
        Kind::Mutex | Kind::RwLock => holders::holder(reason.object),
        _ => None,
    }
}
