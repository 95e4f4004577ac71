//! The handle that joins, cancels and detaches a thread.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::{AsUnit, JoinError, Unit, Wait};
use weald_sync::Event;

use crate::thread::Thread;

/// An owned permission to join a thread, and a future of its result. Dropping the handle detaches the thread.
/// `&mut handle` is also an event; if another one is chosen, the handle keeps the result.
#[must_use = "a handle that is dropped detaches its thread; call detach() to say so"]
pub struct JoinHandle<T> {
    job: weald_kernel::JoinHandle<T>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(job: weald_kernel::JoinHandle<T>) -> JoinHandle<T> {
        JoinHandle { job }
    }

    /// Waits until the thread has ended, and returns its result; by then its locals have been dropped. If the thread
    /// has not begun, and is the next to run on the caller's worker, it begins at once. In async code, await the
    /// handle instead.
    ///
    /// # Errors
    /// If the thread panicked (with the payload) or was cancelled.
    ///
    /// # Panics
    /// Does not return if the caller is cancelled meanwhile: the caller's stack unwinds, and the thread keeps running.
    #[track_caller]
    pub fn join(mut self) -> Result<T, JoinError> {
        if let Some(output) = self.job.run_if_next() {
            return Ok(output);
        }
        match self.job.try_take() {
            Some(ended) => ended,
            None => self.job.wait(),
        }
    }

    /// Asks the thread to end: its next wait, or the one it is in, unwinds its stack once, and so runs its
    /// destructors. Its join returns [`JoinError::Cancelled`]. If the thread has not started, its code is dropped.
    /// A thread that never waits runs to its end.
    pub fn cancel(&self) {
        self.job.cancel();
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.job.is_finished()
    }

    /// Lets the thread run on its own. If it panics, the panic is reported through `tracing`.
    pub fn detach(self) {
        self.job.detach();
    }

    /// The thread, from the outside.
    ///
    /// # Panics
    /// If polling the handle has already taken the result.
    pub fn thread(&self) -> Thread {
        let job = self.job.unparker();
        Thread::of_job(job.expect("a handle has a thread until its result is taken"))
    }

    /// The handle of the job that this thread is.
    pub(crate) fn job(&self) -> &weald_kernel::JoinHandle<T> {
        &self.job
    }
}

impl<T> AsUnit for JoinHandle<T> {
    fn as_unit(&self) -> Option<Unit> {
        self.job.as_unit()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.job).poll(cx)
    }
}

impl<'a, T> Event for &'a mut JoinHandle<T> {
    type Output = Result<T, JoinError>;
    type Branch = <&'a mut weald_kernel::JoinHandle<T> as Event>::Branch;

    fn open(self) -> Self::Branch {
        (&mut self.job).open()
    }

    fn conclude(outcome: Self::Output) -> Self::Output {
        outcome
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("job", &self.job)
            .finish()
    }
}
