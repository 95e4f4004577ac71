//! Ending the jobs that may run on one thread only, when that thread is about to leave.

use std::{sync::Arc, thread};

use crate::{
    job::JobRef,
    scheduler::{
        stackful::{duties::RunPinned, pinned::Home, stack_context},
        workers::{cancel, context, shared::Shared},
    },
};

/// Ends every job that lives at `home`, whose thread is about to leave. The home's thread only, on the
/// stack that the system gave it. Waits for those that take their time: a stack with live frames can be
/// unwound here only.
pub(crate) fn evict(shared: &Shared, home: &Arc<Home>) {
    let cx = context::here();
    let place = context::Place::new();
    let _aside = cx.set_aside(&place);
    let lives_here = |job: &JobRef| {
        job.header().is_local_to(home) || (shared.is_driven() && job.header().is_suspended())
    };
    while home.has_residents() {
        for job in shared.live_jobs().into_iter().filter(lives_here) {
            cancel::cancel(&job);
        }
        match home.has_runnable() {
            true => stack_context::run_loop(cx, shared.stack_class(), &RunPinned(&|| false)),
            // Whoever wakes a resident unparks this thread.
            false => thread::park(),
        }
    }
    // Only now: until the last resident has ended, whoever wakes one must find its home open.
    home.close();
}
