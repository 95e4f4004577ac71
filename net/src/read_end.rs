//! The reading end of a pipe, a FIFO, a terminal or standard input.
//!
//! Invariants:
//! - A file with readiness is read through the reactor; any other, such as a regular file on standard input, on a
//!   thread that may block.
//! - No bytes and no error are lost by a wait that is dropped or not chosen: what was read stays here until it is
//!   taken.

use std::{
    fmt, fs,
    io::{self, Read},
    os::fd::OwnedFd,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_io::{AsyncBufRead, AsyncRead};
use weald_kernel::{Done, Interest, OperationName, offload_operation};
use weald_sync::{Branch, Event, Source, Waiting, of_source};

use crate::{
    descriptor::{Blocking, Descriptor, NEEDS_THREAD, Sharing},
    lines::Lines,
    opened::{OnThread, Opened},
};

/// How many bytes are read at once.
const READ: usize = 8 << 10;

/// The end from which a pipe, a FIFO, a terminal or standard input is read; see [`stdin`](crate::stdin()) and
/// [`pipe`](crate::pipe()).
pub struct ReadEnd {
    opened: Opened,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read and not yet taken.
    unread: std::ops::Range<usize>,
    /// The error of a read, until it is taken.
    failure: Option<io::Error>,
    on_thread: Option<OnThread<Vec<u8>>>,
}

impl ReadEnd {
    pub(crate) fn of(opened: Opened) -> ReadEnd {
        ReadEnd {
            opened,
            buffer: Vec::new(),
            unread: 0..0,
            failure: None,
            on_thread: None,
        }
    }

    /// Opens a FIFO, a terminal or another file for reading. For a FIFO this waits until somebody opens it for writing;
    /// it holds a thread meanwhile. If the future is dropped, the thread continues to wait, and then closes the file.
    ///
    /// # Errors
    /// Errors from the operating system; [`NoFreeThread`](weald_kernel::NoFreeThread) if all threads are held. Fails if
    /// the runtime shuts down.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> impl Future<Output = io::Result<ReadEnd>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        let opened = Opened::open(path.as_ref(), options);
        async move { Ok(ReadEnd::of(opened.await?)) }
    }

    /// Reads from `descriptor`, which may be inherited or shared: it stays in its mode.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the current runtime has shut down.
    #[track_caller]
    pub fn from_fd(descriptor: OwnedFd) -> io::Result<ReadEnd> {
        let name = format!("descriptor {descriptor:?}");
        let opened = Opened::new(descriptor.into(), Sharing::Shared, name.as_ref())?;
        Ok(ReadEnd::of(opened))
    }

    /// The descriptor, in blocking mode again if this program had opened it, unless it was a clone of a file that is
    /// still in use; for a child process. Bytes that were read and not taken are lost.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.opened.into_fd()
    }

    /// Reads the bytes that are available, at least one, into `buffer`. Zero means the end: nobody can write any
    /// longer; or that `buffer` is empty, and then the read does not wait.
    ///
    /// Cancel-safe. In a choice bytes are taken only if this event is chosen, and an error is met again by the next
    /// read.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub fn read<'a>(
        &'a mut self,
        buffer: &'a mut [u8],
    ) -> Waiting<impl Branch<Output = io::Result<usize>> + use<'a>> {
        let reading = Reading {
            end: self,
            buffer,
            is_filled: false,
        };
        Waiting::new(of_source(reading).open())
    }

    /// Reads to the end. Not cancel-safe: a dropped call loses what it has read.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            std::future::poll_fn(|cx| self.poll_fill(cx)).await?;
            match self.unread() {
                [] => return Ok(all),
                bytes => {
                    all.try_reserve(bytes.len())?;
                    all.extend_from_slice(bytes);
                }
            }
            self.unread = 0..0;
        }
    }

    /// The lines of the stream.
    pub fn lines(self) -> Lines<ReadEnd> {
        Lines::new(self)
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.unread.clone()]
    }

    /// Moves unread bytes to `buffer`.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.unread.len());
        buffer[..count].copy_from_slice(&self.unread()[..count]);
        self.unread.start += count;
        count
    }

    /// Ready when there are unread bytes, or none because the stream has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if self.on_thread.is_none()
            && let Some(source) = &self.opened.source
        {
            let buffer = &mut self.buffer;
            buffer.resize(READ, 0);
            let act = |descriptor: &Descriptor| descriptor.read_now(buffer).map(Done::Maybe);
            match ready!(source.poll_operate(Interest::Read, cx, act)) {
                Ok(count) => {
                    self.unread = 0..count;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == NEEDS_THREAD => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let reading = self
            .on_thread
            .get_or_insert_with(|| read_on_thread(&self.opened));
        let read = ready!(reading.as_mut().poll(cx));
        self.on_thread = None;
        self.buffer = read?;
        self.unread = 0..self.buffer.len();
        Poll::Ready(Ok(()))
    }
}

fn read_on_thread(opened: &Opened) -> OnThread<Vec<u8>> {
    let file = opened.file.clone();
    let name = OperationName::file("reading", opened.path.clone()).asked_at(opened.site);
    Box::pin(offload_operation(name, move || {
        let mut buffer = vec![0; READ];
        let count = Blocking(&file).read(&mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }))
}

/// A read as an event.
struct Reading<'a> {
    end: &'a mut ReadEnd,
    buffer: &'a mut [u8],
    /// Whether there are unread bytes, the end or a failure.
    is_filled: bool,
}

impl Source for Reading<'_> {
    type Output = io::Result<usize>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if !this.is_filled && !this.buffer.is_empty() {
            this.end.failure = ready!(this.end.poll_fill(cx)).err();
            this.is_filled = true;
        }
        Poll::Ready(())
    }

    fn take(self: Pin<&mut Self>) -> io::Result<usize> {
        let this = self.get_mut();
        match this.end.failure.take_if(|_| this.is_filled) {
            Some(failure) => Err(failure),
            None => Ok(this.end.take(this.buffer)),
        }
    }
}

impl AsyncRead for ReadEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_fill(cx))?;
        Poll::Ready(Ok(self.take(buffer)))
    }
}

impl AsyncBufRead for ReadEnd {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        ready!(this.poll_fill(cx))?;
        Poll::Ready(Ok(this.unread()))
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        let start = self.unread.start + amount;
        self.unread.start = start.min(self.unread.end);
    }
}

impl fmt::Debug for ReadEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadEnd").field(&self.opened.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::{ErrorKind, Write},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// The read of a choice that had something, and was not chosen.
    #[test]
    fn an_error_of_a_read_that_is_not_chosen_is_met_by_the_next_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.write_all(b"unread").unwrap();
        // So its end is a reset, which the system tells once.
        drop(server);
        let runtime = weald_kernel::Runtime::builder().workers(1).build();
        runtime.unwrap().block_on(async {
            let mut end = ReadEnd::from_fd(client.into()).unwrap();
            for taken in [false, true] {
                let mut buffer = [0; 8];
                let mut reading = Reading {
                    end: &mut end,
                    buffer: &mut buffer,
                    is_filled: false,
                };
                poll_fn(|cx| Pin::new(&mut reading).poll_ready(cx)).await;
                if taken {
                    let error = Pin::new(&mut reading).take().unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                }
            }
            let mut buffer = [0; 8];
            assert_eq!(end.read(&mut buffer).await.unwrap(), 0, "it is told once");
        });
    }
}
