//! The stream that hyper reads and writes: it records in the connection's [`Activity`] what hyper does.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use weald_net::Transport;

use crate::{
    activity::Activity,
    registry::Place,
    rt::{Io, read_into},
};

/// A stream that first returns the bytes that were read before hyper got it.
pub(crate) struct TrackedIo<T: Transport> {
    pub(crate) io: Io<T>,
    /// Bytes that were read earlier and that hyper has not read yet.
    pub(crate) first: Bytes,
    pub(crate) activity: Arc<Activity>,
    /// Held as long as the stream, also by the code that takes over an upgraded one.
    pub(crate) place: Place,
}

impl<T: Transport> Read for TrackedIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let count = this.first.len().min(buffer.remaining());
            buffer.put_slice(&this.first[..count]);
            this.first.advance(count);
            if this.first.is_empty() {
                this.first = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        let read = read_into(&this.io.0, cx, buffer);
        if let Poll::Ready(Ok(1..)) = read {
            this.activity.received();
        }
        read.map_ok(|_count| ())
    }
}

impl<T: Transport> Write for TrackedIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = this.io.0.poll_write_vectored(cx, buffers);
        match &wrote {
            Poll::Ready(Ok(count)) => this.activity.wrote(*count),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => this.activity.write_blocked(this.io.0.unread().unwrap_or(0)),
        }
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.activity.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
