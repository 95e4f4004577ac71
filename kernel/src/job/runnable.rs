//! The runnable: the right to run a job once, as a value that cannot be copied.
//!
//! [`crate::job::header`] makes the argument for the safety of what is done here; the blocks below point to
//! the situations named there.

#![allow(unsafe_code)]

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll},
};

use crate::{
    JOB_UPCALLS,
    job::{
        Header, JobPtr, JobRef,
        body::{Failure, stage},
        transition::Completed,
    },
    report::{
        panic_message,
        payload::{self, Payload},
    },
};

/// The right to run a job once. There is never more than one for a job.
#[must_use = "a runnable that is dropped cancels its job"]
pub(crate) struct Runnable(JobPtr);

impl Runnable {
    /// # Safety
    /// A transition of this job has just returned [`Owes::Schedule`](crate::job::transition::Owes), or its
    /// equivalent, to the caller, which creates only this one runnable from it.
    #[inline(always)]
    pub(crate) unsafe fn new(job: JobPtr) -> Runnable {
        Runnable(job)
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: alive: a job that has a runnable is not done, and so still owns its own count.
        unsafe { self.0.header() }
    }

    pub(crate) fn ptr(&self) -> JobPtr {
        self.0
    }

    /// Turns the runnable into a pointer, for a queue that stores pointers.
    #[inline(always)]
    pub(crate) fn into_ptr(self) -> JobPtr {
        let job = self.0;
        mem::forget(self);
        job
    }

    /// One of the references that [`Spec::refs`](crate::job::Spec::refs) asked for.
    ///
    /// # Safety
    /// Called at most `spec.refs` times for a job.
    pub(crate) unsafe fn claim_ref(&self) -> JobRef {
        // SAFETY: the caller's promise: the count was taken when the job was created.
        unsafe { JobRef::from_ptr(self.0) }
    }

    /// Polls the future once. The error is the payload of its panic.
    #[inline(always)]
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Result<Poll<()>, Payload> {
        let poll = self.header().vtable.poll;
        // SAFETY: one runner: `self` is the runnable, and the job is not done.
        catch_unwind(AssertUnwindSafe(|| unsafe { poll(self.0.as_raw(), cx) }))
    }

    /// Drops the future, if it is still there, and puts `failure` in its place. If the future's destructor
    /// panics, that panic becomes the failure; its message is returned.
    pub(crate) fn fail(&self, failure: Failure) -> Option<Box<str>> {
        let (mut failure, mut message) = (failure, None);
        let header = self.header();
        if header.stage() == stage::FUTURE && !header.has_own_stack() {
            let drop_future = header.vtable.drop_future;
            // SAFETY: one runner: `self` is the runnable.
            let dropped =
                catch_unwind(AssertUnwindSafe(|| unsafe { drop_future(self.0.as_raw()) }));
            if let Err(payload) = dropped {
                message = Some(panic_message(payload.as_ref()).into());
                let former = mem::replace(&mut failure, Failure::Panicked(payload));
                if let Failure::Panicked(former) = former {
                    payload::discard(former);
                }
            }
        }
        // SAFETY: one runner; the body holds nothing now.
        unsafe { (header.vtable.fail)(self.0.as_raw(), failure) };
        message
    }

    /// Makes the job done; its output or failure is in place. Returns the job's own reference.
    #[inline(always)]
    pub(crate) fn complete(self) -> (Completed, JobRef) {
        let completed = self.header().state.complete();
        // SAFETY: the job's own count, which it holds until it is done.
        (completed, unsafe { JobRef::from_ptr(self.into_ptr()) })
    }
}

impl Drop for Runnable {
    /// A runnable that will never run cancels its job, here and now.
    fn drop(&mut self) {
        (JOB_UPCALLS.abandon)(Runnable(self.0));
    }
}
