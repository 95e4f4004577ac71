//! The inner lock: guards the state of one tool for a few instructions, never across a wait.
//!
//! Invariants:
//! - No user code runs while it is held: wakers are cloned before and woken after. The one exception is the global
//!   allocator, which runs under the lock when the buffer of a channel or of a mailbox grows, or all waits of a tool
//!   end at once: an allocator that uses the same tool never returns (docs/user-code.md).
//! - Its holder takes no second inner lock.
//!
//! So a thread that finds it held spins for a moment, and lets others run if the holder was preempted.
//! Rejected: the mutex of `std`, which costs eight bytes and a second atomic exchange at each release.

#![allow(unsafe_code)]

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::AtomicU16,
};

use crate::sys::{AtomicU32, MutPtr, Ordering, UnsafeCell, relax};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// A state, and the spin lock that guards it.
///
/// # Safety
/// *Exclusive*: only a [`SpinGuard`] touches the state, and there is one guard at a time: it exists from the
/// exchange of `FREE` for `HELD` to the store of `FREE`.
pub(crate) struct SpinLock<S> {
    word: AtomicU32,
    /// See [`SpinLock::tag`]. It lies where there would be a gap before most states.
    tag: AtomicU16,
    state: UnsafeCell<S>,
}

// SAFETY: *exclusive*; the state moves between threads with the lock.
unsafe impl<S: Send> Send for SpinLock<S> {}
// SAFETY: as above.
unsafe impl<S: Send> Sync for SpinLock<S> {}

/// The right to the state; releases the lock when dropped.
pub(crate) struct SpinGuard<'a, S> {
    lock: &'a SpinLock<S>,
    // Some until the guard is dropped; loom checks that the access ends before the release.
    access: Option<MutPtr<S>>,
}

impl<S> SpinLock<S> {
    #[cfg(not(loom))]
    pub(crate) const fn new(state: S) -> SpinLock<S> {
        SpinLock {
            word: AtomicU32::new(FREE),
            tag: AtomicU16::new(0),
            state: UnsafeCell::new(state),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(state: S) -> SpinLock<S> {
        SpinLock {
            word: AtomicU32::new(FREE),
            tag: AtomicU16::new(0),
            state: UnsafeCell::new(state),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> SpinGuard<'_, S> {
        // Acquire: pairs with the release in the guard's drop.
        let taken =
            self.word
                .compare_exchange_weak(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            self.lock_late();
        }
        SpinGuard {
            lock: self,
            access: Some(self.state.get_mut()),
        }
    }

    #[cold]
    fn lock_late(&self) {
        let mut round = 0;
        loop {
            // A load before the exchange, so that spinning threads share the cache line. In a model a load may
            // see the past for ever.
            let free = cfg!(loom) || self.word.load(Ordering::Relaxed) == FREE;
            // An exchange that fails writes nothing: in a model a swap could hide the release for ever.
            let exchange =
                || (self.word).compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
            if free && exchange().is_ok() {
                return;
            }
            relax(&mut round);
        }
    }

    /// A number beside the state, zero at first, which is read and written without the lock, and guards nothing.
    #[inline(always)]
    pub(crate) fn tag(&self) -> u16 {
        self.tag.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tag(&self, tag: u16) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    pub(crate) fn into_inner(self) -> S {
        self.state.into_inner()
    }
}

impl<'a, S> SpinGuard<'a, S> {
    /// The lock that it guards.
    pub(crate) fn lock(&self) -> &'a SpinLock<S> {
        self.lock
    }
}

impl<S> Deref for SpinGuard<'_, S> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        let access = self
            .access
            .as_ref()
            .expect("a guard has its access until it is dropped");
        // SAFETY: *exclusive*.
        unsafe { access.deref() }
    }
}

impl<S> DerefMut for SpinGuard<'_, S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut S {
        let access = self
            .access
            .as_ref()
            .expect("a guard has its access until it is dropped");
        // SAFETY: *exclusive*.
        unsafe { access.deref() }
    }
}

impl<S> Drop for SpinGuard<'_, S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.access = None;
        // Release: pairs with the acquire in `lock`.
        self.lock.word.store(FREE, Ordering::Release);
    }
}
