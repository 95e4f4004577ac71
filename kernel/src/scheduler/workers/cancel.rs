//! Cancelling a job: what the cancelling thread must do, whatever state the job is in.

#![allow(unsafe_code)]

use crate::{
    job::{JobRef, runnable::Runnable, transition::Owes},
    scheduler::workers::{ready, shared},
};

/// Asks `job` and everything that it forked to end.
pub(crate) fn cancel(job: &JobRef) {
    cancel_alone(job);
    cancel_forks(job);
}

/// As [`cancel`], and closes the job's mailbox.
pub(crate) fn kill(job: &JobRef) {
    // Both requests in one step: a message that is sent after this must not come before the cancel.
    settle_owed(job, job.header().state.kill());
    cancel_forks(job);
}

/// Asks `job` to end, but not what it forked: the job itself ends that.
pub(crate) fn cancel_alone(job: &JobRef) {
    settle_owed(job, job.header().state.cancel());
}

fn cancel_forks(job: &JobRef) {
    if let Some(shared) = shared::find(job.header().runtime()) {
        shared.forks.cancel_forks_of(job);
    }
}

fn settle_owed(job: &JobRef, owes: Owes) {
    match owes {
        // SAFETY: the state granted this caller the schedule.
        Owes::Schedule => ready::ready_last(unsafe { Runnable::new(job.ptr()) }),
        Owes::Unblock => unblock(job),
        Owes::Nothing => note_pending(job),
    }
}

/// A job that runs may be far from its next wait. If its thread is detached, the monitor tells that the kill is
/// pending.
fn note_pending(job: &JobRef) {
    if job.header().state.is_done() {
        return;
    }
    if let Some(shared) = shared::find(job.header().runtime())
        && shared.detached.note_kill(job)
    {
        shared.monitor.wake();
    }
}

/// Unparks the thread that is in a `wait()` of `job`, so that the job sees its cancel.
pub(crate) fn unblock(job: &JobRef) {
    let thread = job
        .header()
        .extensions
        .lock_existing()
        .and_then(|extensions| extensions.blocked.clone());
    if let Some(thread) = thread {
        thread.unpark();
    }
}

/// Cancels `jobs` wherever they wait. A job with a suspended stack ends on its own thread; `end` is called with each
/// other job that waits. A job that waits in a destructor is polled again. Only once their runtime is stopped.
pub(crate) fn cancel_waiting(jobs: &[JobRef], end: impl Fn(Runnable)) {
    for job in jobs {
        match job.header().state.cancel() {
            Owes::Schedule => {
                // SAFETY: the state granted this caller the schedule.
                let runnable = unsafe { Runnable::new(job.ptr()) };
                match job.header().queue_of_its_thread() {
                    Some(pinned) => pinned.push(runnable),
                    None => end(runnable),
                }
            }
            Owes::Unblock => unblock(job),
            Owes::Nothing => {}
        }
    }
}
