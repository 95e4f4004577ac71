//! Unix sockets: streams and listeners at a path in the file system.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::{self, SocketAddr},
    },
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use weald_sync::{Branch, Waiting};

use crate::{
    accept::{Acceptor, RawListener},
    connect::connect,
    stream::Stream,
};

/// A connection over a Unix socket.
pub type UnixStream = Stream<net::UnixStream>;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn start(path: &Path) -> io::Result<net::UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

impl UnixStream {
    /// Connects to the listener at `path`. Unlike with TCP, the system does not wait for room in the
    /// listener's queue.
    ///
    /// Cancel-safe: dropping the wait closes the socket.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`NotFound`](io::ErrorKind::NotFound), or
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the listener's queue is full.
    pub fn connect(
        path: impl Into<PathBuf>,
    ) -> Waiting<impl Branch<Output = io::Result<UnixStream>>> {
        let path = path.into();
        connect(move || start(&path))
    }

    /// Two streams connected to each other.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Stream::from_std(one)?, Stream::from_std(other)?))
    }

    /// The address of the peer. Most clients have no path.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().peer_addr()
    }

    /// The local address.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }
}

/// A Unix socket that accepts connections. Dropping it leaves its file in place.
pub struct UnixListener {
    acceptor: Acceptor<net::UnixListener>,
}

impl RawListener for net::UnixListener {
    type Accepted = (UnixStream, SocketAddr);

    fn accept_now(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (socket, address) = self.accept()?;
        Ok((Stream::from_std(socket)?, address))
    }
}

impl UnixListener {
    /// Listens at `path`, which must not exist.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`AddrInUse`](io::ErrorKind::AddrInUse) if the file exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        UnixListener::from_std(net::UnixListener::bind(path)?)
    }

    /// Registers a listener of the standard library with the reactor of the current runtime.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the current runtime has shut down.
    pub fn from_std(listener: net::UnixListener) -> io::Result<UnixListener> {
        listener.set_nonblocking(true)?;
        let acceptor = Acceptor::new(listener)?;
        Ok(UnixListener { acceptor })
    }

    /// As [`TcpListener::accept`](crate::TcpListener::accept).
    ///
    /// # Errors
    /// As [`TcpListener::accept`](crate::TcpListener::accept).
    pub fn accept(
        &self,
    ) -> Waiting<impl Branch<Output = io::Result<(UnixStream, SocketAddr)>> + use<'_>> {
        self.acceptor.accept()
    }

    /// As [`TcpListener::try_accept`](crate::TcpListener::try_accept).
    ///
    /// # Errors
    /// As [`TcpListener::try_accept`](crate::TcpListener::try_accept).
    pub fn try_accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        self.acceptor.try_accept()
    }

    /// The address of the listener.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.acceptor.source.get_ref().local_addr()
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.source.as_fd()
    }
}

impl std::fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.acceptor.source.get_ref().fmt(f)
    }
}
