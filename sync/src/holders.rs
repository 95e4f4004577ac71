//! Which locks are waited for, so that a report can find who holds them.
//!
//! A lock is here while somebody waits for it. Who reads an entry holds the table's lock, and a lock that is
//! going away must take that lock first: so an entry is always alive.

#![allow(unsafe_code)]

use std::{
    collections::HashMap,
    ptr::NonNull,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use crate::mutex::RawMutex;

const SHARDS: usize = 64;

/// # Safety
/// *Alive*: a lock is in the table from its first waiter's announcement to the end of its last; waiters
/// borrow the lock, so it lives and does not move.
struct Entry(NonNull<RawMutex>);

// SAFETY: a raw mutex may be used from any thread.
unsafe impl Send for Entry {}

type Shard = Mutex<HashMap<usize, Entry>>;

fn shard(object: usize) -> MutexGuard<'static, HashMap<usize, Entry>> {
    static TABLE: OnceLock<Vec<Shard>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..SHARDS).map(|_| Mutex::default()).collect());
    // Locks lie at least 16 bytes apart.
    let shard = &table[(object >> 4) % SHARDS];
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock is waited for from now on. Called under its inner lock.
pub(crate) fn register(lock: &RawMutex) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).insert(object, Entry(NonNull::from(lock)));
}

/// Nobody waits for the lock any more. Called under its inner lock.
pub(crate) fn unregister(lock: &RawMutex) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).remove(&object);
}

/// The unit that holds the lock `object`, as [`Reason::object`](crate::reason::Reason::object) gives it; none
/// if nobody waits for it, or a thread holds it.
pub fn holder(object: usize) -> Option<usize> {
    let shard = shard(object);
    let entry = shard.get(&object)?;
    // SAFETY: *alive*.
    unsafe { entry.0.as_ref() }.holder()
}
