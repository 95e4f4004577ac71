//! The locks that units wait for, and their holders, for reports.
//!
//! A lock is in the table while a unit waits for it. The table follows no pointer: a leaked wait may leave an
//! entry of a lock that is gone or was moved. Such an entry is wrong but harmless.
//!
//! A waiter writes the entry whenever it finds the lock held or gets the lock. So the entry is correct as long as the
//! lock does not change hands.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

const SHARDS: usize = 64;

/// The units that hold locks, by the locks' addresses. Zero: a thread holds the lock, or several readers do.
type Table = HashMap<usize, usize>;

fn shard(object: usize) -> MutexGuard<'static, Table> {
    static TABLE: OnceLock<Vec<Mutex<Table>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..SHARDS).map(|_| Mutex::default()).collect());
    // Locks are at least 16 bytes apart.
    let shard = &table[(object >> 4) % SHARDS];
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a unit waits for the lock, and that `holder` holds it. Called under its inner lock.
pub(crate) fn note<L>(lock: &L, holder: Option<usize>) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).insert(object, holder.unwrap_or(0));
}

/// Notes that no unit waits for the lock any longer. Called under its inner lock.
pub(crate) fn forget<L>(lock: &L) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).remove(&object);
}

/// The unit that holds the lock `object`, an address from [`Reason::object`](crate::reason::Reason::object).
/// None if no unit waits for the lock, or a thread holds it, or readers do.
pub fn holder(object: usize) -> Option<usize> {
    shard(object)
        .get(&object)
        .copied()
        .filter(|unit| *unit != 0)
}
