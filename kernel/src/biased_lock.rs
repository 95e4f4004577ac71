//! The gate to what a worker owns: a lock that costs its holder three plain instructions.
//!
//! The thread that holds a worker's right enters hundreds of millions of times a second; others (the
//! monitor, a foreign thread with a timer) a few times a second. So the lock is biased: the holder
//! only stores and loads, and an outsider pays for both with a heavy fence.
//!
//! States of the word: `epoch`, and whether an outsider is inside. Protocol:
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
pub(crate) struct Gate<T> {
    /// The epoch and the outsider bit. Written under `outsiders`.
    word: AtomicUsize,
    outsiders: Mutex<Tenures>,
    inside: UnsafeCell<T>,
}

// SAFETY: the protocol at the head of this file gives `T` to one thread at a time.
unsafe impl<T: Send> Sync for Gate<T> {}
// SAFETY: the flags belong to the gate.
unsafe impl<T: Send> Send for Gate<T> {}

/// The flags of the tenures. Each lives as long as the gate.
struct Tenures {
    /// That of the current tenure.
    current: NonNull<AtomicBool>,
    /// Those of tenures that are over, and whose threads will not knock again.
    spare: Vec<NonNull<AtomicBool>>,
    all: Vec<NonNull<AtomicBool>>,
}

impl Tenures {
    fn begin(&mut self) -> NonNull<AtomicBool> {
        self.current = self.spare.pop().unwrap_or_else(|| {
            let flag = NonNull::from(Box::leak(Box::new(AtomicBool::new(false))));
            self.all.push(flag);
            flag
        });
        self.current
    }
}

impl Drop for Tenures {
    fn drop(&mut self) {
        for flag in &self.all {
            // SAFETY: `begin` leaked it, and no thread knocks at a gate that is gone.
            drop(unsafe { Box::from_raw(flag.as_ptr()) });
        }
    }
}

/// The holder's tenure: with it a thread shows that it still holds the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    number: usize,
    /// Whether its thread is inside or looking whether it may. Written by that thread only.
    busy: NonNull<AtomicBool>,
}

// SAFETY: the flag lives as long as the gate, at which alone the epoch is of use.
unsafe impl Send for Epoch {}

impl Epoch {
    /// No tenure: nobody enters with it.
    pub(crate) const NONE: Epoch = Epoch {
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
pub(crate) struct Lost;

impl<T> Gate<T> {
    /// The gate and its first epoch.
    pub(crate) fn new(inside: T) -> (Gate<T>, Epoch) {
        let mut tenures = Tenures {
            current: NonNull::dangling(),
            spare: Vec::new(),
            all: Vec::new(),
        };
        let first = Epoch {
            number: 0,
            busy: tenures.begin(),
        };
        let gate = Gate {
            word: AtomicUsize::new(first.number),
            outsiders: Mutex::new(tenures),
            inside: UnsafeCell::new(inside),
        };
        (gate, first)
    }

    /// Lets the holder in. Called by the thread that was given `epoch`, outside the gate.
    #[inline(always)]
    pub(crate) fn enter(&self, epoch: Epoch) -> Result<Holder<'_, T>, Lost> {
        match self.try_enter(epoch) {
            Ok(()) => Ok(Holder { gate: self, epoch }),
            Err(word) => self.enter_slowly(word, epoch),
        }
    }

    /// One attempt; the error is the word that was in the way.
    #[inline(always)]
    fn try_enter(&self, epoch: Epoch) -> Result<(), usize> {
        epoch.busy().store(true, Ordering::Relaxed);
        barrier::light();
        // Acquire: pairs with the release store of an outsider that left: we see what it did.
        match self.word.load(Ordering::Acquire) {
            word if word == epoch.number => Ok(()),
            word => Err(word),
        }
    }

    #[cold]
    fn enter_slowly(&self, word: usize, epoch: Epoch) -> Result<Holder<'_, T>, Lost> {
        let mut word = word;
        loop {
            self.wait_outside(word, epoch)?;
            match self.try_enter(epoch) {
                Ok(()) => return Ok(Holder { gate: self, epoch }),
                Err(now) => word = now,
            }
        }
    }

    fn wait_outside(&self, word: usize, epoch: Epoch) -> Result<(), Lost> {
        // Release: pairs with the outsider's acquire load; nothing was touched, but keep one rule.
        epoch.busy().store(false, Ordering::Release);
        if word & !OUTSIDER != epoch.number {
            return Err(Lost);
        }
        // An outsider is inside; perhaps it ends this tenure before it leaves.
        drop(lock(&self.outsiders));
        Ok(())
    }

    /// The thread that was given `epoch`, and lost it, never enters with it again.
    pub(crate) fn end(&self, epoch: Epoch) {
        lock(&self.outsiders).spare.push(epoch.busy);
    }

    /// Lets another thread in. Any thread outside the gate; costs a heavy fence.
    pub(crate) fn enter_outside(&self) -> Outsider<'_, T> {
        let guard = lock(&self.outsiders);
        let leave_at = Epoch {
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
        Outsider {
            gate: self,
            leave_at,
            guard,
        }
    }
}

/// The holder, inside. Leaves when dropped.
pub(crate) struct Holder<'a, T> {
    gate: &'a Gate<T>,
    epoch: Epoch,
}

impl<T> Drop for Holder<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the outsider's acquire load of `busy`.
        self.epoch.busy().store(false, Ordering::Release);
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
    leave_at: Epoch,
    guard: MutexGuard<'a, Tenures>,
}

impl<T> Outsider<'_, T> {
    /// Ends the holder's tenure, and begins the one whose epoch is returned: the holder is told
    /// [`Lost`] at its next passage.
    pub(crate) fn take_over(&mut self) -> Epoch {
        self.leave_at = Epoch {
            number: self.leave_at.number.wrapping_add(EPOCH),
            busy: self.guard.begin(),
        };
        self.leave_at
    }

    /// Whether `epoch` is still the current tenure.
    pub(crate) fn is_current(&self, epoch: Epoch) -> bool {
        self.leave_at == epoch
    }
}

impl<T> Drop for Outsider<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the holder's acquire load in `enter`.
        self.gate
            .word
            .store(self.leave_at.number, Ordering::Release);
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
