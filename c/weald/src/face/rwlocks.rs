//! Locks for many readers or one writer.
//!
//! A unit, or an OS thread, is known by an address, as by a mutex ([`super::locks`]).
//!
//! # Safety
//! - *Outlived*: the guards of a lock are dropped before the lock, which stays where it is.

#![allow(unsafe_code)]

use std::{
    collections::HashMap,
    mem::{self, MaybeUninit},
    sync::{Mutex, MutexGuard, PoisonError},
};

use weald::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, unit};

use crate::{
    codes::{Code, Failure, WEALD_DEADLOCK, WEALD_NOT_OWNER, failure},
    guard::{check_cancel, guard, needed},
    handles::{self, Object},
    waits::{duration, timed_out, wait},
};

/// A lock that many units may hold for reading, or one for writing, also across waits. Whoever waits comes in turn: a
/// reader does not pass a writer that waits. The unit or OS thread that has locked it must unlock it.
pub type RwLockHandle = u64;

type ReadGuard = RwLockReadGuard<'static, ()>;
type WriteGuard = RwLockWriteGuard<'static, ()>;

/// Who holds the lock.
#[derive(Default)]
struct Holders {
    /// Each with the guards that it has.
    readers: HashMap<usize, Vec<ReadGuard>>,
    writer: Option<(usize, WriteGuard)>,
}

enum AnyGuard {
    Read(ReadGuard),
    Write(WriteGuard),
}

struct RwLockObject {
    /// Dropped before the lock. Nobody waits while they have it.
    holders: Mutex<Holders>,
    lock: Box<RwLock<()>>,
}

impl Object for RwLockObject {
    fn name() -> &'static str {
        "lock for readers and writers"
    }
}

impl RwLockObject {
    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold_to_read(&self, guard: RwLockReadGuard<'_, ()>) {
        // SAFETY: *outlived*.
        let guard = unsafe { mem::transmute::<RwLockReadGuard<'_, ()>, ReadGuard>(guard) };
        let mut holders = self.holders();
        holders
            .readers
            .entry(unit::current())
            .or_default()
            .push(guard);
    }

    fn hold_to_write(&self, guard: RwLockWriteGuard<'_, ()>) {
        // SAFETY: *outlived*.
        let guard = unsafe { mem::transmute::<RwLockWriteGuard<'_, ()>, WriteGuard>(guard) };
        self.holders().writer = Some((unit::current(), guard));
    }

    /// What the caller holds, if anything.
    fn let_go(&self) -> Result<AnyGuard, Failure> {
        let me = unit::current();
        let mut holders = self.holders();
        if let Some((_me, guard)) = holders.writer.take_if(|(writer, _)| *writer == me) {
            return Ok(AnyGuard::Write(guard));
        }
        let Some(guards) = holders.readers.get_mut(&me) else {
            let sentence = "the caller does not hold the lock; the unit or OS thread that locked it unlocks it";
            return Err(failure(WEALD_NOT_OWNER, sentence));
        };
        let guard = guards.pop();
        if guards.is_empty() {
            holders.readers.remove(&me);
        }
        Ok(AnyGuard::Read(guard.expect("a reader has a guard")))
    }

    /// A caller that would wait for itself is refused.
    fn check_holder(&self) -> Result<(), Failure> {
        let me = unit::current();
        let holders = self.holders();
        let writes = matches!(holders.writer, Some((writer, _)) if writer == me);
        match writes || holders.readers.contains_key(&me) {
            true => Err(failure(WEALD_DEADLOCK, "the caller holds the lock already")),
            false => Ok(()),
        }
    }
}

/// Creates a lock for readers and writers that nobody holds.
#[unsafe(no_mangle)]
pub extern "C" fn weald_rwlock_create(lock: Option<&mut MaybeUninit<RwLockHandle>>) -> Code {
    guard(|| {
        let lock = needed(lock)?;
        lock.write(handles::add(RwLockObject {
            holders: Mutex::default(),
            lock: Box::new(RwLock::new(())),
        })?);
        Ok(())
    })
}

/// Locks it for reading. A caller that reads already may do so again, and unlocks as often. WEALD_DEADLOCK if it would
/// have to wait for that, or writes already.
#[unsafe(no_mangle)]
pub extern "C" fn weald_rwlock_read(lock: RwLockHandle, limit_ns: i64) -> Code {
    guard(|| {
        let object = handles::get::<RwLockObject>(lock)?;
        check_cancel();
        let guard = match object.lock.try_read() {
            Some(guard) => guard,
            None => {
                object.check_holder()?;
                match duration(limit_ns) {
                    None => wait(object.lock.read()),
                    Some(limit) => {
                        wait(object.lock.read().within(limit)).map_err(|_| timed_out())?
                    }
                }
            }
        };
        object.hold_to_read(guard);
        Ok(())
    })
}

/// Locks it for writing. WEALD_DEADLOCK if the caller reads or writes already.
#[unsafe(no_mangle)]
pub extern "C" fn weald_rwlock_write(lock: RwLockHandle, limit_ns: i64) -> Code {
    guard(|| {
        let object = handles::get::<RwLockObject>(lock)?;
        check_cancel();
        let guard = match object.lock.try_write() {
            Some(guard) => guard,
            None => {
                object.check_holder()?;
                match duration(limit_ns) {
                    None => wait(object.lock.write()),
                    Some(limit) => {
                        wait(object.lock.write().within(limit)).map_err(|_| timed_out())?
                    }
                }
            }
        };
        object.hold_to_write(guard);
        Ok(())
    })
}

/// Unlocks what the caller has locked. Never waits. WEALD_NOT_OWNER if the caller does not hold it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_rwlock_unlock(lock: RwLockHandle) -> Code {
    guard(|| {
        let object = handles::get::<RwLockObject>(lock)?;
        // Its drop wakes others: not while the holders are locked.
        match object.let_go()? {
            AnyGuard::Read(guard) => drop(guard),
            AnyGuard::Write(guard) => drop(guard),
        }
        Ok(())
    })
}
