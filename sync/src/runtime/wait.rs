//! Waiting with the stack: the entry for code that is not async.

use std::{
    future::Future,
    mem::{self, ManuallyDrop},
    panic::Location,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{
    hooks::hooks,
    unit::{self, Unit},
};

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
    #[inline]
    #[track_caller]
    fn wait(self) -> Self::Output {
        wait_in_frame(pin!(self.into_future()), Location::caller())
    }
}

impl<F: IntoFuture> Wait for F {}

/// Waits. In a frame of its own, for the reason of [`poll_first`]: the unit is not used behind a first poll that has
/// not ended the wait.
#[inline(never)]
fn wait_in_frame<F: Future>(
    mut future: Pin<&mut F>,
    site: &'static Location<'static>,
) -> F::Output {
    let Some((waker, notes)) = unit::with(Unit::begin_first_poll) else {
        return wait_asking(future, site);
    };
    let begun = Begun(notes);
    match future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(output) => {
            // The same thread as before: what waits in a poll of a wait resumes where it was.
            if unit::with(|unit| unit.end_first_poll(notes)) {
                mem::forget(begun);
            }
            output
        }
        Poll::Pending => wait_on_polled(future, &waker, (begun, site)),
    }
}

/// Waits where the unit has not answered what the runtime must be asked.
#[inline(never)]
fn wait_asking<F: Future>(mut future: Pin<&mut F>, site: &'static Location<'static>) -> F::Output {
    let Some(first) = hooks().begin_first_poll() else {
        return wait_with_hooks(future, site, None);
    };
    let (waker, begun) = (first.waker, Begun(first.notes));
    match poll_first(future.as_mut(), &waker) {
        Poll::Ready(output) => output,
        Poll::Pending => wait_on_polled(future, &waker, (begun, site)),
    }
}

/// A wait that has begun with a first poll, and ends with this. Its notes.
struct Begun(u8);

impl Drop for Begun {
    #[inline]
    fn drop(&mut self) {
        hooks().end_first_poll(self.0);
    }
}

/// A poll in a frame of its own: a later wait of the caller may resume it on another OS thread, and an address of a
/// thread-local that the poll reads must not stay in a register of the caller until then.
#[inline(never)]
fn poll_first<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// As [`poll_first`], for a further poll of a wait with these notes. Sets `has_ended` if it has ended the wait, and the
/// runtime need not be told.
#[inline(never)]
fn poll_again<F: Future>(
    future: Pin<&mut F>,
    waker: &Waker,
    (notes, has_ended): (u8, &mut bool),
) -> Poll<F::Output> {
    let polled = future.poll(&mut Context::from_waker(waker));
    if polled.is_ready() {
        *has_ended = unit::with(|unit| unit.end_first_poll(notes));
    }
    polled
}

/// Continues a wait behind its first poll, which has not ended it: each further poll is like the first one.
#[inline(never)]
fn wait_on_polled<F: Future>(
    mut future: Pin<&mut F>,
    waker: &Waker,
    (mut begun, site): (Begun, &'static Location<'static>),
) -> F::Output {
    let mut has_ended = false;
    while hooks().suspend(&mut begun.0, site) {
        if let Poll::Ready(output) = poll_again(future.as_mut(), waker, (begun.0, &mut has_ended)) {
            if has_ended {
                mem::forget(begun);
            }
            return output;
        }
    }
    let Begun(notes) = *ManuallyDrop::new(begun);
    wait_with_hooks(future, site, Some(notes))
}

/// Waits. `begun`: the notes of polls that have not ended the wait, the first one and those behind it.
#[inline(never)]
fn wait_with_hooks<F: Future>(
    mut future: Pin<&mut F>,
    site: &'static Location<'static>,
    begun: Option<u8>,
) -> F::Output {
    let mut output = None;
    let mut poll = |cx: &mut Context<'_>| {
        let polled = future.as_mut().poll(cx).map(|value| output = Some(value));
        if polled.is_pending() {
            hooks().note_site(site);
        }
        polled
    };
    match begun {
        Some(notes) => hooks().wait_on(notes, &mut poll),
        None => hooks().wait(&mut poll),
    }
    output.expect("the wait ended because the output is there")
}
