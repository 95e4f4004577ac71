//! The oneshot: one value, from one sender to one receiver.
//!
//! - A send never waits. If the receiver is gone, the value comes back.
//! - A receive waits for the value, or for the end of the sender.
//! - The value stays in the oneshot until it is received, so a receive that is dropped loses nothing.

#![allow(unsafe_code)]

mod spare;
mod state;

use std::{
    fmt,
    mem::ManuallyDrop,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        ticket::Ticket,
    },
    runtime::reason::{Kind, Reason},
};
use state::{End, GONE, Locked, Oneshot, REFUSED, Receiving, SENT};

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
#[inline]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = End::pair();
    (Sender { end: sender }, Receiver { end: receiver })
}

/// The right to send.
pub struct Sender<T> {
    end: End<T>,
}

/// The right to receive.
pub struct Receiver<T> {
    end: End<T>,
}

impl<T> Sender<T> {
    /// Sends the value.
    ///
    /// # Errors
    /// [`SendError`] with the value if the receiver is gone, or was closed.
    #[inline]
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        let this = ManuallyDrop::new(self);
        let locked = this.end.lock();
        if locked.has(REFUSED) {
            end_sending(&this.end, locked);
            return Err(SendError(value));
        }
        // SAFETY: *handed*: this is the sender, and `SENT` is set below.
        unsafe { this.end.put(value) };
        end_sending(&this.end, locked);
        Ok(())
    }

    /// Waits until the receiver is gone, or closed. An event. Cancel-safe.
    #[track_caller]
    pub fn closed(&mut self) -> Waiting<Refused<'_, T>> {
        Waiting::here(Refused {
            shared: &self.end,
            node: OfferNode::with_slot(()),
        })
    }

    /// Whether a send fails.
    pub fn is_closed(&self) -> bool {
        self.end.is_refused()
    }
}

impl<T> Receiver<T> {
    /// Waits for the value. An event. Cancel-safe: if the wait is dropped, the value can still be received.
    ///
    /// # Errors
    /// [`Closed`] if the sender is gone without sending, or the value was already received.
    #[inline]
    #[track_caller]
    pub fn receive(&mut self) -> Waiting<Receive<'_, T>> {
        Waiting::here(Receive {
            shared: &self.end,
            node: OfferNode::with_slot(()),
            left_waker: false,
        })
    }

    /// The value, if it was sent.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_receive(&mut self) -> Result<T, TryReceiveError> {
        // SAFETY: this is the receiver, borrowed exclusively.
        match unsafe { receive(&self.end) } {
            Some(Ok(value)) => Ok(value),
            Some(Err(Closed)) => Err(TryReceiveError::Closed),
            None => Err(TryReceiveError::Empty),
        }
    }

    /// Refuses a value from now on. A value that was sent before can still be received.
    pub fn close(&mut self) {
        let locked = self.end.lock();
        wake(locked.end(REFUSED, |offers| &mut offers.sender));
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        end_sending(&self.end, self.end.lock());
    }
}

/// The sender leaves: ends the receiver's wait, if there is one. The sender's end is not used again.
#[inline(always)]
fn end_sending<T>(end: &End<T>, locked: Locked<'_, T>) {
    if locked.has(GONE) {
        drop(locked);
        // SAFETY: *ends*: the receiver has left, and so does the sender.
        return unsafe { end.free() };
    }
    wake(locked.end_sender());
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.end.is_sent() && self.leave_first() {
            return;
        }
        // SAFETY: *ends*: the sender has left, and so does the receiver. The value's destructor is user code: nothing
        // is held.
        unsafe { self.end.free() };
    }
}

impl<T> Receiver<T> {
    /// Leaves before the sender, and ends its wait, if there is one. False: the sender has left meanwhile.
    #[inline(never)]
    fn leave_first(&self) -> bool {
        let locked = self.end.lock();
        if locked.has(SENT) {
            return false;
        }
        wake(locked.end(REFUSED | GONE, |offers| &mut offers.sender));
        true
    }
}

#[inline(always)]
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        crate::queue::wake::wake(waker);
    }
}

/// The value, or that none will come. None: wait.
///
/// # Safety
/// The caller is the receiver, and has exclusive access to it.
#[inline(always)]
unsafe fn receive<T>(oneshot: &Oneshot<T>) -> Option<Result<T, Closed>> {
    if !oneshot.is_sent() {
        return None;
    }
    // SAFETY: *handed*: the caller is the receiver, and has seen `SENT`.
    let value = unsafe { oneshot.take() };
    Some(value.ok_or(Closed))
}

/// Takes the waker back that a wait for the value alone has left, if it is still there.
fn forget_waker<T>(oneshot: &Oneshot<T>) {
    let waker = oneshot.lock().offers().receiver.take_alone();
    // User code, so the lock is free again.
    drop(waker);
}

/// The event of [`Receiver::receive`].
pub struct Receive<'a, T> {
    shared: &'a Oneshot<T>,
    /// Of a wait for one of several events.
    node: OfferNode<()>,
    /// Whether a wait for the value alone has left its waker.
    left_waker: bool,
}

impl<'a, T> Receive<'a, T> {
    #[inline]
    fn node(self: Pin<&mut Self>) -> (&'a Oneshot<T>, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.shared, &mut this.node))
    }
}

impl<T> Branch for Receive<'_, T> {
    type Output = Result<T, Closed>;

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: a receive borrows the receiver exclusively.
        match unsafe { receive(self.shared) } {
            Some(received) => Poll::Ready(received),
            None => Poll::Pending,
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (shared, node) = self.node();
        // Dropped without the lock. A wait that was forgotten, and never dropped, has left it.
        let (_former, mut locked) = {
            let mut locked = shared.lock();
            (locked.offers().receiver.forget(), locked)
        };
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        // SAFETY: as in `attempt`.
        if let Some(received) = unsafe { receive(shared) } {
            ticket.win(own);
            return Enrolled::Ready(received);
        }
        locked.offers().receiver.offers().leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    #[inline(always)]
    fn keeps_waker(&self) -> bool {
        true
    }

    #[inline]
    fn wait_alone(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        // Wakers are user code: cloned and dropped without the lock.
        let waker = cx.waker().clone();
        let mut locked = shared.lock();
        // SAFETY: as in `attempt`.
        if let Some(received) = unsafe { receive(shared) } {
            drop(locked);
            return Poll::Ready(received);
        }
        let receiving = &mut locked.offers().receiver;
        let former = receiving.take_alone();
        *receiving = Receiving::Alone(waker);
        drop(locked);
        // SAFETY: nothing is moved.
        unsafe { self.get_unchecked_mut() }.left_waker = true;
        drop(former);
        Poll::Pending
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        // SAFETY: as in `attempt`.
        unsafe { receive(self.shared) }.unwrap_or(Err(Closed))
    }

    /// The value stays where it is.
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    #[inline]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        if won.is_some() {
            return;
        }
        if self.left_waker {
            return forget_waker(self.shared);
        }
        let (shared, node) = self.node();
        if node.is_bound() {
            shared.lock().offers().receiver.offers().remove(node);
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    #[inline]
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
    #[inline]
    fn node(self: Pin<&mut Self>) -> (&'a Oneshot<T>, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.shared, &mut this.node))
    }
}

impl<T> Branch for Refused<'_, T> {
    type Output = ();

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        match self.shared.is_refused() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        let (shared, node) = self.node();
        let mut locked = shared.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if locked.has(REFUSED) {
            ticket.win(own);
            return Enrolled::Ready(());
        }
        let offers = &mut locked.offers().sender;
        // A wait that was forgotten, and never dropped, has left its offer.
        *offers = Offers::new();
        offers.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, _won: Won) {}

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    #[inline]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (shared, node) = self.node();
        if won.is_none() && node.is_bound() {
            shared.lock().offers().sender.remove(node);
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    #[inline]
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
