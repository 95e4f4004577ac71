//! The move of a job to the quarantine: it has just learned what work it will do, and work of that kind is suspect.

use std::task::{Context, Poll};

use crate::scheduler::workers::context;

/// Pending, once, if the kind of work that the running job has [set](crate::WorkKind) is suspect: a job of this kind
/// blocked or computed for too long a moment ago, and this one may do the same. The job is woken at once, and its next
/// run is on a thread that owns no worker, so that it delays no other job. Ready in all other cases; while no kind is
/// suspect, that costs one load.
///
/// A job calls this after it has set its [`WorkKind`](crate::WorkKind), and before it begins the work.
pub fn poll_place(cx: &mut Context<'_>) -> Poll<()> {
    poll_place_after(cx, || ())
}

/// As [`poll_place`]. If any kind is suspect, `describe` is called first. Use it to set the kind only when needed, if
/// it takes time to find out what the job is about to do.
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
