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

use rustix::net::sockopt::set_socket_linger;
use weald_net::Transport;

use crate::{
    registry::{ConnectionPermit, Entry},
    wire::Wire,
};

/// How long a client has to notice. The wait costs little: such a connection has no buffers, makes room before any
/// other, and the end of the server does not wait for it.
pub(crate) const LINGER: Duration = Duration::from_secs(30);
/// The size of a read whose bytes are thrown away.
const READ: usize = 8 << 10;
/// The most reads in one poll.
const READS: usize = 16;

/// A connection that is about to close.
pub(crate) struct Closing {
    /// Held as long as the socket, if it was not given away.
    _permit: Option<ConnectionPermit>,
    lingers: Lingers,
}

/// Whether a connection waits for its client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lingers {
    Yes,
    /// If there is something that was not read.
    IfUnread,
    /// Another one has the socket, which stays open: only what is held is left to send.
    IsTakenOver,
}

impl Closing {
    pub(crate) fn new(permit: ConnectionPermit, lingers: Lingers) -> Closing {
        Closing {
            _permit: Some(permit),
            lingers,
        }
    }

    /// Another one has the socket.
    pub(crate) fn of_upgraded() -> Closing {
        Closing {
            _permit: None,
            lingers: Lingers::IsTakenOver,
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
        if sent.is_err() || self.lingers == Lingers::IsTakenOver {
            return Poll::Ready(());
        }
        wire.activity.take_back_reset();
        let is_gone = wire.shut().is_err();
        let lingers = match self.lingers {
            Lingers::Yes => !wire.has_ended(),
            Lingers::IfUnread => {
                let mut byte = [0];
                !wire.has_ended() && wire.stream.try_read(&mut byte).is_ok_and(|count| count > 0)
            }
            Lingers::IsTakenOver => false,
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

/// Makes the socket's close a reset: what is dropped next. A Unix socket has no such option, and its close is the usual
/// one.
pub(crate) fn reset_at_close<T: Transport>(wire: &Wire<T>) {
    // One that fails is gone.
    let _is_gone = set_socket_linger(&wire.stream, Some(Duration::ZERO));
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
