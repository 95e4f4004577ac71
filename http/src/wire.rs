//! The socket of a connection, and the bytes that are written to it but not yet sent.
//!
//! While the connection's job polls hyper, small writes are *held*, and they leave together when the poll ends. So the
//! answers to requests that arrived together leave in one write, and so do the parts of one answer.
//!
//! - Bytes leave in the order in which they were written: what is held goes first.
//! - Nothing is held while the client leaves no room: hyper waits then, so a slow client never makes it produce more.
//! - A service may stand still, because it waits with its stack, blocks or computes. It delays no earlier answer: the
//!   kernel then has the held bytes sent ([`Outlet`]).
//! - Once nobody polls hyper any more, as after an upgrade, nothing more is held. The connection's job sends what is
//!   still held, and the code that took over the stream waits for that, because a socket remembers only one waiter for
//!   writing. If the job ends first ([`Wire::leave`]), that code sends the rest itself.
//!
//! Called by hyper through [`TrackedIo`](crate::tracked_io::TrackedIo), and by the connection.

use std::{
    io::{self, IoSlice},
    net::Shutdown,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionread,
};
use weald_net::{Stream, Transport};

use crate::{
    activity::{Activity, Outlet},
    limits::HalfClosed,
};

/// The most bytes that are held. Larger writes are sent at once, and need not be copied.
const MOST_HELD: usize = 16 << 10;
/// The most buffers of one write.
const MOST_BUFFERS: usize = 64;

/// Whether a client is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    No,
    /// It has ended its direction, which counts as a departure, or both directions. This many bytes were not read.
    Ended {
        unread: u64,
    },
    Reset,
}

/// A connection's socket.
pub(crate) struct Wire<T: Transport> {
    pub(crate) stream: Stream<T>,
    /// What is written is recorded here.
    pub(crate) activity: Arc<Activity>,
    /// Whether writes are held. Written by the connection's job. Relaxed, as everywhere in this file: the flags guard
    /// no other memory.
    holds: AtomicBool,
    /// Whether the client has ended its direction.
    has_ended: AtomicBool,
    /// Whether hyper has found nothing when it last read, and is woken by what arrives.
    is_listening: AtomicBool,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// Whether the last write found no room.
    is_blocked: bool,
    /// Whether hyper's last write was refused, so that it keeps what it had to write.
    is_refused: bool,
    /// Whether the connection's job has ended.
    is_left: bool,
    /// Whether hyper, or the code that took over the stream, has ended our direction while writes were held.
    must_shut: bool,
    /// The code that took over the stream, while it waits for the job to send what is held.
    waiter: Option<Waker>,
}

/// Whether the bytes are empty lines, or parts of some. Between two requests they are none of the next (RFC 9112, 2.2):
/// some clients send one after a body.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

impl<T: Transport> Wire<T> {
    pub(crate) fn new(stream: Stream<T>, activity: Arc<Activity>) -> Wire<T> {
        Wire {
            stream,
            activity,
            holds: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_listening: AtomicBool::new(false),
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether writes are held, because hyper is polled.
    pub(crate) fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    /// Hyper is about to be polled, or was.
    pub(crate) fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }

    /// What has arrived, according to the system: the report of it may still be on its way to the reactor.
    pub(crate) fn arrived<const MOST: usize>(&self) -> Option<Bytes> {
        let mut buffer = [0; MOST];
        let count = self.stream.try_read(&mut buffer).ok()?;
        (count > 0).then(|| Bytes::copy_from_slice(&buffer[..count]))
    }

    /// Whether something has arrived that was not read.
    pub(crate) fn has_arrived(&self) -> bool {
        ioctl_fionread(&self.stream).is_ok_and(|count| count > 0)
    }

    /// The client has ended its direction.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Hyper waits for more to read, or, with false, has got something.
    pub(crate) fn set_listening(&self, listens: bool) {
        self.is_listening.store(listens, Ordering::Relaxed);
    }

    /// Whether hyper waits for more, and so learns itself that the client is gone.
    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Relaxed)
    }

    /// What became of the client, according to the system, which also knows of an end behind bytes that nobody has
    /// read.
    pub(crate) fn departure(&self, half_closed: HalfClosed) -> Departure {
        let mut asked = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let _count = poll(&mut asked, Some(&Timespec::default()));
        let found = asked[0].revents();
        let has_ended = half_closed == HalfClosed::Dropped && found.contains(PollFlags::RDHUP);
        if found.contains(PollFlags::ERR) {
            Departure::Reset
        } else if has_ended || found.contains(PollFlags::HUP) {
            let unread = ioctl_fionread(&self.stream).unwrap_or(0);
            Departure::Ended { unread }
        } else {
            Departure::No
        }
    }

    /// Frees the buffer, unless something is held.
    pub(crate) fn shed(&self) {
        let mut held = self.lock();
        if held.bytes.is_empty() {
            held.bytes = Vec::new();
        }
    }

    /// Holds the bytes, whatever is held already.
    pub(crate) fn hold(&self, bytes: &[u8]) {
        self.lock().bytes.extend_from_slice(bytes);
    }

    /// Writes the parts after what is held, and holds what there is no room for. For the connection, when nobody else
    /// writes.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>], cx: &mut Context<'_>) -> io::Result<()> {
        let mut held = self.lock();
        let mut written = match self.poll_write_after(&mut held, parts, cx) {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        for part in parts {
            let sent = written.min(part.len());
            held.bytes.extend_from_slice(&part[sent..]);
            written -= sent;
        }
        match held.bytes.is_empty() {
            true => self.activity.flushed(),
            false => self.activity.held(),
        }
        Ok(())
    }

    /// Replaces the last `from` in what is held.
    pub(crate) fn replace_held(&self, from: &[u8], to: &[u8]) {
        let mut held = self.lock();
        let at = held
            .bytes
            .windows(from.len())
            .rposition(|part| part == from);
        if let Some(at) = at {
            held.bytes.splice(at..at + from.len(), to.iter().copied());
        }
    }

    /// Hyper is given up, and what it keeps is lost.
    pub(crate) fn forget_refused(&self) {
        self.lock().is_refused = false;
    }

    /// Sends what is held. Called by the connection's job.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut held = self.lock();
        let sent = ready!(self.poll_send_held(&mut held, cx));
        // What hyper keeps is not sent, although there may be room by now.
        if sent.is_ok() && !held.is_blocked && !held.is_refused {
            self.activity.flushed();
        }
        let waiter = held.waiter.take();
        drop(held);
        wake(waiter);
        Poll::Ready(sent)
    }

    fn poll_send_held(&self, held: &mut Held, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !held.bytes.is_empty() {
            ready!(self.poll_write_after(held, &[], cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when nothing is held, for a stream that was taken over.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.holds() {
            // The connection sends it when it has polled hyper.
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_left(cx));
        self.poll_send_held(&mut self.lock(), cx)
    }

    /// Ready when the connection's job has nothing to send.
    fn poll_left(&self, cx: &Context<'_>) -> Poll<()> {
        let is_over = |held: &Held| held.bytes.is_empty() || held.is_left;
        if is_over(&self.lock()) {
            return Poll::Ready(());
        }
        // Not under the lock: the waker may be anybody's.
        let waker = cx.waker().clone();
        let mut held = self.lock();
        if is_over(&held) {
            return Poll::Ready(());
        }
        let former = held.waiter.replace(waker);
        drop(held);
        drop(former);
        Poll::Pending
    }

    /// Ends our direction, after what is held.
    pub(crate) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut held = self.lock();
        // Read under the lock, which the job takes after it has polled hyper: either the job finds the note, or nothing
        // is held any more.
        if self.holds() {
            held.must_shut = true;
            return Poll::Ready(Ok(()));
        }
        drop(held);
        ready!(self.poll_flush(cx))?;
        match self.shut() {
            // A peer that is already gone is no error.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ends our direction.
    pub(crate) fn shut(&self) -> io::Result<()> {
        self.lock().must_shut = false;
        self.stream.shutdown(Shutdown::Write)
    }

    /// The connection's job ends. The code that took over the stream, if there is any, keeps this wire for long. So the
    /// buffer is freed, and so is the request, with the buffer from which it was parsed.
    pub(crate) fn leave(&self) {
        // If user code has panicked within hyper, this is the answer to an earlier request.
        self.send_now();
        let mut held = self.lock();
        held.is_left = true;
        let waiter = held.waiter.take();
        let must_shut = held.must_shut;
        drop(held);
        if must_shut {
            // One that fails is gone.
            let _ignored = self.shut();
        }
        self.shed();
        self.activity.forget_request();
        wake(waiter);
    }

    /// Holds the buffers, or writes as much of them as there is room for.
    pub(crate) fn poll_write(
        &self,
        buffers: &[IoSlice<'_>],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut held = self.lock();
        if self.holds() {
            let length: usize = buffers.iter().map(|buffer| buffer.len()).sum();
            if !held.is_blocked && held.bytes.len() + length <= MOST_HELD {
                buffers
                    .iter()
                    .for_each(|buffer| held.bytes.extend_from_slice(buffer));
                held.is_refused = false;
                self.activity.held();
                return Poll::Ready(Ok(length));
            }
        } else {
            if !held.bytes.is_empty() && !held.is_left {
                drop(held);
                ready!(self.poll_left(cx));
                held = self.lock();
            }
            if held.bytes.is_empty() {
                // Not under the lock: the waker may be anybody's.
                drop(held);
                return self.stream.poll_write_vectored(cx, buffers);
            }
        }
        loop {
            let written = self.poll_write_after(&mut held, buffers, cx);
            held.is_refused = written.is_pending() && self.holds();
            let count = ready!(written)?;
            if count > 0 || held.bytes.is_empty() {
                return Poll::Ready(Ok(count));
            }
        }
    }

    /// Writes what is held, and then the buffers. Returns how much of the buffers was written.
    fn poll_write_after(
        &self,
        held: &mut Held,
        buffers: &[IoSlice<'_>],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let written = match (held.bytes.is_empty(), buffers.is_empty()) {
            (true, _) => self.stream.poll_write_vectored(cx, buffers),
            (false, true) => {
                let held = [IoSlice::new(&held.bytes)];
                self.stream.poll_write_vectored(cx, &held)
            }
            (false, false) => {
                let mut all = [IoSlice::new(&[]); MOST_BUFFERS];
                all[0] = IoSlice::new(&held.bytes);
                let others = buffers.len().min(MOST_BUFFERS - 1);
                all[1..=others].copy_from_slice(&buffers[..others]);
                self.stream.poll_write_vectored(cx, &all[..=others])
            }
        };
        held.is_blocked = written.is_pending();
        match written {
            Poll::Ready(Ok(count)) => {
                self.activity.wrote(count);
                let first = count.min(held.bytes.len());
                match first == held.bytes.len() {
                    true => held.bytes.clear(),
                    false => drop(held.bytes.drain(..first)),
                }
                if count == 0 && !held.bytes.is_empty() {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(count - first))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.activity
                    .write_blocked(self.stream.unread().unwrap_or(0));
                Poll::Pending
            }
        }
    }
}

fn wake(waiter: Option<Waker>) {
    if let Some(waiter) = waiter {
        waiter.wake();
    }
}

impl<T: Transport> Outlet for Wire<T> {
    fn send_now(&self) {
        let mut held = self.lock();
        if held.is_blocked || held.bytes.is_empty() {
            return;
        }
        // Bytes that do not leave now leave when the poll ends, and errors show then, too.
        if let Ok(count) = self.stream.try_write(&held.bytes) {
            held.bytes.drain(..count);
        }
    }
}

impl<T: Transport> std::fmt::Debug for Wire<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
