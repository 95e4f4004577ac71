//! Mutexes and conditions.
//!
//! A unit, or an OS thread, is known by an address. So if one ends while it holds a mutex, a later one may have its
//! address, and then counts as the owner: it can unlock the mutex, and a lock by it is WEALD_DEADLOCK.
//!
//! # Safety
//! - *Outlived*: the guard of a mutex is dropped before its mutex, which stays where it is.
//! - *Held*: the place of the guard is written by whoever has just locked the mutex, and then by the one that takes the
//!   owner away: an unlock, or the drop of the object.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    mem::{self, MaybeUninit},
    sync::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use weald::sync::{Condvar, Mutex, MutexGuard, unit};

use crate::{
    codes::{Code, Failure, WEALD_DEADLOCK, WEALD_NOT_OWNER, failure},
    guard::{check_cancel, guard, needed},
    handles::{self, Object},
    waits::{duration, timed_out, wait},
};

/// A mutex, which a unit may hold across waits. The unit or OS thread that has locked it must unlock it. While one
/// holds it, others suspend, or block their OS thread outside of units.
pub type MutexHandle = u64;

/// A condition variable, for waits with a mutex. Any thread and any unit may use it.
pub type ConditionHandle = u64;

struct MutexObject {
    /// The guard while it is locked. Dropped before the mutex.
    held: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    mutex: Box<Mutex<()>>,
    /// The unit, or the OS thread, that holds it; zero: nobody.
    owner: AtomicUsize,
}

// SAFETY: *held*; the rest is for all threads.
unsafe impl Send for MutexObject {}
// SAFETY: as above.
unsafe impl Sync for MutexObject {}

struct ConditionObject(Condvar);

impl Object for MutexObject {
    fn name() -> &'static str {
        "mutex"
    }
}

impl Object for ConditionObject {
    fn name() -> &'static str {
        "condition"
    }
}

impl MutexObject {
    fn is_mine(&self) -> bool {
        self.owner.load(Relaxed) == unit::current()
    }

    fn hold(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: *outlived*.
        let guard = unsafe { mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        // SAFETY: *held*.
        unsafe { *self.held.get() = Some(guard) };
        // Pairs with the acquire in `let_go`: the parts of a fork are one unit.
        self.owner.store(unit::current(), Release);
    }

    fn let_go(&self) -> Result<MutexGuard<'static, ()>, Failure> {
        let me = unit::current();
        let mut guard = None;
        if self.owner.compare_exchange(me, 0, Acquire, Relaxed).is_ok() {
            // SAFETY: *held*.
            guard = unsafe { &mut *self.held.get() }.take();
        }
        let sentence =
            "the caller does not hold the mutex; the unit or OS thread that locked it unlocks it";
        guard.ok_or_else(|| failure(WEALD_NOT_OWNER, sentence))
    }
}

/// Creates a mutex that nobody holds.
#[unsafe(no_mangle)]
pub extern "C" fn weald_mutex_create(mutex: Option<&mut MaybeUninit<MutexHandle>>) -> Code {
    guard(|| {
        let mutex = needed(mutex)?;
        mutex.write(handles::add(MutexObject {
            held: UnsafeCell::new(None),
            mutex: Box::new(Mutex::new(())),
            owner: AtomicUsize::new(0),
        })?);
        Ok(())
    })
}

/// Locks a mutex. WEALD_DEADLOCK if the caller holds it already.
#[unsafe(no_mangle)]
pub extern "C" fn weald_mutex_lock(mutex: MutexHandle, limit_ns: i64) -> Code {
    guard(|| {
        let mutex = handles::get::<MutexObject>(mutex)?;
        if mutex.is_mine() {
            return Err(failure(
                WEALD_DEADLOCK,
                "the caller holds the mutex already",
            ));
        }
        check_cancel();
        let guard = match (mutex.mutex.try_lock(), duration(limit_ns)) {
            (Some(guard), _) => guard,
            (None, None) => wait(mutex.mutex.lock()),
            (None, Some(limit)) => {
                wait(mutex.mutex.lock().within(limit)).map_err(|_| timed_out())?
            }
        };
        mutex.hold(guard);
        Ok(())
    })
}

/// Unlocks a mutex. Never waits. WEALD_NOT_OWNER if the caller does not hold it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_mutex_unlock(mutex: MutexHandle) -> Code {
    guard(|| handles::get::<MutexObject>(mutex)?.let_go().map(drop))
}

/// Creates a condition variable.
#[unsafe(no_mangle)]
pub extern "C" fn weald_condition_create(
    condition: Option<&mut MaybeUninit<ConditionHandle>>,
) -> Code {
    guard(|| {
        let condition = needed(condition)?;
        condition.write(handles::add(ConditionObject(Condvar::new()))?);
        Ok(())
    })
}

/// Unlocks a mutex that the caller holds, waits until the condition is signalled, and locks the mutex again. After
/// WEALD_TIMED_OUT the caller holds the mutex; after WEALD_CANCELLED it does not.
#[unsafe(no_mangle)]
pub extern "C" fn weald_condition_wait(
    condition: ConditionHandle,
    mutex: MutexHandle,
    limit_ns: i64,
) -> Code {
    guard(|| {
        let condition = handles::get::<ConditionObject>(condition)?;
        let mutex = handles::get::<MutexObject>(mutex)?;
        let guard = mutex.let_go()?;
        let (guard, has_timed_out) = match duration(limit_ns) {
            None => (wait(condition.0.wait(guard)), false),
            Some(limit) => {
                let (guard, result) = wait(condition.0.wait_timeout(guard, limit));
                (guard, result.timed_out())
            }
        };
        mutex.hold(guard);
        match has_timed_out {
            true => Err(timed_out()),
            false => Ok(()),
        }
    })
}

/// Wakes the longest waiter, if there is one. Never waits.
#[unsafe(no_mangle)]
pub extern "C" fn weald_condition_signal(condition: ConditionHandle) -> Code {
    guard(|| {
        handles::get::<ConditionObject>(condition)?.0.notify_one();
        Ok(())
    })
}

/// Wakes all waiters. Never waits.
#[unsafe(no_mangle)]
pub extern "C" fn weald_condition_broadcast(condition: ConditionHandle) -> Code {
    guard(|| {
        handles::get::<ConditionObject>(condition)?.0.notify_all();
        Ok(())
    })
}
