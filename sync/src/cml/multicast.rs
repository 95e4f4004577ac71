//! CML's multicast channel: each message goes to all ports.
//!
//! The messages are a chain: each link is a latch that is set to a message and the next link. The channel
//! points to the last link, which is not set yet; a port points to the link that it reads next. So a message
//! costs one link, however many ports there are; copying a port copies a pointer; and the last port that reads
//! a message frees it.

use std::{fmt, sync::Arc};

use crate::{
    combinators::{Carried, pinned::Both},
    event::{Event, awaitable},
    latch::{Latch, LatchWait},
    queue::spin_lock::SpinLock,
    tools::channel::Closed,
};

/// The sending side; any number of clones. When the last one is dropped, ports that have read everything get
/// [`Closed`].
///
/// ```
/// use weald::sync::{Wait, cml::Multicast};
///
/// let channel = Multicast::new();
/// let mut early = channel.port();
/// channel.send(1);
/// let mut late = channel.port();
/// let mut copy = early.clone();
/// channel.send(2);
/// assert_eq!((early.receive().wait(), early.receive().wait()), (Ok(1), Ok(2)));
/// assert_eq!(copy.receive().wait(), Ok(1));
/// assert_eq!(late.receive().wait(), Ok(2));
/// ```
pub struct Multicast<T> {
    last: Arc<Last<T>>,
}

/// A receiving side. It gets all messages that are sent after its creation, and reads them at its own pace. A
/// clone reads the same messages from there on. Each reader has a port of its own.
pub struct Port<T> {
    next: Arc<Link<T>>,
}

type Link<T> = Latch<Message<T>>;

/// The last link, which is not set.
struct Last<T>(SpinLock<Arc<Link<T>>>);

/// What a link is set to: a message and the next link. None: the end.
pub struct Message<T>(Option<(T, Arc<Link<T>>)>);

impl<T> Multicast<T> {
    /// A channel without ports.
    pub fn new() -> Multicast<T> {
        let link = Arc::new(Latch::new());
        Multicast {
            last: Arc::new(Last(SpinLock::new(link))),
        }
    }

    /// A port for the messages that are sent from now on.
    pub fn port(&self) -> Port<T> {
        Port {
            next: Arc::clone(&self.last.0.lock()),
        }
    }

    /// Sends `message` to all ports. Never waits.
    pub fn send(&self, message: T) {
        let next = Arc::new(Latch::new());
        let link = std::mem::replace(&mut *self.last.0.lock(), Arc::clone(&next));
        link.set(Message(Some((message, next))));
    }
}

impl<T: Clone> Port<T> {
    /// The event of reading the next message. If another event is chosen, the message stays the next one.
    ///
    /// # Errors
    /// [`Closed`] if everything was read and there is no sender left.
    pub fn receive(&mut self) -> PortReceive<'_, T> {
        PortReceive(self)
    }

    /// Reads the next message, if it was sent.
    ///
    /// # Errors
    /// [`Closed`] as for [`Port::receive`].
    pub fn try_receive(&mut self) -> Option<Result<T, Closed>> {
        let Some((message, next)) = &self.next.value()?.0 else {
            return Some(Err(Closed));
        };
        let (message, next) = (message.clone(), Arc::clone(next));
        self.next = next;
        Some(Ok(message))
    }
}

/// The event of [`Port::receive`].
#[must_use = "an event does nothing unless it is synced"]
pub struct PortReceive<'a, T>(&'a mut Port<T>);

impl<'a, T: Clone> Event for PortReceive<'a, T> {
    type Output = Result<T, Closed>;
    type Branch = Both<LatchWait<Message<T>>, Carried<&'a mut Port<T>>>;

    fn open(self) -> Self::Branch {
        let wait = LatchWait::new(Arc::clone(&self.0.next));
        Both::new(wait, Carried::new(self.0))
    }

    fn conclude((port, ()): (&'a mut Port<T>, ())) -> Result<T, Closed> {
        port.try_receive().expect("the link is set")
    }
}

awaitable!(['a, T: Clone] PortReceive<'a, T>);

impl<T> Drop for Last<T> {
    fn drop(&mut self) {
        let link = Arc::clone(&self.0.lock());
        link.set(Message(None));
    }
}

impl<T> Drop for Message<T> {
    /// Frees one link after the other: freeing a long unread chain recursively would overflow the stack.
    fn drop(&mut self) {
        let mut sent = self.0.take();
        while let Some((_message, link)) = sent {
            let link = Arc::into_inner(link);
            sent = link.and_then(|mut link| link.value_mut().take()?.0.take());
        }
    }
}

impl<T> Default for Multicast<T> {
    fn default() -> Multicast<T> {
        Multicast::new()
    }
}

impl<T> Clone for Multicast<T> {
    fn clone(&self) -> Multicast<T> {
        Multicast {
            last: Arc::clone(&self.last),
        }
    }
}

impl<T> Clone for Port<T> {
    fn clone(&self) -> Port<T> {
        Port {
            next: Arc::clone(&self.next),
        }
    }
}

impl<T> fmt::Debug for Multicast<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multicast").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for PortReceive<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PortReceive").field(self.0).finish()
    }
}

impl<T> fmt::Debug for Port<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}
