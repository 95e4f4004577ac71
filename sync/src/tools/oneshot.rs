//! The oneshot: one value, from one sender to one receiver.
//!
//! - A send never waits. If the receiver is gone, the value comes back.
//! - A receive waits for the value, or for the end of the sender.
//! - The value stays in the oneshot until it is received, so a receive that is dropped loses nothing.
//!
//! The lock guards the offers of both parts, and whether a value is refused. The value needs none: `is_sent` hands it over.

#![allow(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        serve::Served,
        spin_lock::{SpinGuard, SpinLock},
        ticket::Ticket,
        wake::wake,
    },
    runtime::reason::{Kind, Reason},
    sys::{AtomicU32, Ordering, UnsafeCell},
};

/// A sender and its receiver.
///
/// ```
/// use weald::sync::{Wait, oneshot};
///
/// let (sender, mut receiver) = oneshot::channel();
/// std::thread::spawn(move || sender.send(6 * 7));
/// assert_eq!(receiver.receive().wait(), Ok(42));
/// ```
///
/// There is no poisoning: a unit that panics drops its sender, and the receive then fails.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Oneshot {
        state: SpinLock::new(OneshotState {
            is_refused: false,
            receiver: Offers::new(),
            sender: Offers::new(),
        }),
        is_sent: AtomicU32::new(0),
        value: UnsafeCell::new(None),
    });
    let sender = Sender {
        shared: Some(Arc::clone(&shared)),
    };
    (sender, Receiver { shared })
}

/// What both parts share.
///
/// # Safety
/// *Handed*: the sender touches the value until it sets `is_sent`, and the receiver only after it has seen that. Each
/// of them exists once, and gives exclusive access to one user at a time.
struct Oneshot<T> {
    state: SpinLock<OneshotState>,
    /// Not zero: nothing (more) will be sent. Set once, under the lock, before a waiting receiver's claim is won.
    is_sent: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: *handed*: the value moves from one thread to another, and is never shared.
unsafe impl<T: Send> Send for Oneshot<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Oneshot<T> {}

struct OneshotState {
    /// Nothing (more) will be received.
    is_refused: bool,
    receiver: Offers<()>,
    sender: Offers<()>,
}

/// The right to send.
pub struct Sender<T> {
    /// None while `send` uses the right up.
    shared: Option<Arc<Oneshot<T>>>,
}

/// Why a sender has its part.
const HAS_RIGHT: &str = "only a send takes it, and uses up the sender";

/// The right to receive.
pub struct Receiver<T> {
    shared: Arc<Oneshot<T>>,
}

impl<T> Sender<T> {
    /// Sends the value.
    ///
    /// # Errors
    /// [`SendError`] with the value if the receiver is gone, or was closed.
    pub fn send(mut self, value: T) -> Result<(), SendError<T>> {
        let shared = self.shared.take().expect(HAS_RIGHT);
        let state = shared.state.lock();
        if state.is_refused {
            shared.end_sending(state);
            return Err(SendError(value));
        }
        {
            let access = shared.value.get_mut();
            // SAFETY: *handed*: this is the sender, and `is_sent` is not set.
            *unsafe { access.deref() } = Some(value);
        }
        shared.end_sending(state);
        Ok(())
    }

    fn shared(&self) -> &Oneshot<T> {
        self.shared.as_ref().expect(HAS_RIGHT)
    }

    /// Waits until the receiver is gone, or closed. An event. Cancel-safe.
    #[track_caller]
    pub fn closed(&mut self) -> Waiting<Refused<'_, T>> {
        Waiting::here(Refused {
            shared: self.shared(),
            node: OfferNode::with_slot(()),
        })
    }

    /// Whether a send fails.
    pub fn is_closed(&self) -> bool {
        self.shared().state.lock().is_refused
    }
}

impl<T> Receiver<T> {
    /// Waits for the value. An event. Cancel-safe: if the wait is dropped, the value can still be received.
    ///
    /// # Errors
    /// [`Closed`] if the sender is gone without sending, or the value was already received.
    #[track_caller]
    pub fn receive(&mut self) -> Waiting<Receive<'_, T>> {
        Waiting::here(Receive {
            shared: &self.shared,
            node: OfferNode::with_slot(()),
        })
    }

    /// The value, if it was sent.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_receive(&mut self) -> Result<T, TryReceiveError> {
        // SAFETY: this is the receiver, borrowed exclusively.
        match unsafe { self.shared.receive() } {
            Some(Ok(value)) => Ok(value),
            Some(Err(Closed)) => Err(TryReceiveError::Closed),
            None => Err(TryReceiveError::Empty),
        }
    }

    /// Refuses a value from now on. A value that was sent before can still be received.
    pub fn close(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_refused = true;
        let served = state.end_closed();
        drop(state);
        served.flatten().into_iter().for_each(wake);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.end_sending(shared.state.lock());
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // Without a sender nothing can be refused.
        if !self.shared.is_sent() {
            self.close();
        }
        // SAFETY: this is the receiver, borrowed exclusively.
        let value = unsafe { self.shared.receive() };
        // The value's destructor is user code: it runs without the lock.
        drop(value);
    }
}

impl<T> Oneshot<T> {
    /// Nothing (more) will be sent: ends the receiver's wait.
    #[inline]
    fn end_sending(&self, mut state: SpinGuard<'_, OneshotState>) {
        // Release: pairs with the acquire in `is_sent`.
        self.is_sent.store(1, Ordering::Release);
        let served = state.end_receive();
        drop(state);
        served.flatten().into_iter().for_each(wake);
    }

    /// Whether nothing (more) will be sent.
    #[inline(always)]
    fn is_sent(&self) -> bool {
        // Acquire: pairs with the release in `end_sending`, so the receiver sees the value.
        self.is_sent.load(Ordering::Acquire) != 0
    }

    /// The value, or that none will come. None: wait.
    ///
    /// # Safety
    /// The caller is the receiver, and has exclusive access to it.
    #[inline(always)]
    unsafe fn receive(&self) -> Option<Result<T, Closed>> {
        if !self.is_sent() {
            return None;
        }
        let access = self.value.get_mut();
        // SAFETY: *handed*: the caller is the receiver, and has seen `is_sent`.
        let value = unsafe { access.deref() }.take();
        Some(value.ok_or(Closed))
    }
}

impl OneshotState {
    /// At most one unit waits for the value: a receive borrows the receiver exclusively.
    fn end_receive(&mut self) -> Served {
        Some(self.receiver.accept()?.win())
    }

    /// At most one unit waits for the end, for the same reason.
    fn end_closed(&mut self) -> Served {
        Some(self.sender.accept()?.win())
    }
}

/// The event of [`Receiver::receive`].
pub struct Receive<'a, T> {
    shared: &'a Oneshot<T>,
    node: OfferNode<()>,
}

impl<'a, T> Receive<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a Oneshot<T>, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.shared, &mut this.node))
    }
}

impl<T> Branch for Receive<'_, T> {
    type Output = Result<T, Closed>;

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: a receive borrows the receiver exclusively.
        match unsafe { self.shared.receive() } {
            Some(received) => Poll::Ready(received),
            None => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (shared, node) = self.node();
        let mut state = shared.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        // SAFETY: as in `attempt`.
        if let Some(received) = unsafe { shared.receive() } {
            ticket.win(own);
            return Enrolled::Ready(received);
        }
        state.receiver.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        // SAFETY: as in `attempt`.
        unsafe { self.shared.receive() }.unwrap_or(Err(Closed))
    }

    /// The value stays where it is.
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (shared, node) = self.node();
        if won.is_none() && node.is_bound() {
            shared.state.lock().receiver.remove(node);
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Oneshot, self.shared)
    }
}

/// The event of [`Sender::closed`].
pub struct Refused<'a, T> {
    shared: &'a Oneshot<T>,
    node: OfferNode<()>,
}

impl<'a, T> Refused<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a Oneshot<T>, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.shared, &mut this.node))
    }
}

impl<T> Branch for Refused<'_, T> {
    type Output = ();

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        match self.shared.state.lock().is_refused {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        let (shared, node) = self.node();
        let mut state = shared.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.is_refused {
            ticket.win(own);
            return Enrolled::Ready(());
        }
        state.sender.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) {}

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (shared, node) = self.node();
        if won.is_none() && node.is_bound() {
            shared.state.lock().sender.remove(node);
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Oneshot, self.shared)
    }
}

/// The receiver is gone. Contains the value that was not sent.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver is gone: nobody will receive the value")]
pub struct SendError<T>(pub T);

/// No value will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sender is gone: no value will come")]
pub struct Closed;

/// Why nothing was received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryReceiveError {
    /// The value was not sent yet.
    #[error("the value was not sent yet: wait with receive, or try later")]
    Empty,
    /// No value will come.
    #[error("the sender is gone: no value will come")]
    Closed,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
