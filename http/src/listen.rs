//! The listeners that a server accepts from: those of `weald-net`.

use std::{io, net::SocketAddr};

use weald_net::{Stream, TcpListener, TcpStream, Transport, UnixListener, UnixStream};
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

    /// The next connection of those that have come already, without waiting. The server asks for them at its end,
    /// before the listener is closed, because their clients may have sent whole requests.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, as is always so by default, and those of
    /// [`next`](Listen::next).
    fn next_queued(&self) -> io::Result<(Stream<Self::Transport>, Option<SocketAddr>)> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Listen for TcpListener {
    type Transport = std::net::TcpStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        let accepted: Waiting<_> = self.accept();
        prepared(accepted).wrap(|accepted| accepted.map(at_once))
    }

    fn next_queued(&self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        self.try_accept().map(at_once)
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

    fn next_queued(&self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        self.try_accept().map(|(stream, _)| (stream, None))
    }
}

/// The small writes of an event stream must not wait for an acknowledgement.
fn at_once((stream, peer): (TcpStream, SocketAddr)) -> (TcpStream, Option<SocketAddr>) {
    // This fails only if the peer is gone, and the next read reports that.
    let _ignored = stream.set_nodelay(true);
    (stream, Some(peer))
}

/// The identity function; its signature names the type.
fn prepared<B: Branch>(waiting: Waiting<B>) -> Waiting<B> {
    waiting
}
