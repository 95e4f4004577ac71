//! The one place that chooses between `std` and loom.
//!
//! Everything that a loom model explores takes its atomics and cells from here.

#![allow(unsafe_code)]

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, AtomicU64, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, fence},
    thread::yield_now,
};

pub(crate) use std::sync::atomic::Ordering;

/// The interface of loom's cell, over the cell of `std`.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn get_mut(&self) -> MutPtr<T> {
        MutPtr(self.0.get())
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// An access to a cell. It lasts as long as this value lives.
#[cfg(not(loom))]
pub(crate) struct MutPtr<T>(*mut T);

#[cfg(loom)]
pub(crate) use loom::cell::MutPtr;

#[cfg(not(loom))]
impl<T> MutPtr<T> {
    /// # Safety
    /// Nothing else accesses the cell meanwhile.
    #[allow(clippy::mut_from_ref, reason = "loom's form")]
    #[inline(always)]
    pub(crate) unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0 }
    }
}

/// A place in an order of all objects that exist at the same time. The object contains its rank, and does
/// not move while the rank is compared.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Rank;

#[cfg(not(loom))]
impl Rank {
    pub(crate) const fn new() -> Rank {
        Rank
    }

    pub(crate) fn is_above(&self, other: &Rank) -> bool {
        std::ptr::from_ref(self).addr() > std::ptr::from_ref(other).addr()
    }
}

/// In a model addresses differ from run to run, so the order is that of creation.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Rank(u64);

#[cfg(loom)]
impl Rank {
    pub(crate) fn new() -> Rank {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        Rank(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn is_above(&self, other: &Rank) -> bool {
        self.0 > other.0
    }
}

/// Rounds of a spin before it lets other threads run, and before it sleeps.
#[cfg(not(loom))]
const SPINS: u32 = 64;
#[cfg(not(loom))]
const YIELDS: u32 = 128;

/// One round of waiting for another thread's critical section, which is a few instructions long: spin,
/// then yield, then sleep, because a thread of higher priority may have preempted that thread.
pub(crate) fn relax(round: &mut u32) {
    *round += 1;
    #[cfg(loom)]
    yield_now();
    #[cfg(not(loom))]
    match *round {
        0..SPINS => spin_loop(),
        SPINS..YIELDS => yield_now(),
        #[expect(
            clippy::disallowed_methods,
            reason = "the last resort of a wait for a few instructions of another thread"
        )]
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
