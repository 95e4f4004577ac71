//! Ending the jobs that are pinned to a thread, when the thread is about to leave the runtime.

use std::{sync::Arc, thread};

use crate::{
    job::JobRef,
    scheduler::{
        stackful::{duties::RunPinned, pinned::PinnedQueue, stack_context},
        workers::{cancel, context, shared::Shared},
    },
};

/// Ends every job that is pinned to the thread of `pinned`, which is about to leave. On that thread only, and on its
/// own stack. Waits for jobs that do not end at once: a stack with live frames can be unwound only on this thread.
pub(crate) fn evict(shared: &Shared, pinned: &Arc<PinnedQueue>) {
    let cx = context::here();
    let outer = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&outer);
    let is_pinned_here = |job: &JobRef| {
        job.header().is_pinned_to(pinned) || (shared.is_driven() && job.header().has_own_stack())
    };
    while pinned.has_pinned_jobs() {
        for job in shared.live_jobs().into_iter().filter(is_pinned_here) {
            cancel::cancel(&job);
        }
        match pinned.has_runnable() {
            true => stack_context::run_loop(cx, shared.stack_class(), &RunPinned(&|| false)),
            // The wake of a pinned job unparks this thread.
            false => thread::park(),
        }
    }
    // Only now: until the last pinned job has ended, a wake must find the queue open.
    pinned.close();
}
