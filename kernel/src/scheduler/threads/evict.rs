//! Ending the jobs that may run on one thread only, when that thread is about to leave.

use std::{sync::Arc, thread};

use crate::{
    job::JobRef,
    scheduler::{
        stackful::{duties::RunPinned, pinned::PinnedQueue, stack_context},
        workers::{cancel, context, shared::Shared},
    },
};

/// Ends every job that lives at `pinned`, whose thread is about to leave. The home's thread only, on the
/// stack that the system gave it. Waits for those that take their time: a stack with live frames can be
/// unwound here only.
pub(crate) fn evict(shared: &Shared, pinned: &Arc<PinnedQueue>) {
    let cx = context::here();
    let outer = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&outer);
    let lives_here = |job: &JobRef| {
        job.header().is_pinned_to(pinned) || (shared.is_driven() && job.header().is_suspended())
    };
    while pinned.has_pinned_jobs() {
        for job in shared.live_jobs().into_iter().filter(lives_here) {
            cancel::cancel(&job);
        }
        match pinned.has_runnable() {
            true => stack_context::run_loop(cx, shared.stack_class(), &RunPinned(&|| false)),
            // Whoever wakes a resident unparks this thread.
            false => thread::park(),
        }
    }
    // Only now: until the last resident has ended, whoever wakes one must find its home open.
    pinned.close();
}
