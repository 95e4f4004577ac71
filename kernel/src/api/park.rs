//! Parking: a job waits until somebody unparks it, whoever that is.
//!
//! A permit is one bit: an unpark before the park makes that return at once, and several count as one (as
//! `std::thread::park` has it). It works for every job, and costs neither memory nor a lock.

#![allow(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};

use crate::{
    job::{Header, JobRef},
    report::JobName,
    scheduler::workers::{context, waker},
    sys::barrier,
};

/// A job, from the outside: something to unpark.
#[derive(Clone)]
pub struct Unparker(JobRef);

impl Unparker {
    /// The job that runs the caller; none outside of jobs.
    pub fn current() -> Option<Unparker> {
        context::again().job_ref().map(Unparker)
    }

    pub(crate) fn new(job: JobRef) -> Unparker {
        Unparker(job)
    }

    /// Ends the job's [`park`], or its next one. A job that has ended stays so.
    pub fn unpark(&self) {
        let header = self.0.header();
        header.leave_permit();
        // Pairs with the fence in `Park::poll`: either that sees the permit, or this finds its waker.
        barrier::full();
        let parker = header
            .extensions
            .lock_existing()
            .and_then(|mut extensions| extensions.parker.take());
        match parker {
            Some(parker) => parker.wake(),
            None => waker::wake_job(header, self.0.ptr()),
        }
    }

    /// A number that no other job of this program ever has; given when it is first asked for.
    pub fn number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut extensions = self.0.header().extensions.lock();
        if extensions.number == 0 {
            // Relaxed: it is a count, and guards no other memory.
            extensions.number = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        extensions.number
    }

    /// What reports call the job.
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

/// Waits until the running job is unparked; see [`Unparker::unpark`]. Outside of jobs it never ends.
///
/// Cancel-safe: a park that is dropped leaves the permit for the next one.
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
        // SAFETY: the thread that runs a job keeps it alive.
        let header: &Header = unsafe { job.header() };
        // Whoever leaves a permit wakes the job after it, or whom else it finds.
        if !header.take_permit() && (waker::is_of(cx.waker(), job) || !is_late(header, cx.waker()))
        {
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// Leaves a waker that is not the job's own. Whether the permit came before it, and is taken.
#[cold]
fn is_late(header: &Header, waker: &Waker) -> bool {
    // The former one leaves the lock before it is dropped: a waker is user code.
    let former = header.extensions.lock().parker.replace(waker.clone());
    drop(former);
    barrier::full();
    header.take_permit()
}
