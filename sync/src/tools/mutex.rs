//! The mutex: one unit at a time, which may hold it across waits.
//!
//! - A unit that finds it free takes it, even before the waiters: a lock that was handed over would be idle
//!   until its new owner runs. The release wakes the first waiter, which then tries again.
//! - No waiter starves: after it was passed over eight times, the lock is handed over to it.
//! - No poisoning: a guard that is dropped by a panic releases the lock. A unit that panics reports that by its
//!   exit. A program that must know whether the value is consistent keeps a flag in it.
//!
//! Rejected: a queue under the inner lock, which costs eight bytes and two exchanges more for each lock; strict
//! handoff, which makes a contended lock as slow as a wake.

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
    queue::{claim::Lost, offer::OfferNode, ticket::Ticket},
    runtime::reason::{Kind, Name, Reason},
};
use raw::MutexSlot;
pub(crate) use raw::RawMutex;

/// A value that one unit at a time may use.
///
/// ```
/// use weald::sync::{Mutex, Wait};
///
/// let counter = Mutex::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *counter.lock().wait() += 1);
///     }
/// });
/// assert_eq!(counter.into_inner(), 4);
/// ```
///
/// # Safety
/// *Guarded*: only the owner of the raw mutex touches the value.
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: *guarded*: the value moves between threads with the lock.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// The right to a mutex's value. Releases the mutex when dropped, on whatever thread that happens.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: a shared guard gives shared access to the value only.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// A free mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex {
            raw: RawMutex::new(Name::NONE),
            value: UnsafeCell::new(value),
        }
    }

    /// A free mutex with a name for reports of what units wait for. A program has room for 16,383 different
    /// names; a mutex that is given one more stays unnamed.
    pub fn named(name: &str, value: T) -> Mutex<T> {
        Mutex {
            raw: RawMutex::new(Name::new(name)),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and takes it. An event. Cancel-safe: a wait that is dropped leaves the
    /// mutex to the next waiter.
    ///
    /// What it returns is the wait, and not yet the guard, as the error "type `Waiting<Lock<..>>` cannot be
    /// dereferenced" says of `*mutex.lock() += 1`:
    ///
    /// ```
    /// use weald::sync::{Mutex, Wait};
    ///
    /// let mutex = Mutex::new(1);
    /// *mutex.lock().wait() += 1; // In code that is not async.
    /// weald::block_on(async {
    ///     *mutex.lock().await += 1;
    /// });
    /// assert_eq!(mutex.into_inner(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Waiting<Lock<'_, T>> {
        Waiting::here(Lock {
            mutex: self,
            node: OfferNode::with_slot(MutexSlot::uninit()),
        })
    }

    /// Takes the mutex if it is free now.
    // In a frame of its own, because it asks for the calling thread's unit: a thread that migrates may try on one OS
    // thread and then on another.
    #[inline(never)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then(|| MutexGuard { mutex: self })
    }

    /// Whether the mutex is held at this moment.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// The value. The exclusive borrow replaces the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex that it guards.
    pub(crate) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: *guarded*.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: *guarded*.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

/// The event of [`Mutex::lock`].
pub struct Lock<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    node: OfferNode<MutexSlot>,
}

impl<'a, T: ?Sized> Lock<'a, T> {
    #[inline(always)]
    fn node(self: Pin<&mut Self>) -> (&'a Mutex<T>, Pin<&mut OfferNode<MutexSlot>>) {
        crate::queue::list::project(self, |this| (this.mutex, &mut this.node))
    }
}

impl<'a, T: ?Sized> Branch for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    #[inline(always)]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mutex = self.mutex;
        match mutex.raw.try_hard() {
            true => Poll::Ready(MutexGuard { mutex }),
            false => Poll::Pending,
        }
    }

    #[inline]
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (mutex, node) = self.node();
        let mut listed = mutex.raw.listed();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if listed.take_or_set_waiters() {
            ticket.win(own);
            return Enrolled::Ready(MutexGuard { mutex });
        }
        listed.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    #[inline]
    fn again(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (mutex, node) = self.node();
        let mut listed = mutex.raw.listed();
        let own = match ticket.hold() {
            Ok(own) => own,
            Err(Lost) => return Enrolled::Lost,
        };
        if !listed.try_again(node) {
            drop(own);
            return Enrolled::Waits;
        }
        ticket.win(own);
        Enrolled::Ready(MutexGuard { mutex })
    }

    #[inline]
    fn is_polled(&self) -> bool {
        true
    }

    #[inline]
    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        MutexGuard { mutex: self.mutex }
    }

    #[inline]
    fn give_back(self: Pin<&mut Self>, _won: Won) {
        drop(MutexGuard { mutex: self.mutex });
    }

    #[inline]
    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (mutex, node) = self.node();
        if won.is_none() && node.is_bound() {
            let waker = mutex.raw.listed().retract(node);
            if let Some(waker) = waker {
                crate::queue::wake::wake(waker);
            }
        }
    }

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    #[inline(always)]
    fn drops_early(&self) -> bool {
        false
    }

    #[inline]
    fn reason(&self) -> Reason {
        Reason::new(Kind::Mutex, &self.mutex.raw).named(self.mutex.raw.name())
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
