//! What a server accepts from: listeners of `weald-net`.

use std::{io, net::SocketAddr};

use weald_net::{Stream, TcpListener, Transport, UnixListener};
use weald_sync::{Branch, Event, Waiting};

/// A listener.
pub trait Listen: Send + Sync + 'static {
    /// What its streams are made of.
    type Transport: Transport;

    /// The next connection, and who made it, if that has an address. Nothing may be lost if another event is
    /// chosen. After an error that says that descriptors or memory are used up
    /// ([`is_exhausted`](weald_net::is_exhausted)) the next wait must take a while.
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
            // Small writes of a stream of events must not wait for an acknowledgement. It fails only if
            // the peer is gone, which reading tells.
            let _gone = stream.set_nodelay(true);
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

/// The same; it says which type that is.
fn prepared<B: Branch>(waiting: Waiting<B>) -> Waiting<B> {
    waiting
}
