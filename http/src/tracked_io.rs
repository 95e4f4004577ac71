//! The stream that hyper reads and writes: it records in the connection's [`Activity`](crate::activity::Activity) what
//! hyper does.

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
    registry::ConnectionPermit,
    rt::read_into,
    wire::{self, Wire},
};

/// A stream that first returns the bytes that were read before hyper got it.
pub(crate) struct TrackedIo<T: Transport> {
    pub(crate) wire: Arc<Wire<T>>,
    /// Bytes that were read earlier and that hyper has not read yet.
    pub(crate) first: Bytes,
    /// Held as long as the stream lives, even by the code that takes over an upgraded stream.
    pub(crate) permit: ConnectionPermit,
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
            this.wire.set_listening(false);
            return Poll::Ready(Ok(()));
        }
        let has_room = buffer.remaining() > 0;
        let mut is_blank = false;
        let seen = |bytes: &[u8]| is_blank = wire::is_blank(bytes);
        let read = read_into(&this.wire.stream, cx, buffer, seen);
        this.wire.set_listening(read.is_pending());
        match read {
            Poll::Ready(Ok(1..)) if !is_blank => this.wire.activity.received(),
            Poll::Ready(Ok(0)) if has_room => this.wire.end(),
            _ => {}
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
        self.wire.poll_write(buffers, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_shutdown(cx)
    }
}
