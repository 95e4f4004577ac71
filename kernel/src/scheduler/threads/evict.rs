//! Ending the jobs that are pinned to a thread, when the thread is about to leave the runtime.

use std::{sync::Arc, thread, time::Instant};

use crate::{
    job::JobRef,
    report::{self, LateName},
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
    // Not kept while they run: the user values that a job leaves are then dropped at its end, under its name.
    let pinned_jobs = || {
        let mut jobs = shared.live_jobs();
        jobs.retain(is_pinned_here);
        jobs
    };
    let since = Instant::now();
    // A shutdown lists the jobs that keep a thread of the pool.
    let mut is_told = cx.outbox().is_some();
    while pinned.has_pinned_jobs() {
        // A further cancel would wake a destructor that waits, again and again.
        let is_new = |job: &&JobRef| !job.header().state.is_cancelled();
        pinned_jobs().iter().filter(is_new).for_each(cancel::cancel);
        if pinned.has_runnable() {
            stack_context::run_loop(cx, shared.stack_class(), &RunPinned(&|| false));
            continue;
        }
        // The wake of a pinned job unparks this thread.
        match is_told {
            true => thread::park(),
            false => thread::park_timeout(shared.config.stuck_after),
        }
        if !is_told && since.elapsed() >= shared.config.stuck_after {
            for job in pinned_jobs().iter() {
                report::keeps_block_on(LateName::of(job.header()), since.elapsed());
            }
            is_told = true;
        }
    }
    // Only now: until the last pinned job has ended, a wake must find the queue open.
    pinned.close();
}
