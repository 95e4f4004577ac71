//! Hyper's streams for code that is written for `futures-io`, as most libraries for WebSockets are.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBuf, Write};

/// Adapts a stream of hyper, such as an upgraded connection, to `AsyncRead` and `AsyncWrite`.
///
/// ```
/// use hyper::upgrade::Upgraded;
/// use weald::http::rt::Futures;
///
/// fn adapt(upgraded: Upgraded) -> impl futures_io::AsyncRead + futures_io::AsyncWrite {
///     Futures(upgraded)
/// }
/// ```
#[derive(Debug)]
pub struct Futures<T>(pub T);

impl<T: Read + Unpin> AsyncRead for Futures<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, buffer.unfilled()))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<T: Write + Unpin> AsyncWrite for Futures<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
