//! Waiting for a future with the thread, for programs without an executor.
//!
//! Most commits end at the first poll, and most others within a microsecond, when the one who has the right
//! to commit has served them. To park the thread and to wake it costs ten times that. So a thread first looks
//! again after some pauses, which get longer, then lets other threads run in between (the one who has the
//! right may be among them), and parks only then.

use std::future::Future;
use std::hint;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// How often a thread pauses before it looks again, each time twice as long as before.
const PAUSES: u32 = 5;
/// How often it lets other threads run, after that. More would let strangers run on a busy machine: sixteen
/// made commits of 64 threads slower than parking at once.
const YIELDS: u32 = 2;

/// Waits for a future with the thread. It needs no runtime, and parks only what lasts.
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
        if let Some(output) = look_often(future.as_mut()) {
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

/// Polls again and again for a short while. The next poll behind it brings a waker that wakes.
fn look_often<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    for round in 0..PAUSES + YIELDS {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        if round < PAUSES {
            (0..1 << round).for_each(|_| hint::spin_loop());
        } else {
            thread::yield_now();
        }
    }
    None
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
