//! The state of a channel and its steps. Each runs under the channel's lock and returns the waker to wake.
//!
//! Invariants, whenever the lock is free:
//! - Receivers wait only while the buffer is empty; senders only while it is full.
//! - A sender's offer holds its value until the offer is accepted; a receiver's offer gets its value then.
//! - When the channel closes, the claims of all waiters are won with their slots unchanged.

#![allow(unsafe_code)]

use std::{
    any,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    ptr::{self, NonNull},
    task::Waker,
    thread,
};

use super::{
    buffer::Buffer,
    error::{TryReceiveError, TrySendError},
};
use crate::{
    queue::{
        offer::{Accepted, Offers},
        spin_lock::{SpinGuard, SpinLock},
    },
    runtime::{backlog, reason::Name},
};

/// The shared part of both ends: a box of its own, without counts besides those of the sides.
///
/// # Safety
/// *Handles*: a channel lives as long as a side counts a handle. A thread counts a handle out under the lock, and
/// touches the channel no more after that, unless it was the last of both sides, which frees the channel.
pub(super) struct Channel<T>(SpinLock<ChannelState<T>>);

pub(super) struct ChannelState<T> {
    /// How many values the buffer may hold; `u32::MAX`: any number.
    bound: u32,
    /// How many it may hold before the channel enters the list of long ones: less than `bound` until then.
    room: u32,
    /// How many values have left the buffer. It wraps.
    taken: u32,
    closed: bool,
    sides: Sides,
    /// Where the channel was created.
    site: &'static Location<'static>,
    buffer: Buffer<T>,
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
    pub(super) fn new(bound: u32, site: &'static Location<'static>) -> Channel<T> {
        Channel(SpinLock::new(ChannelState {
            bound,
            room: bound.min(backlog::LEAST),
            taken: 0,
            site,
            closed: false,
            sides: Sides {
                senders: 1,
                receivers: 1,
            },
            buffer: Buffer::new(),
            senders: Offers::new(),
            receivers: Offers::new(),
        }))
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> SpinGuard<'_, ChannelState<T>> {
        self.0.lock()
    }

    /// [`ChannelState::send`].
    #[inline(always)]
    pub(super) fn send(&self, value: T) -> Sent<T> {
        let mut state = self.lock();
        match state.send(value) {
            Sent::Full(value) if state.may_grow() => self.send_beyond(state, value),
            sent => sent,
        }
    }

    #[cold]
    fn send_beyond(&self, mut state: SpinGuard<'_, ChannelState<T>>, value: T) -> Sent<T> {
        self.grow(&mut state);
        state.send(value)
    }

    /// Whether the buffer has room. The channel enters the list of long ones if it is about to become one.
    #[inline]
    pub(super) fn has_room(&self, state: &mut ChannelState<T>) -> bool {
        if !state.has_room() && state.may_grow() {
            self.grow(state);
        }
        state.has_room()
    }

    fn grow(&self, state: &mut ChannelState<T>) {
        state.room = state.bound;
        backlog::enter(backlog::AnyChannel {
            address: ptr::from_ref(self).cast(),
            look: look::<T>,
            type_name: any::type_name::<T>(),
        });
    }

    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.send(value) {
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
        let wakers = self.lock().close();
        crate::queue::wake::wake_all(wakers);
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn len(&self) -> usize {
        self.lock().buffer.len()
    }

    pub(super) fn set_name(&self, name: Name) {
        self.0.set_tag(name.number());
    }

    /// Without the lock: each wait asks for it.
    #[inline(always)]
    pub(super) fn name(&self) -> Name {
        Name::of_number(self.0.tag())
    }

    /// Adds a handle to a side.
    pub(super) fn enter(&self, side: impl FnOnce(&mut Sides) -> &mut u32) {
        let mut state = self.lock();
        let count = side(&mut state.sides);
        *count = count
            .checked_add(1)
            .expect("a channel has at most 2^32 - 1 handles a side");
    }

    /// Removes a handle from a side. The last one of a side closes the channel, and the last one of both frees it.
    ///
    /// # Safety
    /// *Handles*: the caller's handle is one of this side, and is not used again.
    pub(super) unsafe fn leave(
        channel: NonNull<Channel<T>>,
        side: impl FnOnce(&mut Sides) -> &mut u32,
    ) {
        // SAFETY: *handles*: until the lock is free again, the caller's handle counts, or nobody else has one.
        let left = unsafe { channel.as_ref() }.lock().leave(side);
        crate::queue::wake::wake_all(left.wakers);
        if left.is_gone {
            if left.is_listed {
                backlog::leave(channel.as_ptr().cast_const().cast());
            }
            // SAFETY: *handles*: there is none, and each thread that had one is done with the channel.
            drop(unsafe { Box::from_raw(channel.as_ptr()) });
        }
        drop_each(left.lost);
    }
}

/// Drops each value, even after one whose destructor panics. The first panic is then raised again, unless the caller is
/// unwinding already.
fn drop_each<T>(values: Buffer<T>) {
    let mut first = None;
    for value in values {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            // Dropping a payload may panic as well.
            first.get_or_insert(ManuallyDrop::new(payload));
        }
    }
    if let Some(payload) = first
        && !thread::panicking()
    {
        resume_unwind(ManuallyDrop::into_inner(payload));
    }
}

/// What is to be done without the lock after a handle has left.
struct Left<T> {
    wakers: Vec<Waker>,
    /// Whether it was the last handle.
    is_gone: bool,
    /// Whether the channel is on the list of long ones.
    is_listed: bool,
    /// Values that can no longer be received. Their destructors are user code.
    lost: Buffer<T>,
}

impl<T> ChannelState<T> {
    /// Closes the channel, and ends all waits. Returns the wakers of their owners.
    fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        let mut wakers = self.senders.accept_all();
        wakers.append(&mut self.receivers.accept_all());
        wakers
    }

    /// Removes a handle from a side.
    fn leave(&mut self, side: impl FnOnce(&mut Sides) -> &mut u32) -> Left<T> {
        let count = side(&mut self.sides);
        *count -= 1;
        // At once, so that nothing is sent into a buffer that was emptied for the last time, and so that a thread that
        // has left does not come back for it: the last one frees the channel.
        let wakers = match *count {
            0 => self.close(),
            _ => Vec::new(),
        };
        Left {
            wakers,
            is_gone: self.sides.senders == 0 && self.sides.receivers == 0,
            is_listed: self.bound > backlog::LEAST && !self.may_grow(),
            lost: match self.sides.receivers {
                0 => std::mem::take(&mut self.buffer),
                _ => Buffer::new(),
            },
        }
    }

    /// Gives `value` to a waiting receiver, or puts it into the buffer.
    #[inline]
    pub(super) fn send(&mut self, value: T) -> Sent<T> {
        if self.closed {
            return Sent::Closed(value);
        }
        if let Some(receiver) = self.receivers.accept() {
            return Sent::Done(deliver(receiver, value));
        }
        if !self.has_room() {
            return Sent::Full(value);
        }
        self.buffer.push_back(value);
        Sent::Done(None)
    }

    /// Takes the oldest value, and moves the value of the first waiting sender into the buffer.
    // Inlined as far as a value that is in the buffer while no sender waits.
    #[inline(always)]
    pub(super) fn receive(&mut self) -> Received<T> {
        let Some(value) = self.buffer.pop_front() else {
            return self.receive_unbuffered();
        };
        self.taken = self.taken.wrapping_add(1);
        let waker = match self.senders.is_empty() {
            true => None,
            false => self.refill(),
        };
        Received::Value(value, waker)
    }

    #[inline(never)]
    fn receive_unbuffered(&mut self) -> Received<T> {
        if let Some(sender) = self.senders.accept() {
            let (value, waker) = take_from(sender);
            return Received::Value(value, waker);
        }
        self.nothing()
    }

    /// Whether a receive ends without a waiting sender.
    #[inline]
    pub(super) fn can_receive(&self) -> bool {
        self.closed || !self.buffer.is_empty()
    }

    /// Whether sends fail.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Puts a value into the buffer, which has room.
    #[inline]
    pub(super) fn put(&mut self, value: T) {
        self.buffer.push_back(value);
    }

    /// Takes back a value that was handed to a receiver that is gone: the value goes to the next receiver, or to
    /// the front of the buffer.
    pub(super) fn send_back(&mut self, value: T) -> Option<Waker> {
        match self.receivers.accept() {
            Some(receiver) => deliver(receiver, value),
            None => {
                self.buffer.push_front(value);
                self.taken = self.taken.wrapping_sub(1);
                None
            }
        }
    }

    /// Moves the value of the first waiting sender into the buffer, if there is room.
    #[inline(never)]
    fn refill(&mut self) -> Option<Waker> {
        if !self.has_room() {
            return None;
        }
        let (value, waker) = take_from(self.senders.accept()?);
        self.buffer.push_back(value);
        waker
    }

    /// Whether the buffer has room, before the channel must enter the list of long ones.
    #[inline]
    fn has_room(&self) -> bool {
        self.room == u32::MAX || self.buffer.len() < self.room as usize
    }

    /// Whether the channel is not on the list of long ones, and may be one day.
    #[inline]
    fn may_grow(&self) -> bool {
        self.room < self.bound
    }

    #[inline]
    fn nothing(&self) -> Received<T> {
        match self.closed {
            true => Received::Closed,
            false => Received::Empty,
        }
    }
}

/// Looks at a channel for the list of long ones.
///
/// # Safety
/// `channel` is a `Channel<T>` that lives.
unsafe fn look<T>(channel: *const ()) -> backlog::Look {
    // SAFETY: the caller's promise.
    let channel = unsafe { &*channel.cast::<Channel<T>>() };
    let state = channel.lock();
    backlog::Look {
        name: channel.name(),
        site: state.site,
        values: u32::try_from(state.buffer.len()).unwrap_or(u32::MAX),
        taken: state.taken,
    }
}

/// Ends a receiver's wait with a value.
#[inline]
fn deliver<T>(mut receiver: Accepted<'_, Option<T>>, value: T) -> Option<Waker> {
    *receiver.slot() = Some(value);
    receiver.win()
}

/// Ends a sender's wait, and takes its value.
#[inline]
fn take_from<T>(mut sender: Accepted<'_, Option<T>>) -> (T, Option<Waker>) {
    let value = sender.slot().take();
    let value = value.expect("a sender's offer holds its value until it is accepted");
    (value, sender.win())
}

/// Wakes, if there is a waker. Called without the lock.
#[inline(always)]
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        crate::queue::wake::wake(waker);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_an_empty_channel_has_64_bytes() {
        assert_eq!(size_of::<Channel<u64>>(), 64);
    }
}
