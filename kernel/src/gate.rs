//! The gate to what a worker owns: a lock that costs its holder three plain instructions.
//!
//! The thread that holds a worker's right enters hundreds of millions of times a second; others (the
//! monitor, a foreign thread with a timer) a few times a second. So the lock is biased: the holder
//! only stores and loads, and an outsider pays for both with a heavy fence.
//!
//! States of the word: `epoch`, and whether an outsider is inside. Protocol:
//! - holder:   `busy = true`; light fence; the word must be (my epoch, no outsider); act; `busy = false`.
//! - outsider: take the mutex; set the word's `OUTSIDER` bit; heavy fence; wait until `busy` is false; act;
//!   clear the bit, or move to the next epoch if the right was taken over; release the mutex.
//!
//! Why only one is inside: the two fences order "store, then load" on both sides, so either the
//! holder sees the bit and backs out, or the outsider sees `busy` and waits. A thread that lost its
//! right sees another epoch for ever, and is told so.
//!
//! Invariant: nothing that runs while inside calls back into the gate, blocks, or runs user code.
//!
//! Known flaw: a holder that the system preempts while inside makes outsiders wait for it, up to some
//! milliseconds. Measured: about 1 ns a passage; an outsider's 0.5 to 5 µs.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
};

use crate::sys::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, barrier, lock, yield_now};

/// Set while an outsider is inside or about to be.
const OUTSIDER: usize = 1;
/// One epoch, in units of the word.
const EPOCH: usize = 2;

/// Owns `T` on behalf of whoever is inside.
pub(crate) struct Gate<T> {
    /// Whether the holder is inside or looking whether it may. Written by the holder only.
    busy: AtomicBool,
    /// The epoch and the outsider bit. Written under `outsiders`.
    word: AtomicUsize,
    outsiders: Mutex<()>,
    inside: UnsafeCell<T>,
}

// SAFETY: the protocol at the head of this file gives `T` to one thread at a time.
unsafe impl<T: Send> Sync for Gate<T> {}

/// The number of the holder's tenure: with it a thread shows that it still holds the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(usize);

impl Epoch {
    /// No tenure: no holder ever has this one.
    pub(crate) const NONE: Epoch = Epoch(OUTSIDER);
}

/// The right was taken over by another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

impl<T> Gate<T> {
    /// The gate and its first epoch.
    pub(crate) fn new(inside: T) -> (Gate<T>, Epoch) {
        let gate = Gate {
            busy: AtomicBool::new(false),
            word: AtomicUsize::new(0),
            outsiders: Mutex::new(()),
            inside: UnsafeCell::new(inside),
        };
        (gate, Epoch(0))
    }

    /// Lets the holder in. Called by the thread that was given `epoch`, outside the gate.
    #[inline(always)]
    pub(crate) fn enter(&self, epoch: Epoch) -> Result<Holder<'_, T>, Lost> {
        match self.try_enter(epoch) {
            Ok(()) => Ok(Holder { gate: self }),
            Err(word) => self.enter_slowly(word, epoch),
        }
    }

    /// One attempt; the error is the word that was in the way.
    #[inline(always)]
    fn try_enter(&self, epoch: Epoch) -> Result<(), usize> {
        self.busy.store(true, Ordering::Relaxed);
        barrier::light();
        // Acquire: pairs with the release store of an outsider that left: we see what it did.
        match self.word.load(Ordering::Acquire) {
            word if word == epoch.0 => Ok(()),
            word => Err(word),
        }
    }

    #[cold]
    fn enter_slowly(&self, word: usize, epoch: Epoch) -> Result<Holder<'_, T>, Lost> {
        let mut word = word;
        loop {
            self.wait_outside(word, epoch)?;
            match self.try_enter(epoch) {
                Ok(()) => return Ok(Holder { gate: self }),
                Err(now) => word = now,
            }
        }
    }

    fn wait_outside(&self, word: usize, epoch: Epoch) -> Result<(), Lost> {
        // Release: pairs with the outsider's acquire load; nothing was touched, but keep one rule.
        self.busy.store(false, Ordering::Release);
        if word & !OUTSIDER != epoch.0 {
            // The new epoch is published before the monitor has finished reading which job this
            // thread ran; that job must live until then, so wait for it.
            drop(lock(&self.outsiders));
            return Err(Lost);
        }
        drop(lock(&self.outsiders));
        Ok(())
    }

    /// Lets another thread in. Any thread outside the gate; costs a heavy fence.
    pub(crate) fn enter_outside(&self) -> Outsider<'_, T> {
        let guard = lock(&self.outsiders);
        let epoch = self.word.load(Ordering::Relaxed);
        self.word.store(epoch | OUTSIDER, Ordering::Relaxed);
        barrier::heavy();
        // Acquire: pairs with the holder's release store when it leaves: we see what it did.
        while self.busy.load(Ordering::Acquire) {
            yield_now();
        }
        Outsider {
            gate: self,
            leave_at: epoch,
            _guard: guard,
        }
    }
}

/// The holder, inside. Leaves when dropped.
pub(crate) struct Holder<'a, T> {
    gate: &'a Gate<T>,
}

impl<T> Drop for Holder<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the outsider's acquire load of `busy`.
        self.gate.busy.store(false, Ordering::Release);
    }
}

impl<T> Deref for Holder<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.gate.inside.get() }
    }
}

impl<T> DerefMut for Holder<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.gate.inside.get() }
    }
}

/// Another thread, inside. Leaves when dropped.
pub(crate) struct Outsider<'a, T> {
    gate: &'a Gate<T>,
    leave_at: usize,
    _guard: MutexGuard<'a, ()>,
}

impl<T> Outsider<'_, T> {
    /// Ends the holder's tenure, and begins the one whose epoch is returned: the holder is told
    /// [`Lost`] at its next passage.
    pub(crate) fn take_over(&mut self) -> Epoch {
        self.leave_at = self.leave_at.wrapping_add(EPOCH);
        Epoch(self.leave_at)
    }

    /// Whether `epoch` is still the current tenure.
    pub(crate) fn is_current(&self, epoch: Epoch) -> bool {
        self.leave_at == epoch.0
    }
}

impl<T> Drop for Outsider<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the holder's acquire load in `enter`.
        self.gate.word.store(self.leave_at, Ordering::Release);
    }
}

impl<T> Deref for Outsider<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.gate.inside.get() }
    }
}

impl<T> DerefMut for Outsider<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.gate.inside.get() }
    }
}
