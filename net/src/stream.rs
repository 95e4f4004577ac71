//! A stream of bytes in both directions, over TCP or a Unix socket.
//!
//! A transfer that moves fewer bytes than were asked for has emptied or filled the system's buffer, so the
//! next transfer would be refused. The operation reports this to the reactor, which saves that system call.
//! The exception is a read from a Unix socket, which may return early although more bytes are available.

use std::{
    fmt,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::Shutdown,
    os::fd::{AsFd, BorrowedFd},
    pin::Pin,
    task::{Context, Poll},
};

use futures_io::{AsyncRead, AsyncWrite};
use rustix::net::RecvFlags;
use weald_kernel::{Done, Interest, IoSource};
use weald_sync::{Branch, Waiting};

use crate::transport::{ShortRead, Transport};

/// A connected socket: [`TcpStream`](crate::TcpStream) or [`UnixStream`](crate::UnixStream).
///
/// All operations take `&self`, so that a stream can be read and written at the same time; [`split`] gives it
/// two owners. Dropping the stream closes the socket.
///
/// ```
/// use weald::net::UnixStream;
/// use weald::sync::{Wait, select};
///
/// let (one, other) = UnixStream::pair()?;
/// one.write_all(b"hello").wait()?;
/// let mut buffer = [0; 16];
/// let count = select! {
///     wait;
///     count = other.read(&mut buffer) => count?,
///     () = weald::sync::after(std::time::Duration::from_secs(5)) => 0,
/// };
/// assert_eq!(&buffer[..count], b"hello");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// [`split`]: Stream::split
pub struct Stream<T: Transport> {
    pub(crate) source: IoSource<T>,
}

/// The result of a write of `moved` bytes out of `wanted`.
fn written(moved: usize, wanted: usize) -> Done<usize> {
    match moved {
        0 => Done::Maybe(0),
        _ if moved < wanted => Done::Drained(moved),
        _ => Done::Maybe(moved),
    }
}

/// The result of a read of `moved` bytes into a buffer of `wanted`.
fn received<T: Transport>(moved: usize, wanted: usize) -> Done<usize> {
    match T::SHORT_READ {
        ShortRead::Drained => written(moved, wanted),
        ShortRead::MaybeMore => Done::Maybe(moved),
    }
}

fn read_some<T: Transport>(io: &T, buffers: &mut [IoSliceMut<'_>]) -> io::Result<Done<usize>> {
    let wanted = buffers.iter().map(|buffer| buffer.len()).sum();
    Ok(received::<T>(io.read_some(buffers)?, wanted))
}

fn write_some<T: Transport>(io: &T, buffers: &[IoSlice<'_>]) -> io::Result<Done<usize>> {
    let wanted = buffers.iter().map(|buffer| buffer.len()).sum();
    Ok(written(io.write_some(buffers)?, wanted))
}

impl<T: Transport> Stream<T> {
    /// Registers a socket of the standard library with the reactor of the current runtime.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the current runtime has shut down.
    pub fn from_std(socket: T) -> io::Result<Stream<T>> {
        socket.make_nonblocking()?;
        Stream::watch(socket)
    }

    /// Registers a connected, non-blocking socket with the reactor.
    pub(crate) fn watch(socket: T) -> io::Result<Stream<T>> {
        let source = IoSource::new_ready(socket)?;
        Ok(Stream { source })
    }

    /// Returns the socket of the standard library, no longer registered with the reactor. It stays in
    /// non-blocking mode.
    pub fn into_std(self) -> T {
        self.source.into_inner()
    }

    /// Reads the bytes that are available, at least one, into `buffer`. Zero means that the peer has stopped
    /// writing, or that `buffer` is empty: even then the read waits until there are bytes, or the end of the stream,
    /// as [`readable`](Stream::readable) does.
    ///
    /// Cancel-safe. In a choice bytes are read only if this event is chosen.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`ConnectionReset`](io::ErrorKind::ConnectionReset).
    pub fn read<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> Waiting<impl Branch<Output = io::Result<usize>> + use<'a, T>> {
        self.source.operate(Interest::Read, move |io| {
            read_some(io, &mut [IoSliceMut::new(buffer)])
        })
    }

    /// As [`read`](Stream::read), but into several buffers, each filled before the next. Cancel-safe, too.
    pub fn read_vectored<'a, 'b>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> Waiting<impl Branch<Output = io::Result<usize>> + use<'a, 'b, T>> {
        let act = move |io: &T| read_some(io, buffers);
        self.source.operate(Interest::Read, act)
    }

    /// Reads until `buffer` is full. Not cancel-safe: a dropped call does not report how much it read.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the peer stops writing first; errors from the
    /// operating system.
    pub async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read(buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => buffer = &mut buffer[count..],
            }
        }
        Ok(())
    }

    /// Writes as much of `bytes` as there is room for, at least one byte. Waits while a slow peer leaves no
    /// room, even if `bytes` is empty: the stream has no queue of its own.
    ///
    /// Cancel-safe. In a choice bytes are written only if this event is chosen.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe).
    pub fn write<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> Waiting<impl Branch<Output = io::Result<usize>> + use<'a, T>> {
        self.source.operate(Interest::Write, move |io| {
            write_some(io, &[IoSlice::new(bytes)])
        })
    }

    /// As [`write`](Stream::write), but from several buffers, one after another. Cancel-safe, too.
    pub fn write_vectored<'a, 'b>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> Waiting<impl Branch<Output = io::Result<usize>> + use<'a, 'b, T>> {
        let act = move |io: &T| write_some(io, buffers);
        self.source.operate(Interest::Write, act)
    }

    /// Writes all of `bytes`. Not cancel-safe: a dropped call does not report how much it wrote.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Waits until there are bytes to read, or the end of the stream. Cancel-safe.
    pub fn readable(&self) -> Waiting<impl Branch<Output = io::Result<()>> + use<'_, T>> {
        self.source.ready(Interest::Read)
    }

    /// Waits until there is room to write. Cancel-safe.
    pub fn writable(&self) -> Waiting<impl Branch<Output = io::Result<()>> + use<'_, T>> {
        self.source.ready(Interest::Write)
    }

    /// Reads the bytes that are available now, without waiting.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there are none; errors from the operating system.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_operate(Interest::Read, |io| {
            read_some(io, &mut [IoSliceMut::new(buffer)])
        })
    }

    /// Writes as many bytes as there is room for now, without waiting.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room; errors from the operating system.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.source
            .try_operate(Interest::Write, |io| write_some(io, &[IoSlice::new(bytes)]))
    }

    /// Reads the bytes that are available into `buffer`, which need not be initialized, and passes them to
    /// `take`. Returns their number; zero means the end. For adapters to other traits: only the waker of the
    /// last call of this method or of `poll_read` is woken.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn poll_read_with(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
        mut take: impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        self.source.poll_operate(Interest::Read, cx, |io| {
            let wanted = buffer.len();
            // Cheaper than `read(2)`, which also handles file positions.
            let ((bytes, _room), _) = rustix::net::recv(io, &mut *buffer, RecvFlags::empty())?;
            take(bytes);
            Ok(received::<T>(bytes.len(), wanted))
        })
    }

    /// Writes as many bytes as there is room for, from several buffers. For adapters to other traits: only the
    /// waker of the last call of this method or of `AsyncWrite`'s is woken.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let act = |io: &T| write_some(io, buffers);
        self.source.poll_operate(Interest::Write, cx, act)
    }

    /// Shuts down one direction or both. After `Write` the peer reads the end of the stream, and may still
    /// write.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`NotConnected`](io::ErrorKind::NotConnected) if the peer is
    /// gone.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.get_ref().shut_down(how)
    }

    /// How many bytes that were written the peer's system has not taken. A peer that reads makes the number smaller,
    /// long before there is room for more. For a Unix socket the number is the memory that they take.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn unread(&self) -> io::Result<usize> {
        crate::unread::unread(self)
    }

    /// Takes the pending error of the socket (`SO_ERROR`), which the system recorded outside any operation.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.get_ref().take_socket_error()
    }
}

impl<T: Transport> AsFd for Stream<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl<T: Transport + fmt::Debug> fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.get_ref().fmt(f)
    }
}

impl<T: Transport> AsyncRead for &Stream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_vectored(cx, &mut [IoSliceMut::new(buffer)])
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let act = |io: &T| read_some(io, buffers);
        self.source.poll_operate(Interest::Read, cx, act)
    }
}

impl<T: Transport> AsyncWrite for &Stream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(*self, cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(*self, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts down the writing direction. A peer that is already gone is no error.
    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<T: Transport> AsyncRead for Stream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read_vectored(cx, buffers)
    }
}

impl<T: Transport> AsyncWrite for Stream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(&self, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_close(cx)
    }
}
