//! Channels: many senders, many receivers, first in first out.
//!
//! - *Bounded*: a send waits while as many values as the bound are in the buffer.
//! - *Unbounded*: a send never waits.
//! - *Rendezvous*: nothing is buffered; a send waits for a receive, and both end at the same instant.
//!
//! Waiting senders and waiting receivers are served in the order of their arrival. A value is handed to a
//! waiting receiver, so that no later one takes it. A channel is closed when all handles of one side are
//! gone, or by `close`: then sends fail at once, and receives fail when the buffer is empty.

#![allow(unsafe_code)]

mod buffer;
mod error;
mod receive;
mod send;
mod state;

use std::{
    fmt, marker::PhantomData, num::NonZeroU32, ops::Deref, panic::Location, ptr::NonNull,
    time::Duration, time::Instant,
};

pub use error::{Closed, SendError, TryReceiveError, TrySendError};
pub use receive::Receive;
pub use send::Send;

use crate::{
    event::Waiting,
    runtime::{reason::Name, wait::Wait},
    time::Timed,
};
use state::Channel;

/// A channel with room for `bound` values that are sent and not yet received.
///
/// ```
/// use weald::sync::{Wait, channel};
///
/// let (sender, receiver) = channel::bounded(1);
/// let thread = std::thread::spawn(move || {
///     for n in 0..3 {
///         sender.send(n).wait()?;
///     }
///     Ok::<(), channel::SendError<i32>>(())
/// });
/// let received: Vec<i32> = std::iter::from_fn(|| receiver.receive().wait().ok()).collect();
/// assert_eq!(received, [0, 1, 2]);
/// # thread.join().unwrap().unwrap();
/// ```
///
/// # Panics
/// If the bound is zero (see [`rendezvous`]) or more than 2^32 - 2.
#[track_caller]
pub fn bounded<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    let bound = u32::try_from(bound).ok().filter(|b| *b < u32::MAX);
    let bound = bound.and_then(NonZeroU32::new);
    let bound = bound.expect("a channel's bound is at least 1 and below 2^32 - 1");
    Channel::pair(bound.get())
}

/// A channel whose sends never wait. Its buffer grows as long as receivers are slower than senders.
///
/// ```
/// use weald::sync::channel;
///
/// let (sender, receiver) = channel::unbounded();
/// for number in 0..1_000 {
///     sender.try_send(number).unwrap();
/// }
/// drop(sender);
/// weald::block_on(async {
///     let mut sum = 0;
///     while let Ok(number) = receiver.receive().await {
///         sum += number;
///     }
///     assert_eq!(sum, 499_500);
/// });
/// ```
#[track_caller]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    Channel::pair(u32::MAX)
}

/// A channel without a buffer: a send waits until its value is received.
///
/// ```
/// use weald::sync::channel;
///
/// let (sender, receiver) = channel::rendezvous();
/// assert!(sender.try_send(1).is_err());
/// weald::block_on(async {
///     let sending = weald::spawn(async move { sender.send(2).await });
///     assert_eq!(receiver.receive().await, Ok(2));
///     assert!(sending.await.unwrap().is_ok());
/// });
/// ```
#[track_caller]
pub fn rendezvous<T>() -> (Sender<T>, Receiver<T>) {
    Channel::pair(0)
}

/// The sending side; any number of clones.
pub struct Sender<T> {
    channel: Handle<T>,
}

/// The receiving side; any number of clones. Each value goes to one of them.
pub struct Receiver<T> {
    channel: Handle<T>,
}

/// A pointer to the channel, for which a side counts one handle (*handles*, see [`Channel`]).
struct Handle<T> {
    channel: NonNull<Channel<T>>,
    /// The last handle drops values.
    values: PhantomData<Channel<T>>,
}

// SAFETY: any thread may use a channel of such values, and free it.
unsafe impl<T: std::marker::Send> std::marker::Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: std::marker::Send> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// The handle, for a side that counts one more.
    fn copy(&self) -> Handle<T> {
        Handle {
            channel: self.channel,
            values: PhantomData,
        }
    }
}

impl<T> Deref for Handle<T> {
    type Target = Channel<T>;

    #[inline(always)]
    fn deref(&self) -> &Channel<T> {
        // SAFETY: *handles*.
        unsafe { self.channel.as_ref() }
    }
}

impl<T> Channel<T> {
    #[track_caller]
    fn pair(bound: u32) -> (Sender<T>, Receiver<T>) {
        let channel = Box::new(Channel::new(bound, Location::caller()));
        let channel = Handle {
            channel: NonNull::from(Box::leak(channel)),
            values: PhantomData,
        };
        let sender = Sender {
            channel: channel.copy(),
        };
        (sender, Receiver { channel })
    }
}

impl<T> Sender<T> {
    /// Sends `value` once there is room. An event. Cancel-safe in this sense: if the wait is dropped before it
    /// is ready, the value either was sent, or is dropped with the wait.
    ///
    /// # Errors
    /// [`SendError`] with the value, if the channel is closed.
    #[inline]
    #[track_caller]
    pub fn send(&self, value: T) -> Waiting<Send<'_, T>> {
        Waiting::here(Send::new(&self.channel, value))
    }

    /// Sends `value` if there is room now (in a rendezvous channel: if a receiver waits).
    ///
    /// # Errors
    /// The value, with the reason why it was not sent.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.channel.try_send(value)
    }

    /// [`Sender::send`] with a time limit; see [`Timed`].
    #[track_caller]
    pub fn send_within(&self, duration: Duration, value: T) -> Timed<Send<'_, T>> {
        self.send(value).within(duration)
    }

    /// Closes the channel for both sides. Values in the buffer can still be received.
    pub fn close(&self) {
        self.channel.close();
    }

    /// Whether sends fail.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }

    /// How many values are in the buffer.
    pub fn len(&self) -> usize {
        self.channel.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many sends wait at this moment, including sends that have ended and are about to leave.
    pub fn waiting(&self) -> usize {
        self.channel.lock().senders.count()
    }

    /// Whether both ends belong to the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        self.channel.channel == other.channel.channel
    }

    /// Gives the channel a name for reports of what units wait for.
    pub fn set_name(&self, name: &str) {
        self.channel.set_name(Name::new(name));
    }
}

impl<T> Receiver<T> {
    /// Receives the oldest value once there is one. An event. Cancel-safe: if the wait is dropped before it is
    /// ready, no value is lost.
    ///
    /// # Errors
    /// [`Closed`] if the channel is closed and empty.
    #[inline]
    #[track_caller]
    pub fn receive(&self) -> Waiting<Receive<'_, T>> {
        Waiting::here(Receive::new(&self.channel))
    }

    /// Receives the oldest value, if there is one now (in a rendezvous channel: if a sender waits).
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_receive(&self) -> Result<T, TryReceiveError> {
        self.channel.try_receive()
    }

    /// [`Receiver::receive`] with a time limit; see [`Timed`].
    #[track_caller]
    pub fn receive_within(&self, duration: Duration) -> Timed<Receive<'_, T>> {
        self.receive().within(duration)
    }

    /// [`Receiver::receive`] until a point in time; see [`Timed`].
    #[track_caller]
    pub fn receive_until(&self, deadline: Instant) -> Timed<Receive<'_, T>> {
        self.receive().until(deadline)
    }

    /// Closes the channel for both sides. Values in the buffer can still be received.
    pub fn close(&self) {
        self.channel.close();
    }

    /// Whether sends fail.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }

    /// How many values are in the buffer.
    pub fn len(&self) -> usize {
        self.channel.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many receives wait at this moment, including receives that have ended and are about to leave.
    pub fn waiting(&self) -> usize {
        self.channel.lock().receivers.count()
    }

    /// Whether both ends belong to the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        self.channel.channel == other.channel.channel
    }

    /// Gives the channel a name for reports of what units wait for.
    pub fn set_name(&self, name: &str) {
        self.channel.set_name(Name::new(name));
    }

    /// The values, as they come, until the channel is closed and empty. Waits with the stack.
    #[track_caller]
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let site = Location::caller();
        std::iter::from_fn(move || {
            let receive = Waiting::at(Receive::new(&self.channel), Some(site));
            receive.wait().ok()
        })
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.channel.enter(|sides| &mut sides.senders);
        Sender {
            channel: self.channel.copy(),
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.channel.enter(|sides| &mut sides.receivers);
        Receiver {
            channel: self.channel.copy(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // SAFETY: *handles*: this one is the sender's.
        unsafe { Channel::leave(self.channel.channel, |sides| &mut sides.senders) };
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // SAFETY: *handles*: this one is the receiver's.
        unsafe { Channel::leave(self.channel.channel, |sides| &mut sides.receivers) };
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
