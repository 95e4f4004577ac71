//! Waits for a source: its readiness, and operations on it, as futures and as events.
//!
//! In a choice of several events an operation is performed only when it was chosen, so that nothing is
//! read in vain. The price is one more question to the system after a wake, which a lone wait does not ask.

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
        slot::{Interest, Seen, Ticket, Waiter},
    },
};

/// A wait for a source: awaited, waited for with the stack, limited (`within`), or one of several events.
pub type IoWait<S> = Waiting<<Polled<S> as Event>::Branch>;

/// See [`IoSource::ready`].
pub struct Ready<'a, T: AsFd> {
    source: &'a IoSource<T>,
    interest: Interest,
    ticket: Option<Ticket>,
}

impl<'a, T: AsFd> Ready<'a, T> {
    pub(super) fn new(source: &'a IoSource<T>, interest: Interest) -> Ready<'a, T> {
        Ready {
            source,
            interest,
            ticket: None,
        }
    }

    /// As [`IoSource::poll_operate`]; it is this wait that is woken, beside all others.
    ///
    /// # Errors
    /// As there.
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
            ticket: Some(&mut self.ticket),
        }
    }

    fn look_or_wait(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        let slot = self.source.slot();
        match slot.look_or_wait(self.waiter(), cx.waker()) {
            Ok(seen) => Poll::Ready(seen),
            Err(_waits) => Poll::Pending,
        }
    }

    /// Waits until the system itself says that it would not refuse.
    fn poll_allowed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Poll::Ready(seen) = self.look_or_wait(cx) else {
                return Poll::Pending;
            };
            if seen.is_gone() || !self.source.is_refused(self.interest) {
                return Poll::Ready(());
            }
            // What was noted is old: another operation came first.
            self.source.slot().refused(self.interest, seen);
        }
    }
}

impl<T: AsFd> Drop for Ready<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.source.slot().leave(self.interest, ticket);
        }
    }
}

impl<T: AsFd> Source for Ready<'_, T> {
    type Output = io::Result<()>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_allowed(cx)
    }

    fn take(self: Pin<&mut Self>) -> io::Result<()> {
        match self.source.slot().look().is_gone() {
            true => Err(io::Error::other(RuntimeGone)),
            false => Ok(()),
        }
    }

    fn reason(&self) -> Reason {
        self.source.reason(self.interest)
    }
}

/// See [`IoSource::operate`].
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

    /// Another event may still be chosen: the system is asked, and nothing is done.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().ready.poll_allowed(cx)
    }

    fn take(self: Pin<&mut Self>) -> io::Result<R> {
        let this = self.get_mut();
        let (source, interest) = (this.ready.source, this.ready.interest);
        loop {
            let seen = source.slot().look();
            if let Some(result) = source.attempt(interest, seen, &mut this.act) {
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
            let seen = ready!(this.ready.look_or_wait(cx));
            let (source, interest) = (this.ready.source, this.ready.interest);
            if let Some(result) = source.attempt(interest, seen, &mut this.act) {
                return Poll::Ready(result);
            }
        }
    }

    fn reason(&self) -> Reason {
        self.ready.reason()
    }
}
