//! A file descriptor that the reactor watches, and the operations on it that wait.
//!
//! An operation is attempted first and waits only when the system refuses it (`EWOULDBLOCK`), so it costs
//! little more than its system call.

use std::{
    error::Error,
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
    api::sync_hooks::note_wait,
    api::{
        io_operation::{IoWait, Operation, Ready},
        offload::ShutDown,
    },
    reactor::{
        First, Reactor, RuntimeGone,
        slot::{Interest, Readiness, Seen, SourceSlot, Waiter},
        table::SharedSlot,
    },
    scheduler::workers::{context, current, waker::kept},
};

/// A watched file descriptor: a socket, a pipe, or anything else that `epoll` accepts.
///
/// The source belongs to the runtime in which it is created; the workers of this runtime see its readiness. Jobs of any
/// runtime and all other threads may wait for it. The operations must not wait: the descriptor is non-blocking
/// (`O_NONBLOCK`), or each operation asks the system not to wait, and fails with `WouldBlock` instead. Dropping the
/// source closes it, unless [`into_inner`](IoSource::into_inner) took it out.
///
/// Any number of futures may wait for one direction. Of the callers of `poll_…` functions only the last one of each
/// direction is woken. A source takes about 170 bytes.
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
    /// `None` only after `into_inner`.
    io: Option<T>,
    reactor: Arc<Reactor>,
    /// The number of the slot.
    number: u32,
    slot: SharedSlot,
}

/// The result of an operation that the system did not refuse, and whether the next one may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<R> {
    /// The next operation may succeed too.
    Maybe(R),
    /// The next operation would be refused: this one took all data, or filled all room.
    ///
    /// Only a byte stream may return this, after a transfer of fewer bytes than it asked for; the system reports
    /// what comes later. (Before the end of the stream and before an urgent mark of TCP a short transfer is not the
    /// last one; the reactor handles both.) Do not return it for reads of records, or for a Unix socket, whose reads
    /// also end where descriptors were attached.
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

/// Whether `error`, or one of its sources, says that the runtime of a watched descriptor or of an offloaded call has
/// shut down.
pub fn is_runtime_gone(error: &io::Error) -> bool {
    let mut reason = error
        .get_ref()
        .map(|reason| reason as &(dyn Error + 'static));
    while let Some(this) = reason {
        if this.is::<RuntimeGone>() || this.is::<ShutDown>() {
            return true;
        }
        reason = match this.downcast_ref::<io::Error>() {
            // Its source is that of what it contains.
            Some(inner) if inner.get_ref().is_some() => inner.get_ref().map(|inner| inner as _),
            _ => this.source(),
        };
    }
    false
}

impl<T: AsFd> IoSource<T> {
    /// Watches `io` without assuming that it is ready: an operation is first attempted when the system reports
    /// readiness, which it does at once for a ready descriptor.
    ///
    /// # Errors
    /// Those of the system, for example when a table of descriptors is full; and if the current runtime has
    /// shut down.
    pub fn new(io: T) -> io::Result<IoSource<T>> {
        IoSource::register(io, Readiness::NONE)
    }

    /// Watches `io`, and assumes that it is ready: the first operation of each direction is attempted at once.
    ///
    /// # Errors
    /// As [`new`](IoSource::new).
    pub fn new_ready(io: T) -> io::Result<IoSource<T>> {
        IoSource::register(io, Readiness::BOTH)
    }

    fn register(io: T, known: Readiness) -> io::Result<IoSource<T>> {
        current::with_current(|shared| {
            let reactor = shared.reactor.clone();
            let (number, first) = reactor.add(io.as_fd(), known)?;
            if first == First::Yes {
                shared.wake_one();
            }
            Ok(IoSource {
                io: Some(io),
                slot: reactor.slot(number),
                reactor,
                number,
            })
        })
    }

    /// The owner of the descriptor.
    pub fn get_ref(&self) -> &T {
        self.io
            .as_ref()
            .expect("the descriptor is there until the source is dropped")
    }

    /// Stops watching, and returns the owner of the descriptor.
    pub fn into_inner(mut self) -> T {
        let io = self
            .io
            .take()
            .expect("the descriptor is there until the source is dropped");
        self.reactor.remove(io.as_fd(), self.number);
        io
    }

    /// Waits until the system reports that an operation of direction `interest` may succeed. The operation may
    /// still be refused, for example because another thread took the data.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Only if the source's runtime has shut down.
    pub fn ready(&self, interest: Interest) -> IoWait<Ready<'_, T>> {
        Waiting::new(of_source(self.readiness(interest)).open())
    }

    /// As [`ready`](IoSource::ready), in the form from which other events are built.
    pub fn readiness(&self, interest: Interest) -> Ready<'_, T> {
        Ready::new(self, interest)
    }

    /// Calls `act` until the system does not refuse it, and waits in between.
    ///
    /// Cancel-safe: a wait that is dropped has performed nothing. In a choice with other events `act` is called
    /// after the choice; if another thread took the data in that moment, the output is
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// Those of `act`, except `WouldBlock` and `Interrupted`; and if the source's runtime has shut down.
    pub fn operate<R, F>(&self, interest: Interest, act: F) -> IoWait<Operation<'_, T, R, F>>
    where
        F: FnMut(&T) -> io::Result<Done<R>> + Unpin,
    {
        Waiting::new(of_source(Operation::new(self.readiness(interest), act)).open())
    }

    /// As [`operate`](IoSource::operate), for `poll_…` functions: only the waker of the last call is woken.
    ///
    /// # Errors
    /// As [`operate`](IoSource::operate).
    pub fn poll_operate<R>(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut act: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let key = None;
        self.poll_as(Waiter { interest, key }, cx, &mut act)
    }

    /// Calls `act` once, without waiting.
    ///
    /// # Errors
    /// Those of `act`; [`WouldBlock`](io::ErrorKind::WouldBlock) if the system refuses it.
    pub fn try_operate<R>(
        &self,
        interest: Interest,
        mut act: impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> io::Result<R> {
        let slot = self.slot();
        let seen = slot.seen();
        let done = act(self.get_ref());
        match &done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                slot.refused(interest, seen);
            }
            Ok(Done::Drained(_)) => slot.drained(interest, seen),
            _ => {}
        }
        done.map(Done::into_inner)
    }

    /// Wakes all waiters for `interest`, as if the system had reported readiness. For a caller that took an event
    /// but leaves the rest of the data to others.
    pub fn notify(&self, interest: Interest) {
        self.reactor.set_ready_for(self.number, interest);
    }

    /// Calls `act` if the direction is ready, and waits while the system refuses it.
    pub(super) fn poll_as<R>(
        &self,
        mut waiter: Waiter<'_>,
        cx: &mut Context<'_>,
        act: &mut impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        let interest = waiter.interest;
        let slot = self.slot();
        loop {
            let Ok(seen) = slot.ready_or_wait(waiter.reborrow(), || kept(cx.waker())) else {
                note_wait(self.reason(interest));
                return Poll::Pending;
            };
            if !context::with(|here| here.spend(cx.waker())) {
                return Poll::Pending;
            }
            if let Some(result) = self.attempt(slot, (interest, seen), act) {
                return Poll::Ready(result);
            }
        }
    }

    /// Makes one attempt. None if the system refused it; `slot`, which is the source's, has then noted that.
    pub(super) fn attempt<R>(
        &self,
        slot: &SourceSlot,
        (interest, seen): (Interest, Seen),
        act: &mut impl FnMut(&T) -> io::Result<Done<R>>,
    ) -> Option<io::Result<R>> {
        match act(self.get_ref()) {
            Ok(Done::Maybe(result)) => Some(Ok(result)),
            Ok(Done::Drained(result)) => {
                slot.drained(interest, seen);
                Some(Ok(result))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                slot.refused(interest, seen);
                seen.is_gone().then(|| Err(io::Error::other(RuntimeGone)))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Asks the system whether an operation of direction `interest` would be refused now.
    pub(super) fn is_refused(&self, interest: Interest) -> bool {
        let flags = match interest {
            Interest::Read => PollFlags::IN | PollFlags::RDHUP,
            Interest::Write => PollFlags::OUT,
        };
        let mut one = [PollFd::new(self.get_ref(), flags)];
        matches!(poll(&mut one, Some(&Timespec::default())), Ok(0))
    }

    pub(super) fn slot(&self) -> &SourceSlot {
        self.slot.get()
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
            self.reactor.remove(io.as_fd(), self.number);
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
