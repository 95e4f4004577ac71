//! The writing end of a pipe, a FIFO, a terminal or standard output.
//!
//! Invariant: at most one thread at a time writes for it, that thread has a copy of the bytes, and the next call waits
//! for its end. So bytes are written in order, even after a wait that was dropped.

use std::{
    fmt, fs,
    future::poll_fn,
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_io::AsyncWrite;
use weald_kernel::{Done, Interest, OperationName, offload_operation};

use crate::{
    descriptor::{Blocking, Descriptor, NEEDS_THREAD, Sharing},
    opened::{OnThread, Opened},
};

/// How many bytes a thread writes at once, at most.
const WRITTEN: usize = 64 << 10;

/// The end to which a pipe, a FIFO, a terminal or standard output is written; see [`stdout`](crate::stdout()) and
/// [`pipe`](crate::pipe()). Dropping it closes the end.
pub struct WriteEnd {
    /// None after `close`.
    opened: Option<Opened>,
    on_thread: Option<OnThread<()>>,
}

impl WriteEnd {
    pub(crate) fn of(opened: Opened) -> WriteEnd {
        WriteEnd {
            opened: Some(opened),
            on_thread: None,
        }
    }

    /// Opens a FIFO, a terminal or another file, which must exist, for appending. For a FIFO this waits until somebody
    /// opens it for reading; it holds a thread meanwhile. If the future is dropped, the thread continues to wait, and
    /// then closes the file.
    ///
    /// # Errors
    /// As [`ReadEnd::open`](crate::ReadEnd::open).
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> impl Future<Output = io::Result<WriteEnd>> {
        let mut options = fs::OpenOptions::new();
        options.append(true);
        let opened = Opened::open(path.as_ref(), options);
        async move { Ok(WriteEnd::of(opened.await?)) }
    }

    /// Writes to `descriptor`, which may be inherited or shared: it stays in its mode.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the current runtime has shut down.
    #[track_caller]
    pub fn from_fd(descriptor: OwnedFd) -> io::Result<WriteEnd> {
        let name = format!("descriptor {descriptor:?}");
        let opened = Opened::new(descriptor.into(), Sharing::Shared, name.as_ref())?;
        Ok(WriteEnd::of(opened))
    }

    /// The descriptor, in blocking mode again if this program had opened it; for a child process.
    ///
    /// # Errors
    /// Errors from the operating system; [`NotConnected`](io::ErrorKind::NotConnected) after a close.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.opened.ok_or(io::ErrorKind::NotConnected)?.into_fd()
    }

    /// Writes as much of `bytes` as there is room for, at least one byte. Not cancel-safe: if the future is dropped,
    /// bytes may have been written, or may still be written, before those of the next call.
    ///
    /// # Errors
    /// Errors from the operating system, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe) if nobody reads any longer.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = poll_fn(|cx| self.poll_some(cx, bytes)).await?;
        poll_fn(|cx| self.poll_done(cx)).await?;
        Ok(count)
    }

    /// Writes all of `bytes`. Not cancel-safe: a dropped call does not report how much it wrote.
    ///
    /// # Errors
    /// As [`write`](WriteEnd::write).
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Writes, or gives the bytes to a thread, which writes all of them.
    fn poll_some(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_done(cx))?;
        let Some(opened) = &self.opened else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Some(source) = &opened.source {
            let act = |descriptor: &Descriptor| descriptor.write_now(bytes).map(Done::Maybe);
            match ready!(source.poll_operate(Interest::Write, cx, act)) {
                Err(error) if error.kind() == NEEDS_THREAD => {}
                written => return Poll::Ready(written),
            }
        }
        let bytes = &bytes[..bytes.len().min(WRITTEN)];
        self.on_thread = Some(write_on_thread(opened, bytes.into()));
        Poll::Ready(Ok(bytes.len()))
    }

    /// Waits until no thread writes.
    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writing) = &mut self.on_thread else {
            return Poll::Ready(Ok(()));
        };
        let written = ready!(writing.as_mut().poll(cx));
        self.on_thread = None;
        Poll::Ready(written)
    }
}

fn write_on_thread(opened: &Opened, bytes: Vec<u8>) -> OnThread<()> {
    let file = opened.file.clone();
    let name = OperationName::file("writing", opened.path.clone()).asked_at(opened.site);
    Box::pin(offload_operation(name, move || {
        Blocking(&file).write_all(&bytes)
    }))
}

/// Flush what a thread may still write.
impl AsyncWrite for WriteEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_some(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_done(cx)
    }

    /// Closes the end, so that the reader sees the end of the stream. Standard output itself stays open.
    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_done(cx))?;
        self.opened = None;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for WriteEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.opened.as_ref().map(|opened| &opened.path);
        f.debug_tuple("WriteEnd").field(&path).finish()
    }
}
