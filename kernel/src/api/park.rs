//! Parking: a job waits until any thread unparks it.
//!
//! The permit is one bit, as for `std::thread::park`: an unpark before the park makes the park return at
//! once, and several unparks count as one. It works for every job, and needs neither memory nor a lock.

#![allow(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use weald_sync::reason::{Kind, Reason};

use crate::{
    api::sync_hooks::note_wait,
    job::{Header, JobRef, foreign_waker},
    report::JobName,
    scheduler::workers::{context, waker},
    sys::barrier,
};

/// A reference to a job, which can unpark it from any thread.
#[derive(Clone)]
pub struct Unparker(JobRef);

impl Unparker {
    /// An unparker of the calling job; none outside of jobs.
    pub fn current() -> Option<Unparker> {
        context::again().job_ref().map(Unparker)
    }

    pub(crate) fn new(job: JobRef) -> Unparker {
        Unparker(job)
    }

    /// Ends the job's current [`park`], or its next one. Does nothing if the job has ended. The waker of another
    /// executor that polled the park is called here; its panic is reported, and ends here.
    pub fn unpark(&self) {
        let header = self.0.header();
        header.leave_permit();
        // Pairs with the fence in `register_waker`: either the park sees the permit, or this finds its waker.
        barrier::full();
        let parker = header
            .extensions
            .lock_existing()
            .and_then(|mut extensions| extensions.parker.take());
        // Always, because the waker that is found may be that of an earlier park, which has been dropped.
        waker::wake_job(header, self.0.ptr());
        // User code: its panic must not reach the caller.
        parker.into_iter().for_each(foreign_waker::wake);
    }

    /// A number that no other job of this program ever has. Assigned at the first call.
    pub fn number(&self) -> u64 {
        self.0.header().extensions.lock().number()
    }

    /// The job's name in reports.
    pub fn name(&self) -> JobName {
        JobName::of(self.0.header())
    }
}

impl PartialEq for Unparker {
    fn eq(&self, other: &Unparker) -> bool {
        self.0.ptr() == other.0.ptr()
    }
}

impl Eq for Unparker {}

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unparker").field(&self.name()).finish()
    }
}

/// Waits until the running job is unparked; see [`Unparker::unpark`]. Outside of jobs the wait never ends.
///
/// Cancel-safe: a park that is dropped leaves the permit to the next one.
pub fn park() -> Park {
    Park(())
}

/// The future that [`park`] returns.
#[must_use = "parking is a future: await it, or wait() for it"]
#[derive(Debug)]
pub struct Park(());

impl Future for Park {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(job) = context::again().job() else {
            return Poll::Pending;
        };
        // SAFETY: the calling thread runs the job, and so keeps it alive.
        let header: &Header = unsafe { job.header() };
        // After it leaves a permit, an unpark wakes the job, and the waker that it finds.
        if !header.take_permit()
            && (waker::is_of(cx.waker(), job) || !register_waker(header, cx.waker()))
        {
            note_wait(Reason::unspecified(Kind::Future));
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// Registers a waker other than the job's own. True if a permit was there by then; it is taken.
#[cold]
fn register_waker(header: &Header, waker: &Waker) -> bool {
    // Cloned before the lock, and the former one dropped after it: a waker is user code.
    let waker = waker::kept(waker);
    let former = header.extensions.lock().parker.replace(waker);
    drop(former);
    barrier::full();
    header.take_permit()
}
