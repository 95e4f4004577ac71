//! Spin locks: the functions of `myth/myth_spinlock.h`.
//!
//! References in the signatures stand for pointers that C passes; see `threads`. Nothing here panics.

#![allow(unsafe_code)]

use std::{
    ffi::c_int,
    hint,
    sync::atomic::{
        AtomicI32,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
};

use super::locks::{Room, make};

/// `myth_spinlock_t`: 1 while somebody has it.
#[repr(transparent)]
struct SpinLock(AtomicI32);

/// How often a thread looks at it before it yields to the other OS threads.
const LOOKS: c_int = 100;

impl SpinLock {
    fn try_lock(&self) -> bool {
        // Pairs with the release in `unlock`.
        self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Returns how often it was taken.
    fn lock(&self) -> c_int {
        let mut looks: c_int = 0;
        while !self.try_lock() {
            match looks < LOOKS {
                true => hint::spin_loop(),
                // Whoever has it may have lost its core.
                false => thread::yield_now(),
            }
            looks = looks.saturating_add(1);
        }
        looks
    }

    fn unlock(&self) {
        // Pairs with the acquire in `try_lock`.
        self.0.store(0, Release);
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_spin_init(room: Room<'_, SpinLock>) -> c_int {
    make(room, Ok(SpinLock(AtomicI32::new(0))))
}

#[unsafe(no_mangle)]
extern "C" fn myth_spin_destroy(lock: Option<&SpinLock>) -> c_int {
    lock.map_or(libc::EINVAL, |_| 0)
}

#[unsafe(no_mangle)]
extern "C" fn myth_spin_lock(lock: Option<&SpinLock>) -> c_int {
    lock.map_or(libc::EINVAL, SpinLock::lock)
}

#[unsafe(no_mangle)]
extern "C" fn myth_spin_trylock(lock: Option<&SpinLock>) -> c_int {
    lock.is_some_and(SpinLock::try_lock).into()
}

#[unsafe(no_mangle)]
extern "C" fn myth_spin_unlock(lock: Option<&SpinLock>) -> c_int {
    lock.map_or(libc::EINVAL, |lock| {
        lock.unlock();
        0
    })
}
