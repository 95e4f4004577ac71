//! The biased lock around a worker's core: it costs its owner three plain instructions.
//!
//! The thread that holds a worker's lease locks hundreds of millions of times a second; foreign threads (the
//! monitor, a trim) a few times a second. So the lock is biased: the owner only stores and
//! loads, and a foreign thread pays for both with a heavy fence.
//!
//! After Dave Dice's "Quickly Reacquirable Locks", which are biased to one thread until another revokes the bias, and
//! BRAVO (Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", 2019), where a writer revokes the readers'
//! bias and waits until they have left. Here the bias is a [`Lease`]. A foreign thread either excludes the owner for a
//! moment or [revokes](ForeignGuard::revoke) the lease for good. Either costs it the heavy half of an asymmetric fence
//! ([`barrier`]).
//!
//! The word holds the number of the current lease and a bit for a foreign thread. Protocol:
//! - owner: set its lease's `busy`; light fence; the word must be (its lease, no foreign thread); act; clear `busy`.
//!   Where the system has no asymmetric fence, the word also has `FENCED`. Then this attempt fails, and the slow path
//!   repeats it with a full fence; so the fast path need not ask which fence it takes.
//! - foreign thread: take the mutex; set the word's `FOREIGN` bit; heavy fence; wait until the lease's `busy` is
//!   clear; act; clear the bit, or install the next lease if it revoked the current one; release the mutex.
//!
//! Each lease has a `busy` flag of its own, and a foreign thread waits for the current lease's. Until a thread notices
//! that its lease was revoked, it writes to its own old flag. If all leases shared a flag, such a write could hide that
//! the new owner is inside.
//!
//! Why only one thread is inside: the two fences order "store, then load" on both sides, so either the owner sees
//! the bit and backs out, or the foreign thread sees `busy` and waits. A thread whose lease was revoked sees
//! another number forever, and gets [`Revoked`].
//!
//! Invariant: nothing that runs inside locks again, blocks, or runs user code. A thread may stay inside over a switch
//! to another stack: the first thing that runs there leaves ([`still_inside`](BiasedLock::still_inside)).
//!
//! Known flaw: if the system preempts an owner while it is inside, foreign threads wait for it, up to some
//! milliseconds. If it preempts a foreign thread, the owner waits; so a detached thread, which may have a low priority,
//! starts its timers without the lock (docs/decisions/0033-a-foreign-timer-arrives.md).

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use crate::sys::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, barrier, lock, yield_now};

/// Set while a foreign thread is inside or about to be.
const FOREIGN: usize = 1;
/// Set when the lock is created, and never cleared, if the owner needs a full fence.
const FENCED: usize = 2;
/// The step from one lease's number to the next.
const LEASE: usize = 4;

/// Which fence the owner of a lock needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerFence {
    /// None: the foreign thread's fence acts on the owner's thread, too.
    Light,
    /// A full one.
    Full,
}

/// A lock that is biased to the thread with the current lease. See the head of this file.
///
/// # Safety
/// *Owner*: a thread enters with a lease that this lock has issued to it and that it has not given back, and while it
/// is not inside already; otherwise there could be two `&mut` to the value. The lock issues a lease to one thread at a
/// time: the one that the worker is given to. The thread keeps it in its context and in its worker loop, where it
/// stands beside the worker, and copies of it do not leave the thread. That a thread is not inside follows from the
/// invariant at the head of this file; in a debug build each entry checks it.
pub(crate) struct BiasedLock<T> {
    /// The number of the current lease, and the bits `FOREIGN` and `FENCED`. Written under `foreign`.
    word: AtomicUsize,
    foreign: Mutex<Leases>,
    value: UnsafeCell<T>,
}

// SAFETY: the protocol at the head of this file gives `T` to one thread at a time.
unsafe impl<T: Send> Sync for BiasedLock<T> {}
// SAFETY: the flags belong to the lock.
unsafe impl<T: Send> Send for BiasedLock<T> {}

/// A `busy` flag. Its owner writes it at each step, and so does the owner of the next worker with its own.
type Busy = crate::memory::cache_padded::CachePadded<AtomicBool>;

/// The `busy` flags of the leases. Each flag lives as long as the lock.
struct Leases {
    /// The current lease's.
    current: NonNull<Busy>,
    /// The flags of leases that are over, and whose threads will not use them again.
    spare: Vec<NonNull<Busy>>,
    all: Vec<NonNull<Busy>>,
}

impl Leases {
    /// The flag of a new lease.
    fn issue(&mut self) -> NonNull<Busy> {
        self.current = self.spare.pop().unwrap_or_else(|| {
            let flag = NonNull::from(Box::leak(Box::new(Busy::from(AtomicBool::new(false)))));
            self.all.push(flag);
            flag
        });
        self.current
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        for flag in &self.all {
            // SAFETY: `issue` leaked it, and no thread uses a lock that is gone.
            drop(unsafe { Box::from_raw(flag.as_ptr()) });
        }
    }
}

/// The owner's lease: a thread enters with it for as long as it is not revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    number: usize,
    /// Whether the lease's thread is inside or trying to enter. Written by that thread only.
    busy: NonNull<Busy>,
}

// SAFETY: the flag lives as long as the lock, and the lease is used with that lock only.
unsafe impl Send for Lease {}

impl Lease {
    /// No lease: no thread enters with it.
    pub(crate) const NONE: Lease = Lease {
        number: usize::MAX & !(FOREIGN | FENCED),
        busy: NonNull::dangling(),
    };

    /// Whether the lease's thread, which calls this, is inside.
    pub(crate) fn is_inside(&self) -> bool {
        // Relaxed: only this thread writes the flag while it has the lease.
        self.busy().load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn busy(&self) -> &Busy {
        // SAFETY: the flag lives as long as the lock that issued the lease.
        unsafe { self.busy.as_ref() }
    }
}

/// The lease was revoked: another thread has a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revoked;

impl<T> BiasedLock<T> {
    /// The lock and its first lease. Called after [`barrier::register`], which has chosen the fences for good.
    pub(crate) fn new(value: T) -> (BiasedLock<T>, Lease) {
        let fence = match barrier::is_symmetric() {
            true => OwnerFence::Full,
            false => OwnerFence::Light,
        };
        BiasedLock::with_fence(value, fence)
    }

    /// [`BiasedLock::new`], with this fence.
    pub(crate) fn with_fence(value: T, fence: OwnerFence) -> (BiasedLock<T>, Lease) {
        let mut leases = Leases {
            current: NonNull::dangling(),
            spare: Vec::new(),
            all: Vec::new(),
        };
        let first = Lease {
            number: 0,
            busy: leases.issue(),
        };
        let lock = BiasedLock {
            word: AtomicUsize::new(match fence {
                OwnerFence::Light => first.number,
                OwnerFence::Full => first.number | FENCED,
            }),
            foreign: Mutex::new(leases),
            value: UnsafeCell::new(value),
        };
        (lock, first)
    }

    /// Lets the owner in.
    ///
    /// # Safety
    /// *Owner* ([`BiasedLock`]).
    #[inline(always)]
    pub(crate) unsafe fn enter(&self, lease: Lease) -> Result<OwnerGuard<'_, T>, Revoked> {
        self.try_enter(lease)
            .or_else(|word| self.enter_slow(word, lease))
    }

    /// One attempt of [`enter`](BiasedLock::enter), for a caller that has another path without it.
    ///
    /// # Safety
    /// *Owner* ([`BiasedLock`]).
    #[inline(always)]
    pub(crate) unsafe fn enter_at_once(&self, lease: Lease) -> Option<OwnerGuard<'_, T>> {
        let entered = self.try_enter(lease);
        if entered.is_err() {
            // Release: as in `back_off`.
            lease.busy().store(false, Ordering::Release);
        }
        entered.ok()
    }

    /// The guard of the owner, which has forgotten the one with which it entered. Nobody has revoked its lease since.
    ///
    /// # Safety
    /// The calling thread is inside, with `lease`, and has no guard.
    #[inline(always)]
    pub(crate) unsafe fn still_inside(&self, lease: Lease) -> OwnerGuard<'_, T> {
        self.guard(lease)
    }

    /// The owner is inside.
    #[inline(always)]
    fn guard(&self, Lease { busy, .. }: Lease) -> OwnerGuard<'_, T> {
        OwnerGuard { lock: self, busy }
    }

    /// One attempt; the error is the conflicting word.
    #[inline(always)]
    fn try_enter(&self, lease: Lease) -> Result<OwnerGuard<'_, T>, usize> {
        // Only this thread writes the flag while it has the lease.
        #[cfg(not(loom))]
        debug_assert!(!lease.busy().load(Ordering::Relaxed), "inside already");
        lease.busy().store(true, Ordering::Relaxed);
        // If the light fence does nothing here, the word has `FENCED`, and differs from the lease's
        // number.
        barrier::light_if_asymmetric();
        // Acquire: pairs with the release store of a foreign thread that left: we see what it did.
        match self.word.load(Ordering::Acquire) {
            word if word == lease.number => Ok(self.guard(lease)),
            word => Err(word),
        }
    }

    #[cold]
    fn enter_slow(&self, word: usize, lease: Lease) -> Result<OwnerGuard<'_, T>, Revoked> {
        let fenced = word & FENCED;
        let mut word = word;
        loop {
            self.back_off(word, lease)?;
            lease.busy().store(true, Ordering::Relaxed);
            barrier::full();
            // Acquire: as in `try_enter`.
            word = self.word.load(Ordering::Acquire);
            if word == lease.number | fenced {
                return Ok(self.guard(lease));
            }
        }
    }

    /// Leaves, and waits for the foreign thread that is inside, if there is one.
    fn back_off(&self, word: usize, lease: Lease) -> Result<(), Revoked> {
        // Release: pairs with the foreign thread's acquire load. Nothing was touched, but the rule is simpler without
        // an exception.
        lease.busy().store(false, Ordering::Release);
        if word & !(FOREIGN | FENCED) != lease.number {
            return Err(Revoked);
        }
        // Relaxed: the next attempt to enter reads it anew.
        let is_inside = || self.word.load(Ordering::Relaxed) & FOREIGN != 0;
        if word & FOREIGN != 0 && crate::sys::spin_while(is_inside) {
            // It may revoke this lease before it leaves.
            drop(lock(&self.foreign));
        }
        Ok(())
    }

    /// Gives a revoked lease back.
    ///
    /// # Safety
    /// *Owner* ([`BiasedLock`]): this lock issued the lease to the calling thread, which gives it back once and never
    /// uses it again. Its flag goes to a later lease; if it were given back twice, two leases would have the flag.
    pub(crate) unsafe fn end(&self, lease: Lease) {
        let mut leases = lock(&self.foreign);
        debug_assert!(
            lease.busy != leases.current && !leases.spare.contains(&lease.busy),
            "the lease is current, or was given back before"
        );
        leases.spare.push(lease.busy);
    }

    /// Lets a foreign thread in. Any thread that is not inside; costs a heavy fence.
    pub(crate) fn enter_foreign(&self) -> ForeignGuard<'_, T> {
        let guard = lock(&self.foreign);
        let word = self.word.load(Ordering::Relaxed);
        let lease = Lease {
            number: word & !FENCED,
            busy: guard.current,
        };
        self.word.store(word | FOREIGN, Ordering::Relaxed);
        barrier::heavy();
        // Acquire: pairs with the owner's release store when it leaves: we see what it did.
        while lease.busy().load(Ordering::Acquire) {
            yield_now();
        }
        ForeignGuard {
            lock: self,
            lease,
            fenced: word & FENCED,
            guard,
        }
    }
}

/// The owner, inside. Leaves when dropped. Two words, which a call passes in registers.
pub(crate) struct OwnerGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// The lease's flag.
    busy: NonNull<Busy>,
}

impl<T> Drop for OwnerGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the flag lives as long as the lock.
        let busy = unsafe { self.busy.as_ref() };
        // Release: pairs with the foreign thread's acquire load of `busy`.
        busy.store(false, Ordering::Release);
    }
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// A foreign thread, inside. Leaves when dropped.
pub(crate) struct ForeignGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// The lease that is current once this thread has left.
    lease: Lease,
    /// The bit `FENCED`, if it is set.
    fenced: usize,
    guard: MutexGuard<'a, Leases>,
}

impl<T> ForeignGuard<'_, T> {
    /// Revokes the owner's lease and returns the next one. The former owner gets [`Revoked`] when it next enters.
    pub(crate) fn revoke(&mut self) -> Lease {
        self.lease = Lease {
            number: self.lease.number.wrapping_add(LEASE),
            busy: self.guard.issue(),
        };
        self.lease
    }

    /// Whether `lease` is still the current one.
    pub(crate) fn is_current(&self, lease: Lease) -> bool {
        self.lease == lease
    }
}

impl<T> Drop for ForeignGuard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the owner's acquire load in `try_enter`.
        let word = self.lease.number | self.fenced;
        self.lock.word.store(word, Ordering::Release);
    }
}

impl<T> Deref for ForeignGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for ForeignGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the protocol: this thread alone is inside until the guard is dropped.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_needs_a_full_fence_never_enters_at_once() {
        barrier::register();
        let (lock, first) = BiasedLock::with_fence(0, OwnerFence::Full);
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        let enters_at_once = |lease| unsafe { lock.enter_at_once(lease) }.is_some();
        assert!(!enters_at_once(first));
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        *unsafe { lock.enter(first) }.unwrap() += 1;
        drop(lock.enter_foreign());
        assert!(!enters_at_once(first), "after a foreign thread");
        let next = lock.enter_foreign().revoke();
        assert!(!enters_at_once(next), "after a revocation");
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        assert_eq!(unsafe { lock.enter(first) }.err(), Some(Revoked));
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        *unsafe { lock.enter(next) }.unwrap() += 1;
        let foreign = lock.enter_foreign();
        assert!(foreign.is_current(next));
        assert_eq!(*foreign, 2);
    }

    #[test]
    fn an_owner_that_enters_at_once_or_not_at_all_lets_a_foreign_thread_in() {
        barrier::register();
        let (lock, lease) = BiasedLock::with_fence((), OwnerFence::Light);
        let is_busy = || lease.busy().load(Ordering::Relaxed);
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        let inside = unsafe { lock.enter_at_once(lease) };
        assert!(inside.is_some() && is_busy());
        std::mem::forget(inside);
        // SAFETY: it is inside, without a guard.
        drop(unsafe { lock.still_inside(lease) });
        assert!(!is_busy());
        let foreign = lock.enter_foreign();
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        assert!(unsafe { lock.enter_at_once(lease) }.is_none() && !is_busy());
        drop(foreign);
        // SAFETY: *owner*: no other thread has the lease, and the guard goes before the next one comes.
        assert!(unsafe { lock.enter_at_once(lease) }.is_some() && !is_busy());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "inside already")]
    fn a_debug_build_notices_an_owner_that_enters_twice() {
        barrier::register();
        let (lock, lease) = BiasedLock::with_fence((), OwnerFence::Light);
        // SAFETY: *owner*; the guard gives no access to the value.
        let _inside = unsafe { lock.enter(lease) };
        // SAFETY: not *owner*, which the lock notices before it lets anyone in.
        let _twice = unsafe { lock.enter(lease) };
    }
}
