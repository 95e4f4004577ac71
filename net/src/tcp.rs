//! TCP: streams and listeners.

use std::{
    io,
    net::{self, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType},
};
use socket2::{SockRef, TcpKeepalive};
use weald_sync::{Branch, Waiting};

use crate::{
    accept::{Acceptor, RawListener},
    connect::connect,
    stream::Stream,
};

/// A TCP connection. If it was made by [`connect`](TcpStream::connect), or came from a listener that
/// [`TcpListener::bind`] made, it sends small writes at once; [`set_nodelay`](TcpStream::set_nodelay) changes that.
pub type TcpStream = Stream<net::TcpStream>;

/// How many pending connections the system queues for a listener, unless its own limit is lower.
const BACKLOG: i32 = 4096;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A socket that sends small writes at once. A connection inherits this from its listener.
fn socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    // Without it a second small write waits until the peer acknowledges the first, and most systems delay an
    // acknowledgement by 40 ms: protocols that write an answer in two parts, as HTTP/2 does, would crawl.
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn start(address: SocketAddr) -> io::Result<net::TcpStream> {
    let socket = socket(&address)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

impl TcpStream {
    /// Connects to `address`; for the name of a host there is [`Connector`](crate::Connector). Set a deadline with
    /// `TcpStream::connect(address).within(duration)`: the system itself gives up only after minutes.
    ///
    /// Cancel-safe: dropping the wait closes the socket.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) or
    /// that no descriptor is left.
    pub fn connect(
        address: SocketAddr,
    ) -> Waiting<impl Branch<Output = io::Result<TcpStream>> + use<>> {
        connect(move || start(address), None)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`NotConnected`](io::ErrorKind::NotConnected) if the
    /// connection is gone.
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

    /// Sets whether small writes are sent at once (`true`, the default) or collected first by Nagle's algorithm
    /// (`false`). A socket of the standard library keeps its own setting, and so do the connections of such a
    /// listener.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.source.get_ref().set_nodelay(nodelay)
    }

    /// Whether small writes are sent at once; see [`set_nodelay`](TcpStream::set_nodelay).
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.source.get_ref().nodelay()
    }

    /// Sets how many routers a packet may pass.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.get_ref().set_ttl(ttl)
    }

    /// Probes a silent peer after `idle`, and then once each `interval`. `None` turns the probes off.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_keepalive(&self, keepalive: Option<KeepAlive>) -> io::Result<()> {
        let socket = SockRef::from(self);
        let Some(KeepAlive { idle, interval }) = keepalive else {
            return socket.set_keepalive(false);
        };
        let settings = TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket.set_tcp_keepalive(&settings)
    }

    /// Sets how long the system keeps unsent bytes after the stream was closed. Zero resets the connection;
    /// `None` leaves the choice to the system.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(linger)
    }

    /// Sets the size in bytes of the system's receive buffer. The system may use twice as much.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes)
    }

    /// Sets the size in bytes of the system's send buffer. The system may use twice as much.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes)
    }
}

/// When a silent peer is probed; see [`TcpStream::set_keepalive`]. The system counts in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// How long the peer is silent before the first probe.
    pub idle: Duration,
    /// The time between further probes.
    pub interval: Duration,
}

/// A socket that accepts TCP connections.
///
/// ```
/// use weald::net::{TcpListener, TcpStream};
/// use weald::sync::Wait;
///
/// let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
/// let client = TcpStream::connect(listener.local_addr()?).wait()?;
/// let (server, address) = listener.accept().wait()?;
/// assert_eq!(address, client.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpListener {
    acceptor: Acceptor<net::TcpListener>,
}

impl RawListener for net::TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    fn accept_now(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, address) = rustix::net::acceptfrom_with(self, FLAGS)?;
        let address = match address.map(SocketAddr::try_from) {
            Some(Ok(address)) => address,
            // The peer has already disconnected.
            _ if self.local_addr()?.is_ipv4() => (Ipv4Addr::UNSPECIFIED, 0).into(),
            _ => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Ok((Stream::watch(net::TcpStream::from(socket))?, address))
    }
}

impl TcpListener {
    /// Listens at `address`, such as `"127.0.0.1:8080".parse()?`. Port 0 picks a free port. The address may have been
    /// in use a moment ago (`SO_REUSEADDR`). For other options, create the socket with the standard library or
    /// `socket2`, and use [`from_std`](TcpListener::from_std).
    ///
    /// # Errors
    /// Errors from the operating system, such as [`AddrInUse`](io::ErrorKind::AddrInUse).
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = socket(&address)?;
        SockRef::from(&socket).set_reuse_address(true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        TcpListener::from_std(socket.into())
    }

    /// Registers a listener of the standard library with the reactor of the current runtime.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the current runtime has shut down.
    pub fn from_std(listener: net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        let acceptor = Acceptor::new(listener)?;
        Ok(TcpListener { acceptor })
    }

    /// Waits for a connection. Several callers may wait at once; each connection goes to one of them.
    ///
    /// Cancel-safe, even in a choice: no connection is lost.
    ///
    /// # Errors
    /// Errors from the operating system. When descriptors are used up ([`is_exhausted`](crate::is_exhausted)) the
    /// connection stays in the system's queue. After such an error, and after one that says that there will be no other
    /// connection ([`is_final`](crate::is_final)), the next wait pauses before it tries again: 5 ms at first, a second
    /// at most. So a loop may continue after any error; after a final one it had better end.
    pub fn accept(
        &self,
    ) -> Waiting<impl Branch<Output = io::Result<(TcpStream, SocketAddr)>> + use<'_>> {
        self.acceptor.accept()
    }

    /// Accepts a connection that is pending now, without waiting.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none is pending; errors from the operating system.
    pub fn try_accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
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

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.source.as_fd()
    }
}

impl std::fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.acceptor.source.get_ref().fmt(f)
    }
}
