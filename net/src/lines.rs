//! The lines of a stream, with a maximum length.
//!
//! Invariants: what was read stays here until a whole line is returned, so a call that is dropped or not chosen loses
//! nothing; the buffer holds at most the maximum length and one read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_io::AsyncRead;
use weald_sync::{Branch, Event, Source, Waiting, of_source};

use crate::{halves::ReadHalf, stream::Stream, transport::Transport};

/// How many bytes are read at once.
const READ: usize = 8 << 10;
/// The maximum length if none is set.
const MOST: usize = 64 << 10;

/// A line is longer than the maximum. Returned inside an [`io::Error`] of the kind
/// [`InvalidData`](io::ErrorKind::InvalidData).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a line is longer than {most} bytes; raise the maximum with Lines::most, or refuse the sender"
)]
#[non_exhaustive]
pub struct LineTooLong {
    /// The maximum, in bytes without the end of the line.
    pub most: usize,
}

/// The lines of a stream: of anything that implements `AsyncRead`. A line ends with `\n` or `\r\n`, which is not part
/// of it; the last one may end with the stream.
///
/// ```
/// use weald::net::{Lines, UnixStream};
///
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let (one, other) = UnixStream::pair()?;
/// one.write_all(b"short\r\nmuch too long\nend").await?;
/// drop(one);
/// let mut lines = other.lines().most(8);
/// assert_eq!(lines.next().await?.as_deref(), Some("short"));
/// assert!(lines.next().await.is_err());
/// assert_eq!(lines.next().await?.as_deref(), Some("end"));
/// assert_eq!(lines.next().await?, None);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    /// The bytes that were read. Those before `start` were returned.
    buffer: Vec<u8>,
    start: usize,
    /// How many of the first bytes of the rest contain no end of a line.
    searched: usize,
    most: usize,
    /// Whether the rest of a line that was too long is dropped.
    skips: bool,
    has_ended: bool,
    /// The error of the last read, until it is taken.
    failure: Option<io::Error>,
}

impl<R> Lines<R> {
    /// The lines of `reader`, of 64 KiB at most.
    pub fn new(reader: R) -> Lines<R> {
        Lines {
            reader,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            most: MOST,
            skips: false,
            has_ended: false,
            failure: None,
        }
    }

    /// Sets how many bytes a line may have, without its end.
    #[must_use]
    pub fn most(mut self, bytes: usize) -> Lines<R> {
        self.most = bytes;
        self
    }

    /// The stream, and the bytes that were read from it and not returned.
    pub fn into_parts(mut self) -> (R, Vec<u8>) {
        self.compact();
        (self.reader, self.buffer)
    }

    /// The bytes that were read and not returned.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Removes the first line, which has `length` bytes without its end, from the rest. It owns no more memory than it
    /// needs: a program may keep many.
    fn split(&mut self, length: usize) -> Vec<u8> {
        let rest = self.rest();
        let line = &rest[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.start += (length + 1).min(rest.len());
        self.searched = 0;
        line
    }

    /// Moves the rest to the start of the buffer.
    fn compact(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line; none after the last one.
    ///
    /// Cancel-safe. In a choice a line is taken only if this event is chosen.
    ///
    /// # Errors
    /// [`LineTooLong`], after which the next call returns the line that follows;
    /// [`InvalidData`](io::ErrorKind::InvalidData) if the line is not UTF-8; those of the stream.
    #[expect(
        clippy::should_implement_trait,
        reason = "as that of asynchronous streams"
    )]
    pub fn next(
        &mut self,
    ) -> Waiting<impl Branch<Output = io::Result<Option<String>>> + use<'_, R>> {
        let lines = self;
        let decode = |line: Vec<u8>| {
            String::from_utf8(line)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        Waiting::new(of_source(NextLine { lines, decode }).open())
    }

    /// As [`next`](Lines::next), but the line need not be UTF-8. Cancel-safe, too.
    ///
    /// # Errors
    /// [`LineTooLong`], and those of the stream.
    pub fn next_bytes(
        &mut self,
    ) -> Waiting<impl Branch<Output = io::Result<Option<Vec<u8>>>> + use<'_, R>> {
        let (lines, decode) = (self, Ok);
        Waiting::new(of_source(NextLine { lines, decode }).open())
    }

    /// Reads until [`has_next`](Lines::has_next), or until the stream fails.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.failure.is_none() && !self.has_next() {
            match ready!(self.poll_more(cx)) {
                Ok(count) => self.has_ended = count == 0,
                Err(error) => self.failure = Some(error),
            }
        }
        Poll::Ready(())
    }

    /// Whether a line has been read, or so much of it that it is too long, or the end. Drops the rest of a line that
    /// was too long.
    fn has_next(&mut self) -> bool {
        loop {
            let unsearched = &self.rest()[self.searched..];
            if let Some(at) = unsearched.iter().position(|byte| *byte == b'\n') {
                self.searched += at;
                if !std::mem::take(&mut self.skips) {
                    return true;
                }
                self.split(self.searched);
                continue;
            }
            self.searched = self.rest().len();
            if self.skips {
                self.split(self.searched);
            }
            return self.has_ended || self.searched > self.most.saturating_add(1);
        }
    }

    /// Takes what [`poll_next`](Lines::poll_next) has found.
    fn take_next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let found = self.searched;
        let is_whole = found < self.rest().len();
        if !is_whole && self.has_ended && found == 0 {
            return Ok(None);
        }
        self.skips = !is_whole && !self.has_ended;
        let line = self.split(found);
        self.judge(line).map(Some)
    }

    fn judge(&self, line: Vec<u8>) -> io::Result<Vec<u8>> {
        let most = self.most;
        match line.len() > most {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                LineTooLong { most },
            )),
            false => Ok(line),
        }
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.compact();
        let length = self.buffer.len();
        self.buffer.resize(length + READ, 0);
        let read = Pin::new(&mut self.reader).poll_read(cx, &mut self.buffer[length..]);
        let count = match &read {
            Poll::Ready(Ok(count)) => *count,
            _ => 0,
        };
        self.buffer.truncate(length + count);
        read
    }
}

/// The source of a line, which stays in the buffer until it is taken.
struct NextLine<'a, R, F> {
    lines: &'a mut Lines<R>,
    decode: F,
}

impl<R, T, F> Source for NextLine<'_, R, F>
where
    R: AsyncRead + Unpin,
    F: Fn(Vec<u8>) -> io::Result<T> + Unpin,
{
    type Output = io::Result<Option<T>>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().lines.poll_next(cx)
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        let this = self.get_mut();
        this.lines.take_next()?.map(&this.decode).transpose()
    }
}

impl<T: Transport> Stream<T> {
    /// The lines that arrive. The stream can be written meanwhile.
    pub fn lines(&self) -> Lines<&Stream<T>> {
        Lines::new(self)
    }
}

impl<T: Transport> ReadHalf<T> {
    /// The lines that arrive.
    pub fn lines(self) -> Lines<ReadHalf<T>> {
        Lines::new(self)
    }
}
