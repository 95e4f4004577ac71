//! Waiting by parking the calling OS thread: for programs without a runtime.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use crate::hooks::hooks;

/// Waits for a future, or for an event, with the stack.
pub trait Wait: IntoFuture + Sized {
    /// Runs the future to its end, and returns its output. Legal in every context: a job, another
    /// executor's task, a plain thread. Other units go on meanwhile.
    ///
    /// ```
    /// use weald_sync::{Mutex, Wait};
    ///
    /// let counter = Mutex::new(1);
    /// *counter.lock().wait() += 1;
    /// assert_eq!(counter.into_inner(), 2);
    /// ```
    ///
    /// # Panics
    /// If the future panics. In a unit that is cancelled meanwhile it does not return: the unit's stack
    /// is unwound.
    fn wait(self) -> Self::Output {
        let mut future = pin!(self.into_future());
        let mut output = None;
        hooks().wait(&mut |cx| future.as_mut().poll(cx).map(|value| output = Some(value)));
        output.expect("the wait ended because the output is there")
    }
}

impl<F: IntoFuture> Wait for F {}

struct ThreadWaker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // AcqRel: pairs with the swap in `wait`.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Polls until it is ready; parks the thread between two polls.
pub(crate) fn wait(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    let signal = Arc::new(ThreadWaker {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(signal.clone());
    let mut cx = Context::from_waker(&waker);
    while poll(&mut cx).is_pending() {
        while !signal.woken.swap(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}
