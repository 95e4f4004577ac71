//! Lets a job that has just found out what it is about to do give up its worker for that.

use std::task::{Context, Poll};

use crate::scheduler::workers::context;

/// Pending, once, if the running job has become one of a suspect kind by what it [does](crate::WorkKind): one of its
/// kind blocked or computed for too long a moment ago, and this one may be about to. The job is woken at once, and its
/// next run is on a thread that owns no worker, so that it delays no other job. Ready in all other cases; while no kind is
/// suspect, that costs one load.
///
/// A job that sets its [`WorkKind`](crate::WorkKind) calls this when it has set it, and before it does what it is to do.
pub fn poll_place(cx: &mut Context<'_>) -> Poll<()> {
    poll_place_after(cx, || ())
}

/// As [`poll_place`]. If any kind is suspect, `describe` is called first: for a description that is made only then,
/// because it takes time to find out what the job is about to do.
pub fn poll_place_after(cx: &mut Context<'_>, describe: impl FnOnce()) -> Poll<()> {
    let here = context::again();
    if !here.shared().is_some_and(|shared| shared.suspects.is_any()) {
        return Poll::Ready(());
    }
    describe();
    // Anew: user code has run.
    if must_move(context::again()) {
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
