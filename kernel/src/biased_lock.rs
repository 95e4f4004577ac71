//! The gate to what a worker owns: a lock that costs its holder three plain instructions.
//!
//! The thread that holds a worker's right enters hundreds of millions of times a second; others (the
//! monitor, a foreign thread with a timer) a few times a second. So the lock is biased: the holder
//! only stores and loads, and an outsider pays for both with a heavy fence.
//!
//! States of the word: `lease`, and whether an outsider is inside. Protocol:
//! - holder:   its `busy = true`; light fence; the word must be (my epoch, no outsider); act; `busy = false`.
//! - outsider: take the mutex; set the word's `OUTSIDER` bit; heavy fence; wait until `busy` is false; act;
//!   clear the bit, or move to the next epoch if the right was taken over; release the mutex.
//!
//! Every tenure has a `busy` of its own, and an outsider waits for that of the current one: a thread
//! that lost its right writes to its own until it is told, and with one flag for all would hide that
//! the new holder is inside.
//!
//! Why only one is inside: the two fences order "store, then load" on both sides, so either the
//! holder sees the bit and backs out, or the outsider sees `busy` and waits. A thread that lost its
//! right sees another epoch for ever, and is told so.
//!
//! Invariant: nothing that runs while inside calls back into the gate, blocks, or runs user code.
//!
//! Known flaw: a holder that the system preempts while inside makes outsiders wait for it, up to some
//! milliseconds.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use crate::sys::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, barrier, lock, yield_now};

/// Set while an outsider is inside or about to be.
const OUTSIDER: usize = 1;
/// One epoch, in units of the word.
const EPOCH: usize = 2;

/// Owns `T` on behalf of whoever is inside.
pub(crate) struct BiasedLock<T> {
    /// The epoch and the outsider bit. Written under `foreign`.
    word: AtomicUsize,
    foreign: Mutex<Leases>,
    core: UnsafeCell<T>,
}

// SAFETY: the protocol at the head of this file gives `T` to one thread at a time.
unsafe impl<T: Send> Sync for BiasedLock<T> {}
// SAFETY: the flags belong to the gate.
unsafe impl<T: Send> Send for BiasedLock<T> {}

/// The flags of the tenures. Each lives as long as the gate.
struct Leases {
    /// That of the current tenure.
    current: NonNull<AtomicBool>,
    /// Those of tenures that are over, and whose threads will not knock again.
    spare: Vec<NonNull<AtomicBool>>,
    all: Vec<NonNull<AtomicBool>>,
}

impl Leases {
    fn begin(&mut self) -> NonNull<AtomicBool> {
        self.current = self.spare.pop().unwrap_or_else(|| {
            let flag = NonNull::from(Box::leak(Box::new(AtomicBool::new(false))));
            self.all.push(flag);
            flag
        });
        self.current
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        for flag in &self.all {
            // SAFETY: `begin` leaked it, and no thread knocks at a gate that is gone.
            drop(unsafe { Box::from_raw(flag.as_ptr()) });
        }
    }
}

/// The holder's tenure: with it a thread shows that it still holds the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    number: usize,
    /// Whether its thread is inside or looking whether it may. Written by that thread only.
    busy: NonNull<AtomicBool>,
}

// SAFETY: the flag lives as long as the gate, at which alone the epoch is of use.
unsafe impl Send for Lease {}

impl Lease {
    /// No tenure: nobody enters with it.
    pub(crate) const NONE: Lease = Lease {
        number: usize::MAX & !OUTSIDER,
        busy: NonNull::dangling(),
    };

    #[inline(always)]
    fn busy(&self) -> &AtomicBool {
        // SAFETY: the flag lives as long as the gate that made the epoch.
        unsafe { self.busy.as_ref() }
    }
}

/// The right was taken over by another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revoked;

impl<T> BiasedLock<T> {
    /// The gate and its first epoch.
    pub(crate) fn new(core: T) -> (BiasedLock<T>, Lease) {
        let mut leases = Leases {
            current: NonNull::dangling(),
            spare: Vec::new(),
            all: Vec::new(),
        };
        let first = Lease {
            number: 0,
            busy: leases.begin(),
        };
        let core = BiasedLock {
            word: AtomicUsize::new(first.number),
            foreign: Mutex::new(leases),
            core: UnsafeCell::new(core),
        };
        (core, first)
    }

    /// Lets the holder in. Called by the thread that was given `lease`, outside the gate.
    #[inline(always)]
    pub(crate) fn enter(&self, lease: Lease) -> Result<OwnerGuard<'_, T>, Revoked> {
        match self.try_enter(lease) {
            Ok(()) => Ok(OwnerGuard { core: self, lease }),
            Err(word) => self.enter_slowly(word, lease),
        }
    }

    /// One attempt; the error is the word that was in the way.
    #[inline(always)]
    fn try_enter(&self, lease: Lease) -> Result<(), usize> {
        lease.busy().store(true, Ordering::Relaxed);
        barrier::light();
        // Acquire: pairs with the release store of an outsider that left: we see what it did.
        match self.word.load(Ordering::Acquire) {
            word if word == lease.number => Ok(()),
            word => Err(word),
        }
    }

    #[cold]
    fn enter_slowly(&self, word: usize, lease: Lease) -> Result<OwnerGuard<'_, T>, Revoked> {
        let mut word = word;
        loop {
            self.wait_outside(word, lease)?;
            match self.try_enter(lease) {
                Ok(()) => return Ok(OwnerGuard { core: self, lease }),
                Err(now) => word = now,
            }
        }
    }

    fn wait_outside(&self, word: usize, lease: Lease) -> Result<(), Revoked> {
        // Release: pairs with the outsider's acquire load; nothing was touched, but keep one rule.
        lease.busy().store(false, Ordering::Release);
        if word & !OUTSIDER != lease.number {
            return Err(Revoked);
        }
        // An outsider is inside; perhaps it ends this tenure before it leaves.
        drop(lock(&self.foreign));
        Ok(())
    }

    /// The thread that was given `lease`, and lost it, never enters with it again.
    pub(crate) fn end(&self, lease: Lease) {
        lock(&self.foreign).spare.push(lease.busy);
    }

    /// Lets another thread in. Any thread outside the gate; costs a heavy fence.
    pub(crate) fn enter_foreign(&self) -> ForeignGuard<'_, T> {
        let guard = lock(&self.foreign);
        let leave_at = Lease {
            number: self.word.load(Ordering::Relaxed),
            busy: guard.current,
        };
        self.word
            .store(leave_at.number | OUTSIDER, Ordering::Relaxed);
        barrier::heavy();
        // Acquire: pairs with the holder's release store when it leaves: we see what it did.
        while leave_at.busy().load(Ordering::Acquire) {
            yield_now();
        }
        ForeignGuard {
            core: self,
            leave_at,
            guard,
        }
    }
}

/// The holder, inside. Leaves when dropped.
pub(crate) struct OwnerGuard<'a, T> {
    core: &'a BiasedLock<T>,
    lease: Lease,
}

impl<T> Drop for OwnerGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the outsider's acquire load of `busy`.
        self.lease.busy().store(false, Ordering::Release);
    }
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.core.core.get() }
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.core.core.get() }
    }
}

/// Another thread, inside. Leaves when dropped.
pub(crate) struct ForeignGuard<'a, T> {
    core: &'a BiasedLock<T>,
    leave_at: Lease,
    guard: MutexGuard<'a, Leases>,
}

impl<T> ForeignGuard<'_, T> {
    /// Ends the holder's tenure, and begins the one whose epoch is returned: the holder is told
    /// [`Revoked`] at its next passage.
    pub(crate) fn revoke(&mut self) -> Lease {
        self.leave_at = Lease {
            number: self.leave_at.number.wrapping_add(EPOCH),
            busy: self.guard.begin(),
        };
        self.leave_at
    }

    /// Whether `lease` is still the current tenure.
    pub(crate) fn is_current(&self, lease: Lease) -> bool {
        self.leave_at == lease
    }
}

impl<T> Drop for ForeignGuard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the holder's acquire load in `enter`.
        self.core
            .word
            .store(self.leave_at.number, Ordering::Release);
    }
}

impl<T> Deref for ForeignGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.core.core.get() }
    }
}

impl<T> DerefMut for ForeignGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.core.core.get() }
    }
}
