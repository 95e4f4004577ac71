//! Splits a stream into its two directions, for two owners.

use std::{
    fmt, io,
    io::{IoSlice, IoSliceMut},
    net::Shutdown,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_io::{AsyncRead, AsyncWrite};

use crate::{stream::Stream, transport::Transport};

/// The reading half of a stream; see [`Stream::split`]. Dropping it shuts nothing down.
pub struct ReadHalf<T: Transport>(Arc<Stream<T>>);

/// The writing half of a stream; see [`Stream::split`]. Dropping it shuts the direction down, so that the
/// peer reads the end of the stream.
pub struct WriteHalf<T: Transport> {
    /// None only after the halves were reunited.
    stream: Option<Arc<Stream<T>>>,
}

impl<T: Transport> Stream<T> {
    /// Splits the stream into its two directions, for two owners.
    pub fn split(self) -> (ReadHalf<T>, WriteHalf<T>) {
        let stream = Arc::new(self);
        let write = WriteHalf {
            stream: Some(stream.clone()),
        };
        (ReadHalf(stream), write)
    }
}

impl<T: Transport> ReadHalf<T> {
    /// Joins the two halves of a stream again.
    ///
    /// # Errors
    /// Returns both halves if they belong to different streams.
    pub fn reunite(
        self,
        mut other: WriteHalf<T>,
    ) -> Result<Stream<T>, (ReadHalf<T>, WriteHalf<T>)> {
        if !Arc::ptr_eq(&self.0, other.shared()) {
            return Err((self, other));
        }
        drop(other.stream.take());
        Ok(Arc::into_inner(self.0)
            .expect("a stream has two halves, and the other one was dropped above"))
    }
}

impl<T: Transport> WriteHalf<T> {
    fn shared(&self) -> &Arc<Stream<T>> {
        self.stream
            .as_ref()
            .expect("a write half has its stream until the halves are reunited")
    }
}

impl<T: Transport> Drop for WriteHalf<T> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            // Fails if the peer is gone, and then nothing is left to shut down.
            let _ignored = stream.shutdown(Shutdown::Write);
        }
    }
}

/// All operations of the stream, those of the other direction included.
impl<T: Transport> Deref for ReadHalf<T> {
    type Target = Stream<T>;

    fn deref(&self) -> &Stream<T> {
        &self.0
    }
}

/// All operations of the stream, those of the other direction included.
impl<T: Transport> Deref for WriteHalf<T> {
    type Target = Stream<T>;

    fn deref(&self) -> &Stream<T> {
        self.shared()
    }
}

impl<T: Transport> AsyncRead for ReadHalf<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_read_vectored(cx, buffers)
    }
}

impl<T: Transport> AsyncWrite for WriteHalf<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &**self).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(&self, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &**self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &**self).poll_close(cx)
    }
}

impl<T: Transport + fmt::Debug> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(&self.0).finish()
    }
}

impl<T: Transport + fmt::Debug> fmt::Debug for WriteHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHalf").field(self.shared()).finish()
    }
}
