//! Mutexes, conditions, and locks for readers and writers.
//!
//! References in the signatures stand for pointers that C passes; see `threads`. The functions that make an object are
//! given memory with any content.

#![allow(unsafe_code)]

use std::{ffi::c_int, mem::MaybeUninit};

use libc::timespec;

use super::attributes::{Nothing, Number};
use crate::{
    clock,
    cond::Cond,
    guard::guard,
    mutex::Mutex,
    rwlock::{Access, RwLock},
};

/// Memory in which an object is made.
pub(super) type Room<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Makes an object in `room`.
pub(super) fn make<T>(room: Room<'_, T>, object: Result<T, c_int>) -> c_int {
    match (room, object) {
        (Some(room), Ok(object)) => {
            room.write(object);
            0
        }
        (None, _) => libc::EINVAL,
        (_, Err(failed)) => failed,
    }
}

/// Runs the code of a function that is given an object.
pub(super) fn with<T>(object: Option<&T>, act: impl FnOnce(&T) -> Result<(), c_int>) -> c_int {
    guard(|| act(object.ok_or(libc::EINVAL)?))
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_init(room: Room<'_, Mutex>, attributes: Option<&Number>) -> c_int {
    make(room, Mutex::new(attributes.map_or(0, |kind| kind.0)))
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_destroy(mutex: Option<&Mutex>) -> c_int {
    with(mutex, |mutex| match mutex.is_locked() {
        true => Err(libc::EBUSY),
        false => Ok(()),
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_lock(mutex: Option<&Mutex>) -> c_int {
    // What never panics needs no guard.
    match mutex.is_some_and(Mutex::lock_at_once) {
        true => 0,
        false => with(mutex, |mutex| mutex.lock(None)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_trylock(mutex: Option<&Mutex>) -> c_int {
    with(mutex, Mutex::try_lock)
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_timedlock(mutex: Option<&Mutex>, deadline: Option<&timespec>) -> c_int {
    with(mutex, |mutex| match mutex.try_lock() {
        // A free mutex is locked whatever the deadline.
        Err(libc::EBUSY) => mutex.lock(clock::deadline(deadline)?),
        tried => tried,
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_mutex_unlock(mutex: Option<&Mutex>) -> c_int {
    match mutex.is_some_and(Mutex::unlock_at_once) {
        true => 0,
        false => with(mutex, Mutex::unlock),
    }
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_init(room: Room<'_, Cond>, _: Option<&Nothing>) -> c_int {
    make(room, Ok(Cond::new()))
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_destroy(cond: Option<&Cond>) -> c_int {
    with(cond, |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_wait(cond: Option<&Cond>, mutex: Option<&Mutex>) -> c_int {
    with(cond, |cond| cond.wait(mutex.ok_or(libc::EINVAL)?))
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_timedwait(
    cond: Option<&Cond>,
    mutex: Option<&Mutex>,
    deadline: Option<&timespec>,
) -> c_int {
    with(cond, |cond| {
        let deadline = clock::deadline(deadline)?;
        cond.wait_until(mutex.ok_or(libc::EINVAL)?, deadline)
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_signal(cond: Option<&Cond>) -> c_int {
    with(cond, |cond| {
        cond.signal();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_cond_broadcast(cond: Option<&Cond>) -> c_int {
    with(cond, |cond| {
        cond.broadcast();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_init(room: Room<'_, RwLock>, attributes: Option<&Number>) -> c_int {
    make(room, RwLock::new(attributes.map_or(0, |kind| kind.0)))
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_destroy(lock: Option<&RwLock>) -> c_int {
    with(lock, |lock| match lock.is_locked() {
        true => Err(libc::EBUSY),
        false => Ok(()),
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_rdlock(lock: Option<&RwLock>) -> c_int {
    with(lock, |lock| lock.lock(Access::Read, None))
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_tryrdlock(lock: Option<&RwLock>) -> c_int {
    with(lock, |lock| lock.try_lock(Access::Read))
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_timedrdlock(lock: Option<&RwLock>, deadline: Option<&timespec>) -> c_int {
    timed_lock(lock, Access::Read, deadline)
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_wrlock(lock: Option<&RwLock>) -> c_int {
    with(lock, |lock| lock.lock(Access::Write, None))
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_trywrlock(lock: Option<&RwLock>) -> c_int {
    with(lock, |lock| lock.try_lock(Access::Write))
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_timedwrlock(lock: Option<&RwLock>, deadline: Option<&timespec>) -> c_int {
    timed_lock(lock, Access::Write, deadline)
}

fn timed_lock(lock: Option<&RwLock>, access: Access, deadline: Option<&timespec>) -> c_int {
    with(lock, |lock| match lock.try_lock(access) {
        // A lock that may be entered is, whatever the deadline.
        Err(libc::EBUSY) => lock.lock(access, clock::deadline(deadline)?),
        tried => tried,
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_rwlock_unlock(lock: Option<&RwLock>) -> c_int {
    with(lock, RwLock::unlock)
}
