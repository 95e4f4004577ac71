//! The read-write lock: many readers, or one writer.
//!
//! - Strictly first in first out: no unit takes the lock past a waiter, so readers do not starve a writer, nor
//!   writers a reader. Consecutive waiting readers enter together.
//! - The lock is handed over to the waiter.
//! - A unit that takes a second read guard while a writer waits deadlocks with itself: hold one guard.
//! - No poisoning: a guard that is dropped by a panic releases the lock.
//!
//! Each operation takes O(1), and O(1) for each waiter that it wakes.

#![allow(unsafe_code)]

mod raw;

use std::{
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{list, offer::OfferNode, ticket::Ticket},
    runtime::reason::{Name, Reason},
};
use raw::{Access, RawRwLock, RwLockWaiter};

/// A value that many units may read at a time, or one may change.
///
/// ```
/// use weald::sync::{RwLock, Wait};
///
/// let prices = RwLock::new(vec![1, 2, 3]);
/// let (one, other) = (prices.read().wait(), prices.read().wait());
/// assert_eq!(one[0] + other[1], 3);
/// drop((one, other));
/// prices.write().wait().push(4);
/// assert_eq!(prices.into_inner().len(), 4);
/// ```
///
/// An idle lock has 32 bytes beside its value.
///
/// # Safety
/// *Guarded*: only the holder of a write guard changes the value, and only the holder of a guard reads it. The
/// raw lock ensures that while there is a write guard there is no other guard.
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

// SAFETY: *guarded*: the value moves between threads with the lock.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: *guarded*: readers in several threads share the value.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// The right to read a lock's value. Ends when dropped, on whatever thread that happens.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

/// The right to change a lock's value. Ends when dropped, on whatever thread that happens.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

// SAFETY: a shared guard gives shared access to the value only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// A free lock.
    pub fn new(value: T) -> RwLock<T> {
        RwLock {
            raw: RawRwLock::new(Name::NONE),
            value: UnsafeCell::new(value),
        }
    }

    /// A free lock with a name for reports of what units wait for.
    pub fn named(name: &str, value: T) -> RwLock<T> {
        RwLock {
            raw: RawRwLock::new(Name::new(name)),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no unit writes, and no earlier writer waits. An event. Cancel-safe: a wait that is dropped
    /// leaves its turn to those behind it.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Waiting<Read<'_, T>> {
        Waiting::here(Read(RwLockWait::new(self, Access::Read)))
    }

    /// Waits until no unit reads or writes, and no earlier waiter is left. An event. Cancel-safe as
    /// [`RwLock::read`].
    #[inline]
    #[track_caller]
    pub fn write(&self) -> Waiting<Write<'_, T>> {
        Waiting::here(Write(RwLockWait::new(self, Access::Write)))
    }

    /// Takes the right to read if no unit writes and none waits.
    // In a frame of its own, because it asks for the calling thread's unit: a thread that migrates may try on one OS
    // thread and then on another.
    #[inline(never)]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.raw
            .try_enter(Access::Read)
            .then(|| RwLockReadGuard { lock: self })
    }

    /// Takes the right to write if no unit reads or writes, and none waits.
    // In a frame of its own, as `try_read`.
    #[inline(never)]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.raw
            .try_enter(Access::Write)
            .then(|| RwLockWriteGuard { lock: self })
    }

    /// The value. The exclusive borrow replaces the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Continues as a reader, without letting a writer in between. Readers at the front of the queue also enter.
    pub fn downgrade(this: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let lock = this.lock;
        std::mem::forget(this);
        lock.raw.downgrade();
        RwLockReadGuard { lock }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: *guarded*.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: *guarded*.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: *guarded*.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.leave(Access::Read);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.leave(Access::Write);
    }
}

/// The event of [`RwLock::read`].
pub struct Read<'a, T: ?Sized>(RwLockWait<'a, T>);

/// The event of [`RwLock::write`].
pub struct Write<'a, T: ?Sized>(RwLockWait<'a, T>);

/// The common part of both events.
struct RwLockWait<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    mode: Access,
    node: OfferNode<RwLockWaiter>,
}

impl<'a, T: ?Sized> RwLockWait<'a, T> {
    fn new(lock: &'a RwLock<T>, mode: Access) -> RwLockWait<'a, T> {
        RwLockWait {
            lock,
            mode,
            node: OfferNode::with_slot(RwLockWaiter::new(mode)),
        }
    }

    fn attempt(&self) -> bool {
        self.lock.raw.try_enter(self.mode)
    }
}

/// The steps of both events, which differ only in the guard.
macro_rules! branch {
    ($event:ident, $guard:ident) => {
        impl<'a, T: ?Sized> $event<'a, T> {
            fn node(self: Pin<&mut Self>) -> (&'a RwLock<T>, Pin<&mut OfferNode<RwLockWaiter>>) {
                list::project(self, |this| (this.0.lock, &mut this.0.node))
            }
        }

        impl<'a, T: ?Sized> Branch for $event<'a, T> {
            type Output = $guard<'a, T>;

            fn attempt(self: Pin<&mut Self>, _: u32, _: &mut Context<'_>) -> Poll<Self::Output> {
                match self.0.attempt() {
                    true => Poll::Ready($guard { lock: self.0.lock }),
                    false => Poll::Pending,
                }
            }

            fn enrol(
                self: Pin<&mut Self>,
                _base: u32,
                ticket: &Ticket<'_>,
                _cx: &mut Context<'_>,
            ) -> Enrolled<Self::Output> {
                let mode = self.0.mode;
                let (lock, node) = self.node();
                match lock.raw.enrol(mode, node, ticket) {
                    Enrolled::Waits => Enrolled::Waits,
                    Enrolled::Lost => Enrolled::Lost,
                    Enrolled::Ready(()) => Enrolled::Ready($guard { lock }),
                }
            }

            fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
                $guard { lock: self.0.lock }
            }

            fn give_back(self: Pin<&mut Self>, won: Won) {
                drop(self.collect(won));
            }

            fn settle(self: Pin<&mut Self>, won: Option<u32>) {
                let (lock, node) = self.node();
                if won.is_none() && node.is_bound() {
                    lock.raw.retract(node);
                }
            }

            fn reason(&self) -> Reason {
                self.0.lock.raw.reason()
            }
        }
    };
}

branch!(Read, RwLockReadGuard);
branch!(Write, RwLockWriteGuard);

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_tuple("RwLock").field(&&*guard).finish(),
            None => f.write_str("RwLock(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
