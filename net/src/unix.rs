//! Unix sockets: streams and listeners at a path in the file system.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, MetadataExt},
            net::{self, SocketAddr},
        },
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
    connect::{Pauses, connect},
    path_error::at_path,
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
    /// Connects to the listener at `path`. While the listener's queue is full, it tries again after 1 ms, then 2 ms, up
    /// to 100 ms: the system neither queues such a connection nor reports when there is room. Set a deadline with
    /// `UnixStream::connect(path).within(duration)`.
    ///
    /// Cancel-safe: dropping the wait closes the socket.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`NotFound`](io::ErrorKind::NotFound), in a
    /// [`PathError`](crate::fs::PathError).
    pub fn connect(
        path: impl Into<PathBuf>,
    ) -> Waiting<impl Branch<Output = io::Result<UnixStream>>> {
        let path = path.into();
        let start = move || start(&path).map_err(|error| at_path("connecting to", &path, error));
        connect(start, Some(Pauses::default()))
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

/// How errors call it.
const LISTENING: &str = "listening at";

/// To the system an empty path is no error, but any free abstract address, which no client would find.
fn bind(path: &Path) -> io::Result<net::UnixListener> {
    let bound = match path.as_os_str().is_empty() {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path is empty",
        )),
        false => net::UnixListener::bind(path),
    };
    bound.map_err(|error| at_path(LISTENING, path, error))
}

/// Held while a socket file is taken over. The lock ends with the socket, and so with the program
/// at the latest.
fn takeover_lock(path: &Path) -> io::Result<net::UnixListener> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let folder = folder
        .metadata()
        .map_err(|error| at_path(LISTENING, path, error))?;
    let mut name = format!("weald-takeover-{}-{}-", folder.dev(), folder.ino()).into_bytes();
    let file = path.file_name().unwrap_or_default().as_bytes();
    // An abstract name has 107 bytes at most.
    let room = 107 - name.len();
    name.extend(&file[file.len().saturating_sub(room)..]);
    let lock = SocketAddr::from_abstract_name(&name)?;
    net::UnixListener::bind_addr(&lock).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let (path, lock) = (path.display(), String::from_utf8_lossy(&name));
            let text = format!(
                "another program is about to take over {path}: it holds the abstract socket @{lock}; try again"
            );
            io::Error::new(error.kind(), text)
        }
        _ => at_path(LISTENING, path, error),
    })
}

/// Removes the socket file at `path` if nobody answers on it.
fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = |why: &str| {
        let text = format!("{} {why}", path.display());
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(at_path(LISTENING, path, error)),
        Ok(found) if !found.file_type().is_socket() => return in_use("exists and is no socket"),
        Ok(_socket) => {}
    }
    match start(path) {
        Ok(_answers) => in_use("is in use: a listener answers"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| at_path(LISTENING, path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            in_use("is in use: a listener has it, and its queue of connections is full")
        }
        Err(error) => in_use(&format!("is in use, or of another kind: {error}")),
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
    /// Listens at `path`, which must not exist. See [`bind_replacing`](UnixListener::bind_replacing) for a file that an
    /// earlier run of the program has left.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`AddrInUse`](io::ErrorKind::AddrInUse) if the file exists, in a
    /// [`PathError`](crate::fs::PathError); [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is empty.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        UnixListener::from_std(bind(path.as_ref())?)
    }

    /// Listens at `path`. A socket file that is already there is removed if nobody answers on it, because its listener
    /// has ended without removing it. Anything else that is there stays.
    ///
    /// Of several programs that do this at once for one path, one listens, and the others fail: each holds a lock in
    /// the meantime, an abstract socket named after the directory and the file. Programs that remove stale files by
    /// other means, or see another network namespace, do not know the lock. A listener that another program has bound,
    /// but on which it does not listen yet, looks stale.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) if somebody answers, if the file is no stream socket, or if another
    /// program is about to take it over; others as [`bind`](UnixListener::bind).
    ///
    /// ```
    /// use weald::net::UnixListener;
    ///
    /// let path = std::env::temp_dir().join(format!("weald-doc-{}.sock", std::process::id()));
    /// drop(UnixListener::bind(&path)?);
    /// assert!(UnixListener::bind(&path).is_err(), "its file is still there");
    /// let listener = UnixListener::bind_replacing(&path)?;
    /// assert!(UnixListener::bind_replacing(&path).is_err(), "somebody answers");
    /// # drop(listener);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind_replacing(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        let path = path.as_ref();
        // Also for the first attempt: until its socket listens, it looks stale.
        let _lock = takeover_lock(path)?;
        match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path)
            }
            bound => UnixListener::from_std(bound?),
        }
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

    /// As [`TcpListener::accept`](crate::TcpListener::accept). Cancel-safe, too.
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
