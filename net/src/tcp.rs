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
    accept::{Door, Listening},
    connect::connect,
    lookup::lookup_host,
    stream::Stream,
};

/// A TCP connection.
pub type TcpStream = Stream<net::TcpStream>;

/// How many connections the system keeps for a listener that is not accepting, unless it allows fewer.
const BACKLOG: i32 = 4096;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        FLAGS,
        None,
    )?)
}

fn begin(address: SocketAddr) -> io::Result<net::TcpStream> {
    let socket = socket(&address)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

impl TcpStream {
    /// Connects to `address`. Limit it: `TcpStream::connect(address).within(duration)`; the system itself
    /// gives up after minutes.
    ///
    /// Cancel-safe: what is dropped is closed.
    ///
    /// # Errors
    /// Those of the system: [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) say, or that there
    /// are no more descriptors.
    pub fn connect(
        address: SocketAddr,
    ) -> Waiting<impl Branch<Output = io::Result<TcpStream>> + use<>> {
        connect(move || begin(address))
    }

    /// Looks `host` up, and connects to the first of its addresses that answers.
    ///
    /// # Errors
    /// Those of the lookup, or of the last address.
    pub async fn connect_host(host: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in lookup_host(host, port).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// Those of the system: [`NotConnected`](io::ErrorKind::NotConnected) if the connection is gone.
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

    /// Whether small writes are sent at once rather than together (Nagle's algorithm, which waits).
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.source.get_ref().set_nodelay(nodelay)
    }

    /// As set by [`set_nodelay`](TcpStream::set_nodelay).
    ///
    /// # Errors
    /// Those of the system.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.source.get_ref().nodelay()
    }

    /// How many routers a packet may pass.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.get_ref().set_ttl(ttl)
    }

    /// Asks a silent peer after `idle` whether it is still there, and again each `interval`; none: never.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_keepalive(&self, keepalive: Option<KeepAlive>) -> io::Result<()> {
        let socket = SockRef::from(self);
        let Some(KeepAlive { idle, interval }) = keepalive else {
            return socket.set_keepalive(false);
        };
        let settings = TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket.set_tcp_keepalive(&settings)
    }

    /// How long the system keeps what is not sent yet when the stream is closed; zero resets the
    /// connection, none leaves it to the system.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(linger)
    }

    /// The size in bytes of the system's buffer for what was received; it may take twice as much.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes)
    }

    /// The size in bytes of the system's buffer for what is to be sent; it may take twice as much.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes)
    }
}

/// When a silent peer is asked; see [`TcpStream::set_keepalive`]. The system counts in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// After so long without a packet.
    pub idle: Duration,
    /// And then so often.
    pub interval: Duration,
}

/// A socket that accepts TCP connections.
///
/// ```
/// use weald_net::{TcpListener, TcpStream};
/// use weald_sync::Wait;
///
/// let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
/// let client = TcpStream::connect(listener.local_addr()?).wait()?;
/// let (server, address) = listener.accept().wait()?;
/// assert_eq!(address, client.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpListener {
    door: Door<net::TcpListener>,
}

impl Listening for net::TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    fn accept_now(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, address) = rustix::net::acceptfrom_with(self, FLAGS)?;
        let address = match address.map(SocketAddr::try_from) {
            Some(Ok(address)) => address,
            // The peer went between its connecting and now.
            _ if self.local_addr()?.is_ipv4() => (Ipv4Addr::UNSPECIFIED, 0).into(),
            _ => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Ok((Stream::watch(net::TcpStream::from(socket))?, address))
    }
}

impl TcpListener {
    /// Listens at `address`; port 0 is one that is free. The address may be one that was in use a moment
    /// ago (`SO_REUSEADDR`). For other options, make the socket with the standard library or `socket2`,
    /// and use [`from_std`](TcpListener::from_std).
    ///
    /// # Errors
    /// Those of the system: [`AddrInUse`](io::ErrorKind::AddrInUse) say.
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = socket(&address)?;
        SockRef::from(&socket).set_reuse_address(true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        TcpListener::from_std(socket.into())
    }

    /// Watches a listener of the standard library, in the current runtime.
    ///
    /// # Errors
    /// Those of the system; and if the current runtime has shut down.
    pub fn from_std(listener: net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        let door = Door::new(listener)?;
        Ok(TcpListener { door })
    }

    /// Waits for a connection. Several may wait at once; each connection goes to one of them.
    ///
    /// Cancel-safe, also in a choice: no connection is lost.
    ///
    /// # Errors
    /// Those of the system. When descriptors are used up ([`is_exhausted`](crate::is_exhausted)) the
    /// connection stays with the system, and the next wait pauses before it asks again: 5 ms at first, a
    /// second at most. So a loop may go on after any error.
    pub fn accept(
        &self,
    ) -> Waiting<impl Branch<Output = io::Result<(TcpStream, SocketAddr)>> + use<'_>> {
        self.door.accept()
    }

    /// Accepts a connection that is there now.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none is; those of the system.
    pub fn try_accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
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

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.door.source.as_fd()
    }
}

impl std::fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.door.source.get_ref().fmt(f)
    }
}
