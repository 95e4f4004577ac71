//! Mutexes and conditions.
//!
//! # Safety
//! *Outlived*: the guard of a mutex is dropped before its mutex, which stays where it is.

#![allow(unsafe_code)]

use std::{
    mem::{self, MaybeUninit},
    sync::{self as std_sync, PoisonError},
};

use weald::sync::{Condvar, Mutex, MutexGuard, unit};

use crate::{
    codes::{Code, Failure, WEALD_DEADLOCK, WEALD_NOT_OWNER, failure},
    guard::{guard, needed},
    handles::{self, Object},
    waits::{duration, timed_out, wait},
};

/// A mutex, which a unit may hold across waits. The unit or OS thread that has locked it must unlock it. While one
/// holds it, others suspend, or block their OS thread outside of units.
pub type MutexHandle = u64;

/// A condition variable, for waits with a mutex. Any thread and any unit may use it.
pub type ConditionHandle = u64;

struct MutexObject {
    /// Dropped before the mutex.
    held: std_sync::Mutex<Option<Held>>,
    mutex: Box<Mutex<()>>,
}

struct Held {
    guard: MutexGuard<'static, ()>,
    /// The unit, or the OS thread, that holds it.
    owner: usize,
}

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
    fn place(&self) -> std_sync::MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_mine(&self) -> bool {
        let place = self.place();
        place
            .as_ref()
            .is_some_and(|held| held.owner == unit::current())
    }

    fn hold(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: *outlived*.
        let guard = unsafe { mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        let owner = unit::current();
        *self.place() = Some(Held { guard, owner });
    }

    fn let_go(&self) -> Result<MutexGuard<'static, ()>, Failure> {
        let mut place = self.place();
        match place.take() {
            Some(held) if held.owner == unit::current() => Ok(held.guard),
            other => {
                *place = other;
                let sentence = "the caller does not hold the mutex; the unit or OS thread that locked it unlocks it";
                Err(failure(WEALD_NOT_OWNER, sentence))
            }
        }
    }
}

/// Creates a mutex that nobody holds.
#[unsafe(no_mangle)]
pub extern "C" fn weald_mutex_create(mutex: Option<&mut MaybeUninit<MutexHandle>>) -> Code {
    guard(|| {
        let mutex = needed(mutex)?;
        mutex.write(handles::add(MutexObject {
            held: std_sync::Mutex::default(),
            mutex: Box::new(Mutex::new(())),
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
        let lock = mutex.mutex.lock();
        let guard = match duration(limit_ns) {
            None => wait(lock),
            Some(limit) => wait(lock.within(limit)).map_err(|_| timed_out())?,
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
