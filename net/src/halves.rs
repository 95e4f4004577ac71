//! The two directions of a stream, for two owners.

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

/// The reading direction of a stream; see [`Stream::split`]. Dropping it ends nothing.
pub struct ReadHalf<T: Transport>(Arc<Stream<T>>);

/// The writing direction of a stream; see [`Stream::split`]. Dropping it ends the direction, so that the
/// peer reads the end.
pub struct WriteHalf<T: Transport> {
    /// None only after the halves were joined.
    stream: Option<Arc<Stream<T>>>,
}

impl<T: Transport> Stream<T> {
    /// Both directions apart, for two owners.
    pub fn split(self) -> (ReadHalf<T>, WriteHalf<T>) {
        let stream = Arc::new(self);
        let write = WriteHalf {
            stream: Some(stream.clone()),
        };
        (ReadHalf(stream), write)
    }
}

impl<T: Transport> ReadHalf<T> {
    /// The stream again, of which `other` is the other half.
    ///
    /// # Errors
    /// Both halves, if they are not of one stream.
    pub fn reunite(
        self,
        mut other: WriteHalf<T>,
    ) -> Result<Stream<T>, (ReadHalf<T>, WriteHalf<T>)> {
        if !Arc::ptr_eq(&self.0, other.shared()) {
            return Err((self, other));
        }
        drop(other.stream.take());
        Ok(Arc::into_inner(self.0).expect("a stream has two halves, and one is gone"))
    }
}

impl<T: Transport> WriteHalf<T> {
    fn shared(&self) -> &Arc<Stream<T>> {
        self.stream
            .as_ref()
            .expect("it is there until the halves are joined")
    }
}

impl<T: Transport> Drop for WriteHalf<T> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            // A peer that is gone needs no word of it.
            let _gone = stream.shutdown(Shutdown::Write);
        }
    }
}

/// The operations of a stream; those of the other direction, too.
impl<T: Transport> Deref for ReadHalf<T> {
    type Target = Stream<T>;

    fn deref(&self) -> &Stream<T> {
        &self.0
    }
}

/// The operations of a stream; those of the other direction, too.
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
