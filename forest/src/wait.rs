//! Waiting for a future by parking the thread, for programs without an executor.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Waits for a future with the thread. It needs no runtime; most commits end at the first poll, and
/// then nothing is parked.
///
/// ```
/// use weald_forest::Wait;
///
/// assert_eq!(async { 42 }.wait(), 42);
/// ```
pub trait Wait: IntoFuture + Sized {
    /// Runs the future to its end on this thread, and returns its output.
    ///
    /// # Panics
    /// If the future panics.
    fn wait(self) -> Self::Output {
        let mut future = pin!(self.into_future());
        // Most are ready at once, and then no waker is needed; else the next poll brings a real one.
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            thread::park();
        }
    }
}

impl<F: IntoFuture> Wait for F {}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
