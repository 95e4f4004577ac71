//! Where threads meet: barriers, join counters, full/empty locks, unconditional waits, and functions that are called
//! once.
//!
//! References in the signatures stand for pointers that C passes; see `threads`.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint};

use super::{
    attributes::Nothing,
    locks::{Room, make, with},
};
use crate::{
    barrier::Barrier, full_empty::FullEmptyLock, guard::guard_value, join_counter::JoinCounter,
    once::Once, uncond::Uncond,
};

/// `MYTH_BARRIER_SERIAL_THREAD`.
const SERIAL: c_int = 1;

#[unsafe(no_mangle)]
extern "C" fn myth_barrier_init(
    room: Room<'_, Barrier>,
    _: Option<&Nothing>,
    count: c_uint,
) -> c_int {
    make(room, Barrier::new(count))
}

#[unsafe(no_mangle)]
extern "C" fn myth_barrier_destroy(barrier: Option<&Barrier>) -> c_int {
    with(barrier, |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn myth_barrier_wait(barrier: Option<&Barrier>) -> c_int {
    let Some(barrier) = barrier else {
        // Not an error code that could be taken for the serial thread.
        return libc::EINVAL;
    };
    let wait = || if barrier.wait() { SERIAL } else { 0 };
    guard_value(wait, libc::ENOTRECOVERABLE)
}

#[unsafe(no_mangle)]
extern "C" fn myth_join_counter_init(
    room: Room<'_, JoinCounter>,
    _: Option<&Nothing>,
    count: c_int,
) -> c_int {
    make(room, JoinCounter::new(count))
}

#[unsafe(no_mangle)]
extern "C" fn myth_join_counter_wait(counter: Option<&JoinCounter>) -> c_int {
    with(counter, |counter| {
        counter.wait();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_join_counter_dec(counter: Option<&JoinCounter>) -> c_int {
    with(counter, JoinCounter::decrement)
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_init(room: Room<'_, FullEmptyLock>, _: Option<&Nothing>) -> c_int {
    make(room, FullEmptyLock::new())
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_destroy(lock: Option<&FullEmptyLock>) -> c_int {
    with(lock, |lock| match lock.is_locked() {
        true => Err(libc::EBUSY),
        false => Ok(()),
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_lock(lock: Option<&FullEmptyLock>) -> c_int {
    with(lock, FullEmptyLock::lock)
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_unlock(lock: Option<&FullEmptyLock>) -> c_int {
    with(lock, FullEmptyLock::unlock)
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_wait_and_lock(lock: Option<&FullEmptyLock>, mark: c_int) -> c_int {
    with(lock, |lock| lock.wait_and_lock(mark))
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_mark_and_signal(lock: Option<&FullEmptyLock>, mark: c_int) -> c_int {
    with(lock, |lock| lock.mark_and_signal(mark))
}

#[unsafe(no_mangle)]
extern "C" fn myth_felock_status(lock: Option<&FullEmptyLock>) -> c_int {
    lock.map_or(-1, FullEmptyLock::mark)
}

#[unsafe(no_mangle)]
extern "C" fn myth_uncond_init(room: Room<'_, Uncond>) -> c_int {
    make(room, Ok(Uncond::new()))
}

#[unsafe(no_mangle)]
extern "C" fn myth_uncond_destroy(uncond: Option<&Uncond>) -> c_int {
    with(uncond, |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn myth_uncond_wait(uncond: Option<&Uncond>) -> c_int {
    with(uncond, |uncond| {
        uncond.wait();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn myth_uncond_signal(uncond: Option<&Uncond>) -> c_int {
    with(uncond, |uncond| {
        uncond.signal();
        Ok(())
    })
}

type Routine = unsafe extern "C" fn();

#[unsafe(no_mangle)]
extern "C" fn myth_once(once: Option<&Once>, routine: Option<Routine>) -> c_int {
    with(once, |once| {
        let routine = routine.ok_or(libc::EINVAL)?;
        // SAFETY: the program's promise to `myth_once`.
        once.call(|| unsafe { routine() });
        Ok(())
    })
}
