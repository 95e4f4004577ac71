//! Which locks are waited for, and who holds them, so that a report can find that.
//!
//! A lock is here while somebody waits for it. The table follows no pointer: a wait that is leaked may leave
//! an entry of a lock that is gone, or was moved, and such an entry is wrong but harmless.
//!
//! An entry is written by those who wait, each time when one finds the lock held or gets it; so when the lock
//! stands still, its entry tells the truth.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

const SHARDS: usize = 64;

/// The units that hold locks, by the locks' addresses; zero: a thread does, or several readers do.
type Table = HashMap<usize, usize>;

fn shard(object: usize) -> MutexGuard<'static, Table> {
    static TABLE: OnceLock<Vec<Mutex<Table>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..SHARDS).map(|_| Mutex::default()).collect());
    // Locks lie at least 16 bytes apart.
    let shard = &table[(object >> 4) % SHARDS];
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock is waited for, and `holder` holds it. Called under its inner lock.
pub(crate) fn note<L>(lock: &L, holder: Option<usize>) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).insert(object, holder.unwrap_or(0));
}

/// Nobody waits for the lock any more. Called under its inner lock.
pub(crate) fn forget<L>(lock: &L) {
    let object = std::ptr::from_ref(lock).addr();
    shard(object).remove(&object);
}

/// The unit that holds the lock `object`, as [`Reason::object`](crate::reason::Reason::object) gives it; none
/// if nobody waits for it, or a thread holds it, or readers do.
pub fn holder(object: usize) -> Option<usize> {
    shard(object)
        .get(&object)
        .copied()
        .filter(|unit| *unit != 0)
}
