//! The job that a look lets run next, in front of the ring: the first that its timers have woken, else the oldest of the
//! injector. All others go behind the ring.
//!
//! The ring may be long, and each of its jobs may run for a while: beside processes that receive what others send without
//! end, a round of the ring takes more than a tick. A unit that sleeps now and then, or that waits for a file, would be late
//! by that each time. And while the ring is more than half full, no other job leaves the injector.
//!
//! What does not starve:
//! - the ring, where each look finds such a job: at least one job of the core runs between two looks
//!   ([`until_look`](crate::scheduler::workers::worker_core));
//! - the jobs that are pinned to the thread: while one is runnable, no job goes first;
//! - the injector, where each look finds a due timer: those that are not first leave it as ever.
//!
//! A test runtime draws the order of its jobs, so no job goes first there.

#![allow(unsafe_code)]

use std::{ptr::NonNull, task::Waker};

use crate::{
    job::{
        JobPtr,
        foreign_call::{FiredBy, ForeignCalls},
        runnable::Runnable,
    },
    scheduler::workers::{ready, shared::Shared, waker, worker::WorkerLoop},
};

/// See the head of the file. The job is in no queue; if this is dropped, it goes back to the injector.
pub(super) struct FirstOfLook<'a> {
    shared: &'a Shared,
    is_wanted: bool,
    job: Option<Runnable>,
}

impl<'a> FirstOfLook<'a> {
    /// For a look of `worker_loop`.
    pub(super) fn of(worker_loop: &WorkerLoop<'a>) -> FirstOfLook<'a> {
        let shared = worker_loop.shared;
        FirstOfLook {
            shared,
            is_wanted: !shared.is_driven() && !worker_loop.pinned.has_runnable(),
            job: None,
        }
    }

    /// As [`waker::call`]. A job that is to run next is kept back.
    #[inline]
    pub(super) fn wake(&mut self, by: FiredBy, waker: Waker, calls: &mut ForeignCalls) {
        if self.is_wanted && by == FiredBy::Timer && waker::is_of_job(&waker) {
            self.job = waker::wake_to_run(&waker, self.shared.id());
            self.is_wanted = self.job.is_none();
        } else {
            waker::call(by, waker, calls);
        }
    }

    /// Takes the oldest job of the injector, if none goes first yet.
    pub(super) fn take_injected(&mut self) {
        if !self.is_wanted || self.shared.injector.len() == 0 {
            return;
        }
        let oldest = self.shared.injector.pop(1).pop().and_then(NonNull::new);
        // SAFETY: the injector held the job's right to run.
        self.job = oldest.map(|job| unsafe { Runnable::new(JobPtr::from_raw(job)) });
        self.is_wanted = self.job.is_none();
    }

    /// How many jobs go first.
    pub(super) fn count(&self) -> usize {
        usize::from(self.job.is_some())
    }

    /// The job, which the caller runs.
    pub(super) fn take(mut self) -> Option<Runnable> {
        self.job.take()
    }
}

impl Drop for FirstOfLook<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            ready::inject(self.shared, job);
        }
    }
}
