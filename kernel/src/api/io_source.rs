//! A descriptor that the reactor watches, and the operations on it that wait.
//!
//! An operation is attempted first and waits only when the system refuses, so it costs the system call
//! and little else.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    task::{Context, Poll},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weald_sync::{
    Event, Waiting, of_source,
    reason::{Kind, Reason},
};

use crate::{
    api::io_operation::{IoWait, Operation, Ready},
    reactor::{
        First, Reactor, RuntimeGone,
        slot::{Interest, Readiness, Seen, SourceSlot, Waiter},
    },
    scheduler::workers::{
        context::{self, note_wait},
        current,
    },
};

/// A descriptor of the system that is watched: a socket, a pipe, whatever `epoll` takes. It belongs to the
/// runtime in which it was made, whose workers see its readiness, and may be waited for from anywhere: in
/// jobs of any runtime, and by other threads. The descriptor must not block (`O_NONBLOCK`), and is closed
/// with the source unless it is taken out.
///
/// Any number of futures may wait for one direction; of the `poll_…` functions the last caller is woken,
/// for each direction. Memory: about 150 bytes.
///
/// ```
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
/// use weald_kernel::{Done, Interest, IoSource};
///
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// let (mut ours, theirs) = UnixStream::pair()?;
/// theirs.set_nonblocking(true)?;
/// let received = runtime.block_on(async {
///     let theirs = IoSource::new(theirs)?;
///     let mut buffer = [0; 8];
///     ours.write_all(b"hello")?;
///     let read = theirs.operate(Interest::Read, |mut io: &UnixStream| io.read(&mut buffer).map(Done::Maybe));
///     read.await
/// })?;
/// assert_eq!(received, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct IoSource<T: AsFd> {
    /// None only after `into_inner` took it.
    io: Option<T>,
    reactor: Arc<Reactor>,
    slot: u32,
}

/// What an operation that the system did not refuse says of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<R> {
    /// It may succeed too.
    Maybe(R),
    /// It would be refused: this one took all there was, or filled all the room. Only a stream of bytes may
    /// say so, when it moved fewer than it could: what comes later is reported then. (At the end, and at an
    /// urgent mark of TCP, such a transfer is not the last; the reactor knows.) Not what reads records, and
    /// not a Unix socket, whose reads also end where descriptors were sent along.
    Drained(R),
}

impl<R> Done<R> {
    /// The result.
    pub fn into_inner(self) -> R {
        match self {
            Done::Maybe(result) | Done::Drained(result) => result,
        }
    }
}

impl<T: AsFd> IoSource<T> {
    /// Watches `io`, whose readiness is not known: an operation is attempted once the system reports it,
    /// which it does at once for what is ready.
    ///
    /// # Errors
    /// Those of the system, when a table of descriptors is full say; and if the current runtime has shut
    /// down.
    pub fn new(io: T) -> io::Result<IoSource<T>> {
        IoSource::register(io, Readiness::NONE)
    }

    /// Watches `io`; the first operation of each direction is attempted without asking.
    ///
    /// # Errors
    /// As [`new`](IoSource::new).
    pub fn new_ready(io: T) -> io::Result<IoSource<T>> {
        IoSource::register(io, Readiness::BOTH)
    }

    fn register(io: T, known: Readiness) -> io::Result<IoSource<T>> {
        current::with_current(|shared| {
            let reactor = shared.reactor.clone();
            let (slot, first) = reactor.add(io.as_fd(), known)?;
            if first == First::Yes {
                shared.wake_one();
            }
            Ok(IoSource {
                io: Some(io),
                reactor,
                slot,
            })
        })
    }

    /// The descriptor's owner.
    pub fn get_ref(&self) -> &T {
        self.io.as_ref().expect("it is there until the source goes")
    }

    /// The descriptor's owner, watched no longer.
    pub fn into_inner(mut self) -> T {
        let io = self.io.take().expect("it is there until the source goes");
        self.reactor.remove(io.as_fd(), self.slot);
        io
    }

    /// Waits until the system reports that `interest` may succeed. It may still be refused: that was
    /// another thread's data, or a packet that turned out broken.
    ///
    /// Cancel-safe. An error only if the source's runtime has shut down.
    pub fn ready(&self, interest: Interest) -> IoWait<Ready<'_, T>> {
        Waiting::new(of_source(self.readiness(interest)).open())
    }

    /// As [`ready`](IoSource::ready), as a source of readiness from which other events are made.
    pub fn readiness(&self, interest: Interest) -> Ready<'_, T> {
        Ready::new(self, interest)
    }

    /// Performs `act` as soon as the system does not refuse it.
    ///
    /// Cancel-safe: what was dropped has done nothing. In a choice with other events the act is performed
    /// after the choice; should another thread have come first in that moment, the output is
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// Those of `act`, but not `WouldBlock` and `Interrupted`; and if the source's runtime has shut down.
    pub fn operate<R, F>(&self, interest: Interest, act: F) -> IoWait<Operation<'_, T, R, F>>
    where
        F: FnMut(&T) -> io::Result<Done<R>> + Unpin,
    {
        Waiting::new(of_source(Operation::new(self.readiness(interest), act)).open())
    }

    /// As [`operate`](IoSource::operate), for a `poll_…` function: the waker of the last call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_operate<R>(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut act: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let ticket = None;
        self.poll_as(Waiter { interest, ticket }, cx, &mut act)
    }

    /// Performs `act` if the system does not refuse it now.
    ///
    /// # Errors
    /// Those of `act`; [`WouldBlock`](io::ErrorKind::WouldBlock) if it is refused.
    pub fn try_operate<R>(
        &self,
        interest: Interest,
        mut act: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> io::Result<R> {
        let seen = self.slot().look();
        let done = act(self.get_ref());
        match &done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.slot().refused(interest, seen);
            }
            Ok(Done::Drained(_)) => self.slot().drained(interest, seen),
            _ => {}
        }
        done.map(Done::into_inner)
    }

    /// Wakes whoever waits for `interest`, as if the system had reported it: for what was taken from the
    /// system and is left to others.
    pub fn tell(&self, interest: Interest) {
        self.reactor.tell(self.slot, interest);
    }

    /// Performs `act` if the direction is ready, and waits while the system refuses it.
    pub(super) fn poll_as<R>(
        &self,
        mut waiter: Waiter<'_>,
        cx: &mut Context<'_>,
        act: &mut impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let interest = waiter.interest;
        loop {
            let Ok(seen) = self.slot().look_or_wait(waiter.again(), cx.waker()) else {
                note_wait(self.reason(interest));
                return Poll::Pending;
            };
            if !context::with(|here| here.spend(cx.waker())) {
                return Poll::Pending;
            }
            if let Some(result) = self.attempt(interest, seen, act) {
                return Poll::Ready(result);
            }
        }
    }

    /// One attempt. None: it was refused, and the slot knows.
    pub(super) fn attempt<R>(
        &self,
        interest: Interest,
        seen: Seen,
        act: &mut impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Option<io::Result<R>> {
        match act(self.get_ref()) {
            Ok(Done::Maybe(result)) => Some(Ok(result)),
            Ok(Done::Drained(result)) => {
                self.slot().drained(interest, seen);
                Some(Ok(result))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.slot().refused(interest, seen);
                seen.is_gone().then(|| Err(io::Error::other(RuntimeGone)))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Asks the system itself whether `interest` would be refused.
    pub(super) fn is_refused(&self, interest: Interest) -> bool {
        let flags = match interest {
            Interest::Read => PollFlags::IN | PollFlags::RDHUP,
            Interest::Write => PollFlags::OUT,
        };
        let mut one = [PollFd::new(self.get_ref(), flags)];
        matches!(poll(&mut one, Some(&Timespec::default())), Ok(0))
    }

    pub(super) fn slot(&self) -> &SourceSlot {
        self.reactor.slot(self.slot)
    }

    pub(super) fn reason(&self, interest: Interest) -> Reason {
        match interest {
            Interest::Read => Reason::new(Kind::Readable, self),
            Interest::Write => Reason::new(Kind::Writable, self),
        }
    }
}

impl<T: AsFd> Drop for IoSource<T> {
    fn drop(&mut self) {
        if let Some(io) = &self.io {
            self.reactor.remove(io.as_fd(), self.slot);
        }
    }
}

impl<T: AsFd> AsFd for IoSource<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for IoSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IoSource").field(&self.io).finish()
    }
}
