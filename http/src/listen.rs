//! The listeners that a server accepts from: those of `weald-net`.

use std::{io, net::SocketAddr};

use weald_net::{Stream, TcpListener, Transport, UnixListener};
use weald_sync::{Branch, Event, Waiting};

/// A source of connections for a server.
pub trait Listen: Send + Sync + 'static {
    /// The socket below its streams.
    type Transport: Transport;

    /// Waits for the next connection, and returns it with the address of its client, if there is one. No connection may
    /// be lost if another event is chosen. After an error that says that descriptors or memory are used up
    /// ([`is_exhausted`](weald_net::is_exhausted)) the next wait must pause before it accepts. An error that says that
    /// the listener will never accept again ([`is_final`](weald_net::is_final)) ends the server; any other one concerns
    /// that one connection, and many in a row are reported, with a pause after each sixteenth.
    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send;
}

impl Listen for TcpListener {
    type Transport = std::net::TcpStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        let accepted: Waiting<_> = self.accept();
        prepared(accepted).wrap(|accepted| {
            let (stream, peer) = accepted?;
            // The small writes of an event stream must not wait for an acknowledgement. The call fails only if
            // the peer is gone, and the next read reports that.
            let _ignored = stream.set_nodelay(true);
            Ok((stream, Some(peer)))
        })
    }
}

impl Listen for UnixListener {
    type Transport = std::os::unix::net::UnixStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        prepared(self.accept()).wrap(|accepted| accepted.map(|(stream, _)| (stream, None)))
    }
}

/// The identity function; its signature names the type.
fn prepared<B: Branch>(waiting: Waiting<B>) -> Waiting<B> {
    waiting
}
