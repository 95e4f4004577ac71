//! Waits for an [`IoSource`]: for its readiness, and for operations on it, as futures and as events.
//!
//! In a choice among several events an operation is performed only after it was chosen, so that no data is read and
//! then dropped. This costs one `poll(2)` after each wake; a wait for a single event does without it.

use std::{
    io,
    marker::PhantomData,
    os::fd::AsFd,
    pin::Pin,
    task::{Context, Poll, ready},
};

use weald_sync::{Event, Polled, Source, Waiting, reason::Reason};

use crate::{
    api::io_source::{Done, IoSource},
    reactor::{
        RuntimeGone,
        slot::{Interest, Seen, Waiter, WaiterKey},
    },
    scheduler::workers::waker::kept,
};

/// A wait for a source. It can be awaited, waited for with the stack, limited by a deadline (`within`), or be one of
/// several events.
pub type IoWait<S> = Waiting<<Polled<S> as Event>::Branch>;

/// The source of readiness behind [`IoSource::ready`] and [`IoSource::readiness`].
pub struct Ready<'a, T: AsFd> {
    source: &'a IoSource<T>,
    interest: Interest,
    key: Option<WaiterKey>,
}

impl<'a, T: AsFd> Ready<'a, T> {
    pub(super) fn new(source: &'a IoSource<T>, interest: Interest) -> Ready<'a, T> {
        Ready {
            source,
            interest,
            key: None,
        }
    }

    /// As [`IoSource::poll_operate`], with a waker of its own: it replaces no other caller's waker.
    ///
    /// # Errors
    /// As [`IoSource::poll_operate`].
    pub fn poll_operate<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut act: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let source = self.source;
        source.poll_as(self.waiter(), cx, &mut act)
    }

    fn waiter(&mut self) -> Waiter<'_> {
        Waiter {
            interest: self.interest,
            key: Some(&mut self.key),
        }
    }

    fn poll_noted(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        let slot = self.source.slot();
        match slot.ready_or_wait(self.waiter(), || kept(cx.waker())) {
            Ok(seen) => Poll::Ready(seen),
            Err(_waits) => Poll::Pending,
        }
    }

    /// Waits until the system confirms that the operation may succeed.
    fn poll_allowed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Poll::Ready(seen) = self.poll_noted(cx) else {
                return Poll::Pending;
            };
            if seen.is_gone() || !self.source.is_refused(self.interest) {
                return Poll::Ready(());
            }
            // The noted readiness is out of date: another operation came first.
            self.source.slot().refused(self.interest, seen);
        }
    }
}

impl<T: AsFd> Drop for Ready<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.source.slot().leave(self.interest, key);
        }
    }
}

impl<T: AsFd> Source for Ready<'_, T> {
    type Output = io::Result<()>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_allowed(cx)
    }

    fn take(self: Pin<&mut Self>) -> io::Result<()> {
        match self.source.slot().seen().is_gone() {
            true => Err(io::Error::other(RuntimeGone)),
            false => Ok(()),
        }
    }

    fn reason(&self) -> Reason {
        self.source.reason(self.interest)
    }
}

/// The operation behind [`IoSource::operate`].
pub struct Operation<'a, T: AsFd, R, F> {
    ready: Ready<'a, T>,
    act: F,
    result: PhantomData<fn() -> R>,
}

impl<'a, T: AsFd, R, F> Operation<'a, T, R, F> {
    pub(super) fn new(ready: Ready<'a, T>, act: F) -> Operation<'a, T, R, F> {
        Operation {
            ready,
            act,
            result: PhantomData,
        }
    }
}

impl<T, R, F> Source for Operation<'_, T, R, F>
where
    T: AsFd,
    F: FnMut(&T) -> io::Result<Done<R>> + Unpin,
{
    type Output = io::Result<R>;

    /// Only asks the system: another event may still be chosen.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().ready.poll_allowed(cx)
    }

    fn take(self: Pin<&mut Self>) -> io::Result<R> {
        let this = self.get_mut();
        let (source, interest) = (this.ready.source, this.ready.interest);
        let slot = source.slot();
        loop {
            let seen = slot.seen();
            if let Some(result) = source.attempt(slot, (interest, seen), &mut this.act) {
                return result;
            }
            if source.is_refused(interest) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn poll_take(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let this = self.get_mut();
        loop {
            let seen = ready!(this.ready.poll_noted(cx));
            let (source, interest) = (this.ready.source, this.ready.interest);
            if let Some(result) = source.attempt(source.slot(), (interest, seen), &mut this.act) {
                return Poll::Ready(result);
            }
        }
    }

    fn reason(&self) -> Reason {
        self.ready.reason()
    }
}
