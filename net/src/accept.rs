//! Accepts connections from a listener of any kind.
//!
//! The system hands out each connection once. If a wait has accepted a connection but another event of the choice wins,
//! the connection is kept for the next caller that accepts. After the system ran out of descriptors or memory, and
//! after an error that will come again for ever, a wait pauses before it accepts again; see
//! [`exhaustion`](crate::exhaustion). A lack of descriptors is an error only when a connection is pending, although the
//! system looks for a free descriptor before it looks for a connection.

use std::{
    future::Future,
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use weald_kernel::{Done, Interest, IoSource, Ready, Sleep, sleep_until};
use weald_sync::{Event, Polled, Source, Waiting, of_source, reason::Reason};

use crate::exhaustion::Backoff;

/// A listener of the standard library.
pub(crate) trait RawListener: AsFd {
    /// A connection and the address of its peer.
    type Accepted: Unpin;

    /// Accepts without blocking.
    ///
    /// # Errors
    /// Errors from the operating system; `WouldBlock` if no connection is pending.
    fn accept_now(&self) -> io::Result<Self::Accepted>;
}

/// Accepts without blocking. A lack of descriptors is no error while no connection is pending: a server that closes
/// idle connections on that error would close them for nobody.
fn accept_pending<L: RawListener>(listener: &L) -> io::Result<L::Accepted> {
    let accepted = listener.accept_now();
    let failed = accepted.as_ref().err().and_then(Errno::from_io_error);
    match failed {
        Some(Errno::MFILE | Errno::NFILE) if !is_pending(listener) => {
            Err(io::ErrorKind::WouldBlock.into())
        }
        _ => accepted,
    }
}

/// Whether a connection is pending. If the system does not say, one may be.
fn is_pending(listener: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// A listener registered with the reactor.
pub(crate) struct Acceptor<L: RawListener> {
    pub(crate) source: IoSource<L>,
    /// Connections that were accepted by waits that lost a choice.
    kept: Mutex<Vec<L::Accepted>>,
    backoff: Backoff,
}

/// A wait for a connection.
pub(crate) struct Accepting<'a, L: RawListener> {
    acceptor: &'a Acceptor<L>,
    ready: Ready<'a, L>,
    pause: Option<Sleep>,
    accepted: Option<io::Result<L::Accepted>>,
}

impl<L: RawListener> Acceptor<L> {
    pub(crate) fn new(listener: L) -> io::Result<Acceptor<L>> {
        Ok(Acceptor {
            source: IoSource::new_ready(listener)?,
            kept: Mutex::new(Vec::new()),
            backoff: Backoff::default(),
        })
    }

    pub(crate) fn accept(&self) -> Waiting<<Polled<Accepting<'_, L>> as Event>::Branch> {
        let accepting = Accepting {
            acceptor: self,
            ready: self.source.readiness(Interest::Read),
            pause: self.backoff.end().map(sleep_until),
            accepted: None,
        };
        Waiting::new(of_source(accepting).open())
    }

    pub(crate) fn try_accept(&self) -> io::Result<L::Accepted> {
        match self.take_kept() {
            Some(accepted) => Ok(accepted),
            None => self.source.try_operate(Interest::Read, |listener| {
                accept_pending(listener).map(Done::Maybe)
            }),
        }
    }

    fn take_kept(&self) -> Option<L::Accepted> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pop()
    }

    fn keep(&self, accepted: L::Accepted) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(accepted);
        drop(kept);
        self.source.notify(Interest::Read);
    }
}

impl<L: RawListener> Source for Accepting<'_, L> {
    type Output = io::Result<L::Accepted>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.accepted.is_some() {
            return Poll::Ready(());
        }
        if let Some(pause) = &mut this.pause {
            ready!(Pin::new(pause).poll(cx));
            this.pause = None;
        }
        let acceptor = this.acceptor;
        let accept = |listener: &L| match acceptor.take_kept() {
            Some(accepted) => Ok(Done::Maybe(accepted)),
            None => accept_pending(listener).map(Done::Maybe),
        };
        let accepted = ready!(this.ready.poll_operate(cx, accept));
        acceptor.backoff.note(&accepted);
        this.accepted = Some(accepted);
        Poll::Ready(())
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        let accepted = self.get_mut().accepted.take();
        accepted.expect("`take` is called after `poll_ready` returned `Ready`")
    }

    fn reason(&self) -> Reason {
        self.ready.reason()
    }
}

impl<L: RawListener> Drop for Accepting<'_, L> {
    fn drop(&mut self) {
        if let Some(Ok(accepted)) = self.accepted.take() {
            self.acceptor.keep(accepted);
        }
    }
}
