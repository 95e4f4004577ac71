//! Lets a job that has just found out what it is about to do give up its worker for that.

use std::task::{Context, Poll};

use crate::scheduler::workers::context;

/// Pending, once, if the running job has become one of a suspect kind by its [description](crate::Describe): one of its
/// kind blocked or computed for too long a moment ago, and this one may be about to. The job is woken at once, and its
/// next run is on a thread that owns no worker, so that it delays no other job. Ready in all other cases; while no kind is
/// suspect, that costs one load.
///
/// A job with a description calls this when it has read what it is to do, and before it does it.
pub fn poll_place(cx: &mut Context<'_>) -> Poll<()> {
    let here = context::again();
    let is_any = here.shared().is_some_and(|shared| shared.suspects.is_any());
    if is_any && must_move(here) {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

#[cold]
fn must_move(here: &context::Context) -> bool {
    let (Some(shared), Some(job)) = (here.shared(), here.job_ref()) else {
        return false;
    };
    here.worker_for(job.header()).is_some() && shared.suspects.includes(job.header())
}
