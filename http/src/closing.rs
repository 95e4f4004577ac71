//! The end of a connection: what is held is sent, and a client that may still send is given time to notice.
//!
//! A socket that is closed while bytes of the client are unread, or that gets more afterwards, is reset, and a reset
//! makes the client's system throw away answers that the client has not read (RFC 9112, 9.6). So a connection that
//! refuses a request, or does not read all of one, ends its own direction and reads on until the client has ended too.

use std::{
    mem::MaybeUninit,
    task::{Context, Poll, ready},
    time::Duration,
};

use weald_net::Transport;

use crate::{
    registry::{Entry, Place},
    wire::Wire,
};

/// How long a client has to notice. It costs little: such a connection has no buffers, makes room before any other, and
/// is not waited for at the end of the server.
pub(crate) const LINGER: Duration = Duration::from_secs(30);
/// The size of a read whose bytes nobody wants.
const READ: usize = 8 << 10;
/// The most reads in one poll.
const READS: usize = 16;

/// A connection that is about to close.
pub(crate) struct Closing {
    /// None after an upgrade: the socket stays open, and only what is held is left to send.
    place: Option<Place>,
    lingers: Lingers,
}

/// Whether a connection waits for its client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lingers {
    Yes,
    /// If there is something that was not read.
    IfUnread,
    No,
}

impl Closing {
    pub(crate) fn new(place: Place, lingers: Lingers) -> Closing {
        Closing {
            place: Some(place),
            lingers,
        }
    }

    /// Another one has the socket.
    pub(crate) fn of_upgraded() -> Closing {
        Closing {
            place: None,
            lingers: Lingers::No,
        }
    }

    /// Ready when the socket can be closed. Pending in the phase that the activity tells.
    pub(crate) fn poll<T: Transport>(
        &mut self,
        wire: &Wire<T>,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if wire.activity.is_lingering() {
            return poll_end(wire, cx);
        }
        let sent = ready!(wire.poll_send(cx));
        if sent.is_err() || self.place.is_none() {
            return Poll::Ready(());
        }
        let is_gone = wire.shut().is_err();
        let lingers = match self.lingers {
            Lingers::Yes => !wire.has_ended(),
            Lingers::IfUnread => {
                let mut byte = [0];
                !wire.has_ended() && wire.stream.try_read(&mut byte).is_ok_and(|count| count > 0)
            }
            Lingers::No => false,
        };
        if is_gone || !lingers {
            return Poll::Ready(());
        }
        wire.shed();
        wire.activity.forget_request();
        entry.lingers();
        poll_end(wire, cx)
    }
}

/// Reads up to the client's end.
fn poll_end<T: Transport>(wire: &Wire<T>, cx: &mut Context<'_>) -> Poll<()> {
    for _ in 0..READS {
        let mut buffer = [const { MaybeUninit::uninit() }; READ];
        match ready!(wire.stream.poll_read_with(cx, &mut buffer, |_bytes| ())) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Poll::Ready(()),
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
