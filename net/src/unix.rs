//! Unix sockets: streams and listeners at a path of the file system.

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
    accept::{Door, Listening},
    connect::connect,
    stream::Stream,
};

/// A connection through a Unix socket.
pub type UnixStream = Stream<net::UnixStream>;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn begin(path: &Path) -> io::Result<net::UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

impl UnixStream {
    /// Connects to the listener at `path`. Unlike TCP, the system does not wait for room in a listener's
    /// queue.
    ///
    /// Cancel-safe: what is dropped is closed.
    ///
    /// # Errors
    /// Those of the system: [`NotFound`](io::ErrorKind::NotFound), and
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the listener's queue is full.
    pub fn connect(
        path: impl Into<PathBuf>,
    ) -> Waiting<impl Branch<Output = io::Result<UnixStream>>> {
        let path = path.into();
        connect(move || begin(&path))
    }

    /// Two streams that are connected with each other.
    ///
    /// # Errors
    /// Those of the system.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Stream::from_std(one)?, Stream::from_std(other)?))
    }

    /// The address of the peer; without a path for most clients.
    ///
    /// # Errors
    /// Those of the system.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }
}

/// A Unix socket that accepts connections. Its file stays when it is dropped.
pub struct UnixListener {
    door: Door<net::UnixListener>,
}

impl Listening for net::UnixListener {
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
    /// Those of the system: [`AddrInUse`](io::ErrorKind::AddrInUse) if the file exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        UnixListener::from_std(net::UnixListener::bind(path)?)
    }

    /// Watches a listener of the standard library, in the current runtime.
    ///
    /// # Errors
    /// Those of the system; and if the current runtime has shut down.
    pub fn from_std(listener: net::UnixListener) -> io::Result<UnixListener> {
        listener.set_nonblocking(true)?;
        let door = Door::new(listener)?;
        Ok(UnixListener { door })
    }

    /// As [`TcpListener::accept`](crate::TcpListener::accept).
    ///
    /// # Errors
    /// As there.
    pub fn accept(
        &self,
    ) -> Waiting<impl Branch<Output = io::Result<(UnixStream, SocketAddr)>> + use<'_>> {
        self.door.accept()
    }

    /// As [`TcpListener::try_accept`](crate::TcpListener::try_accept).
    ///
    /// # Errors
    /// As there.
    pub fn try_accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        self.door.try_accept()
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.door.source.get_ref().local_addr()
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.door.source.as_fd()
    }
}

impl std::fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.door.source.get_ref().fmt(f)
    }
}
