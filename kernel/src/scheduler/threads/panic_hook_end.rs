//! The end of a job's panic hook, on the thread that ran it.
//!
//! The time of a hook is none of the job's, but the poll goes on behind it: the panic unwinds the job, which may catch
//! it. So what follows a long hook is timed as a run that begins, once in a run: a job that panics again and again is
//! stuck like any other. Otherwise the monitor, if it checked between the hook's end and the poll's, would take the job
//! for stuck since before the hook.
//!
//! Invariant: when the monitor sees that a long hook has ended, it also sees the new run. Both change under the lock
//! under which the monitor checks both: that of the worker's core, or that of the list of detached threads.
//!
//! A hook that takes less than a quarter of the bound ends without a lock. This hook and each later one leave the run
//! as it is, so their time counts as the job's. So the monitor may find that a hook which it has reported is over in
//! the same run, even if another hook runs by then. It then reports the job, too, which still holds its thread
//! (`detached_thread/hook_watch.rs`).

#![allow(unsafe_code)]

use std::{cell::Cell, time::Duration};

use crate::{
    job::JobRef,
    scheduler::{
        threads::{detached_run::ListedRun, visits},
        workers::{context, run_word::RunWord, shared::Shared},
    },
};

thread_local! {
    /// The run of a worker that a hook on this thread has renewed last.
    static RENEWED: Cell<RunWord> = const { Cell::new(RunWord::NONE) };
}

/// The panic hook that ran for a panic of `job` has ended; it lasted for `took`. The calling thread runs `job`.
pub(crate) fn end(job: &JobRef, took: Duration) {
    let cx = context::again();
    let is_short = |shared: &&Shared| took < shared.config.stuck_after / 4;
    if let Some(shared) = cx.shared().filter(is_short) {
        job.header().end_panic_hook();
        // It may sleep, because the hook waited.
        return shared.monitor.begin_to_watch();
    }
    if let Some((worker, lease)) = cx.worker() {
        if lease.is_inside() {
            // The kernel itself panicked under the lock.
            return job.header().end_panic_hook();
        }
        // SAFETY: *owner*: the worker of this thread's context, and the thread is not inside.
        if let Ok(_core) = unsafe { worker.core.enter(lease) } {
            job.header().end_panic_hook();
            if worker.running() != RENEWED.get() {
                RENEWED.set(worker.running().renewed());
                worker.restore_running(RENEWED.get());
            }
            return;
        }
        cx.clear_worker();
    }
    let visit = visits::here(cx);
    let Some(shared) = cx
        .shared()
        .filter(|_| visit.is_some() || cx.outbox().is_some())
    else {
        return job.header().end_panic_hook();
    };
    let listed = match visit {
        Some((visit, _)) if visit.is_run_of(job.ptr()) && visit.renew() => {
            return job.header().end_panic_hook();
        }
        Some((visit, _)) => ListedRun::OfVisit(visit.thread, job.ptr()),
        None => ListedRun::OfThread(shared.thread_number()),
    };
    let bound = shared.config.stuck_after;
    shared.detached.end_panic_hook(listed, job, bound);
    // It may sleep, because until now there was nothing to watch.
    shared.monitor.begin_to_watch();
}
