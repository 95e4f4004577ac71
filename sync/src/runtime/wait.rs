//! Waiting with the stack: the entry for code that is not async.

use std::{future::Future, panic::Location, pin::pin};

use super::hooks::hooks;

/// Waits for a future, or for an event, with the stack.
pub trait Wait: IntoFuture + Sized {
    /// Runs the future to its end, and returns its output. Legal in every context: a job, another
    /// executor's task, a plain thread. Other units run meanwhile.
    ///
    /// ```
    /// use weald::sync::{Mutex, Wait};
    ///
    /// let counter = Mutex::new(1);
    /// *counter.lock().wait() += 1;
    /// assert_eq!(counter.into_inner(), 2);
    /// ```
    ///
    /// # Panics
    /// If the future panics. In a unit that is cancelled meanwhile the call does not return: the unit's
    /// stack is unwound.
    #[track_caller]
    fn wait(self) -> Self::Output {
        let site = Location::caller();
        let mut future = pin!(self.into_future());
        let mut output = None;
        hooks().wait(&mut |cx| {
            let polled = future.as_mut().poll(cx).map(|value| output = Some(value));
            if polled.is_pending() {
                hooks().note_site(site);
            }
            polled
        });
        output.expect("the wait ended because the output is there")
    }
}

impl<F: IntoFuture> Wait for F {}
