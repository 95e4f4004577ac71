//! The state of a channel and its steps. Each runs under the channel's lock and returns the waker to wake.
//!
//! Invariants, whenever the lock is free:
//! - Receivers wait only while the buffer is empty; senders only while it is full.
//! - A sender's offer holds its value until the offer is accepted; a receiver's offer gets its value then.
//! - When the channel closes, the claims of all waiters are won with their slots unchanged.

use std::{collections::VecDeque, task::Waker};

use super::error::{TryReceiveError, TrySendError};
use crate::{
    queue::{
        offer::{Accepted, Offers},
        spin_lock::{SpinGuard, SpinLock},
    },
    runtime::reason::Name,
};

/// The shared part of both ends.
pub(super) struct Channel<T>(SpinLock<ChannelState<T>>);

pub(super) struct ChannelState<T> {
    /// How many values the buffer may hold; `u32::MAX`: any number.
    bound: u32,
    name: Name,
    closed: bool,
    sides: Sides,
    buffer: VecDeque<T>,
    pub(super) senders: Offers<Option<T>>,
    pub(super) receivers: Offers<Option<T>>,
}

/// How many handles each side has.
pub(super) struct Sides {
    pub(super) senders: u32,
    pub(super) receivers: u32,
}

/// What became of a value.
pub(super) enum Sent<T> {
    /// It is in the buffer, or with a receiver, whose waker is to be woken.
    Done(Option<Waker>),
    Full(T),
    Closed(T),
}

/// The result of looking for a value.
pub(super) enum Received<T> {
    /// A value, and the waker of the sender that it made room for.
    Value(T, Option<Waker>),
    Empty,
    Closed,
}

impl<T> Channel<T> {
    pub(super) fn new(bound: u32) -> Channel<T> {
        Channel(SpinLock::new(ChannelState {
            bound,
            name: Name::NONE,
            closed: false,
            sides: Sides {
                senders: 1,
                receivers: 1,
            },
            buffer: VecDeque::new(),
            senders: Offers::new(),
            receivers: Offers::new(),
        }))
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> SpinGuard<'_, ChannelState<T>> {
        self.0.lock()
    }

    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let sent = self.lock().send(value);
        match sent {
            Sent::Done(waker) => {
                wake(waker);
                Ok(())
            }
            Sent::Full(value) => Err(TrySendError::Full(value)),
            Sent::Closed(value) => Err(TrySendError::Closed(value)),
        }
    }

    pub(super) fn try_receive(&self) -> Result<T, TryReceiveError> {
        let received = self.lock().receive();
        match received {
            Received::Value(value, waker) => {
                wake(waker);
                Ok(value)
            }
            Received::Empty => Err(TryReceiveError::Empty),
            Received::Closed => Err(TryReceiveError::Closed),
        }
    }

    pub(super) fn close(&self) {
        let mut wakers = Vec::new();
        let mut state = self.lock();
        state.closed = true;
        let ChannelState {
            senders, receivers, ..
        } = &mut *state;
        for side in [senders, receivers] {
            while let Some(accepted) = side.accept() {
                wakers.push(accepted.win());
            }
        }
        drop(state);
        crate::queue::wake::wake_all(wakers.into_iter().flatten());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn len(&self) -> usize {
        self.lock().buffer.len()
    }

    pub(super) fn set_name(&self, name: Name) {
        self.lock().name = name;
    }

    pub(super) fn name(&self) -> Name {
        self.lock().name
    }

    /// Adds a handle to a side.
    pub(super) fn enter(&self, side: impl FnOnce(&mut Sides) -> &mut u32) {
        let mut state = self.lock();
        let count = side(&mut state.sides);
        *count = count
            .checked_add(1)
            .expect("a channel has at most 2^32 - 1 handles a side");
    }

    /// Removes a handle from a side. The last one closes the channel.
    pub(super) fn leave(&self, side: impl FnOnce(&mut Sides) -> &mut u32) {
        let mut state = self.lock();
        let count = side(&mut state.sides);
        *count -= 1;
        let is_last = *count == 0;
        // At once, so that nothing is sent into a buffer that was emptied for the last time.
        state.closed |= is_last;
        // Values that can no longer be received are dropped outside the lock: their destructors are user code.
        let lost = match state.sides.receivers {
            0 => std::mem::take(&mut state.buffer),
            _ => VecDeque::new(),
        };
        drop(state);
        if is_last {
            self.close();
        }
        drop(lost);
    }
}

impl<T> ChannelState<T> {
    /// Gives `value` to a waiting receiver, or puts it into the buffer.
    #[inline]
    pub(super) fn send(&mut self, value: T) -> Sent<T> {
        if self.closed {
            return Sent::Closed(value);
        }
        if let Some(receiver) = self.receivers.accept() {
            return Sent::Done(hand_over(receiver, value));
        }
        if !self.has_room() {
            return Sent::Full(value);
        }
        self.buffer.push_back(value);
        Sent::Done(None)
    }

    /// Takes the oldest value, and moves the value of the first waiting sender into the buffer.
    #[inline]
    pub(super) fn receive(&mut self) -> Received<T> {
        if let Some(value) = self.buffer.pop_front() {
            return Received::Value(value, self.refill());
        }
        if let Some(sender) = self.senders.accept() {
            let (value, waker) = take_from(sender);
            return Received::Value(value, waker);
        }
        self.nothing()
    }

    /// Whether a receive ends without a waiting sender.
    pub(super) fn can_receive(&self) -> bool {
        self.closed || !self.buffer.is_empty()
    }

    /// Whether sends fail.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Puts a value into the buffer, which has room.
    pub(super) fn put(&mut self, value: T) {
        self.buffer.push_back(value);
    }

    /// Takes back a value that was handed to a receiver that is gone: the value goes to the next receiver, or to
    /// the front of the buffer.
    pub(super) fn send_back(&mut self, value: T) -> Option<Waker> {
        match self.receivers.accept() {
            Some(receiver) => hand_over(receiver, value),
            None => {
                self.buffer.push_front(value);
                None
            }
        }
    }

    /// Moves the value of the first waiting sender into the buffer, if there is room.
    #[inline]
    fn refill(&mut self) -> Option<Waker> {
        if self.senders.is_empty() || !self.has_room() {
            return None;
        }
        let (value, waker) = take_from(self.senders.accept()?);
        self.buffer.push_back(value);
        waker
    }

    /// Whether the buffer has room.
    pub(super) fn has_room(&self) -> bool {
        self.bound == u32::MAX || self.buffer.len() < self.bound as usize
    }

    fn nothing(&self) -> Received<T> {
        match self.closed {
            true => Received::Closed,
            false => Received::Empty,
        }
    }
}

/// Ends a receiver's wait with a value.
fn hand_over<T>(receiver: Accepted<'_, Option<T>>, value: T) -> Option<Waker> {
    *receiver.slot = Some(value);
    receiver.win()
}

/// Ends a sender's wait, and takes its value.
fn take_from<T>(sender: Accepted<'_, Option<T>>) -> (T, Option<Waker>) {
    let value = sender.slot.take();
    let value = value.expect("a sender's offer holds its value until it is accepted");
    (value, sender.win())
}

/// Wakes, if there is a waker. Called without the lock.
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        crate::queue::wake::wake(waker);
    }
}
