//! Accepting connections, from a listener of any kind.
//!
//! The system hands a connection out once. One that was accepted for a wait in which another event was
//! chosen is kept, for the next one who accepts. When the system is exhausted a wait pauses first; see
//! [`exhaustion`](crate::exhaustion).

use std::{
    future::Future,
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use weald_kernel::{Done, Interest, IoSource, Ready, Sleep, sleep_until};
use weald_sync::{Event, Polled, Source, Waiting, of_source, reason::Reason};

use crate::exhaustion::Pauses;

/// What listens: how one connection is accepted without blocking, and what is made of it.
pub(crate) trait Listening: AsFd {
    /// A connection and who made it.
    type Accepted: Unpin;

    /// Accepts without blocking.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` if nobody waits to be accepted.
    fn accept_now(&self) -> io::Result<Self::Accepted>;
}

/// A watched listener, and what was accepted for nobody.
pub(crate) struct Door<L: Listening> {
    pub(crate) source: IoSource<L>,
    kept: Mutex<Vec<L::Accepted>>,
    pauses: Pauses,
}

/// The wait of an `accept`.
pub(crate) struct Accepting<'a, L: Listening> {
    door: &'a Door<L>,
    ready: Ready<'a, L>,
    pause: Option<Sleep>,
    accepted: Option<io::Result<L::Accepted>>,
}

impl<L: Listening> Door<L> {
    pub(crate) fn new(listener: L) -> io::Result<Door<L>> {
        Ok(Door {
            source: IoSource::new_ready(listener)?,
            kept: Mutex::new(Vec::new()),
            pauses: Pauses::default(),
        })
    }

    pub(crate) fn accept(&self) -> Waiting<<Polled<Accepting<'_, L>> as Event>::Branch> {
        let accepting = Accepting {
            door: self,
            ready: self.source.readiness(Interest::Read),
            pause: self.pauses.end().map(sleep_until),
            accepted: None,
        };
        Waiting::new(of_source(accepting).open())
    }

    pub(crate) fn try_accept(&self) -> io::Result<L::Accepted> {
        match self.take_kept() {
            Some(accepted) => Ok(accepted),
            None => self.source.try_operate(Interest::Read, |listener| {
                listener.accept_now().map(Done::Maybe)
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
        self.source.tell(Interest::Read);
    }
}

impl<L: Listening> Source for Accepting<'_, L> {
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
        let door = this.door;
        let accept = |listener: &L| match door.take_kept() {
            Some(accepted) => Ok(Done::Maybe(accepted)),
            None => listener.accept_now().map(Done::Maybe),
        };
        let accepted = ready!(this.ready.poll_operate(cx, accept));
        door.pauses.note(&accepted);
        this.accepted = Some(accepted);
        Poll::Ready(())
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        let accepted = self.get_mut().accepted.take();
        accepted.expect("a source is taken from when it is ready")
    }

    fn reason(&self) -> Reason {
        self.ready.reason()
    }
}

impl<L: Listening> Drop for Accepting<'_, L> {
    fn drop(&mut self) {
        if let Some(Ok(accepted)) = self.accepted.take() {
            self.door.keep(accepted);
        }
    }
}
