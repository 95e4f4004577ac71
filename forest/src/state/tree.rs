//! The state of a tree, which its writers and readers share: the slot with the newest root, and the history.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weald_memory::Slot;

use super::history::{History, Hold};
use super::root::{Root, RootRef};

/// All versions of one tree. Its number never changes; its name may.
pub(crate) struct TreeState {
    pub(crate) number: u64,
    /// The newest root. Only the combiner stores here, and only while it holds the history's lock, so a
    /// reader that has seen a root in the slot finds it in the history.
    pub(crate) slot: Slot<Root>,
    history: Mutex<History>,
    name: Mutex<Arc<str>>,
    is_deleted: AtomicBool,
    /// The greatest id of a node that a visible commit has brought; less for a tree that was created from others'
    /// nodes. Only the combiner uses it.
    last_id: AtomicU64,
}

impl TreeState {
    pub(crate) fn new(number: u64, name: Arc<str>, first: RootRef) -> Self {
        // It has at least as many ids, and they are in its first record.
        let last_id = AtomicU64::new(first.tree.len());
        Self {
            number,
            last_id,
            history: Mutex::new(History::new(first.clone())),
            slot: Slot::new(first),
            name: Mutex::new(name),
            is_deleted: AtomicBool::new(false),
        }
    }

    /// A tree with all its versions. Its source of ids is behind all that were given out before.
    pub(crate) fn of(number: u64, name: Arc<str>, history: History) -> Self {
        let last_id = AtomicU64::new(history.newest().tree.ids().last());
        Self {
            number,
            last_id,
            slot: Slot::new(history.newest().clone()),
            history: Mutex::new(history),
            name: Mutex::new(name),
            is_deleted: AtomicBool::new(false),
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        // Nothing between two changes of the history can panic, so it is whole even if a reader panicked.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A commit with this greatest id is about to be published; returns by how much it exceeds the former greatest.
    /// Called by the combiner only, so relaxed orderings are enough.
    #[inline]
    pub(crate) fn bring(&self, last_id: u64) -> u64 {
        let before = self.last_id.load(Ordering::Relaxed);
        if last_id > before {
            self.last_id.store(last_id, Ordering::Relaxed);
        }
        last_id.saturating_sub(before)
    }

    pub(crate) fn is_deleted(&self) -> bool {
        // Acquire: pairs with the store in `delete`; a reader that sees the flag finds the last version in
        // the slot.
        self.is_deleted.load(Ordering::Acquire)
    }

    pub(crate) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Release);
    }

    /// A deletion is taken back.
    pub(crate) fn undelete(&self) {
        self.is_deleted.store(false, Ordering::Release);
    }

    pub(crate) fn rename(&self, name: Arc<str>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

/// A tree whose versions stay known, up to the number of a moment, while a checkpoint of that moment is made.
pub(crate) struct HeldTree(Arc<TreeState>, Hold);

impl HeldTree {
    pub(crate) fn new(state: &Arc<TreeState>, number: u64) -> Self {
        let hold = state.history().hold(number);
        Self(Arc::clone(state), hold)
    }
}

impl Deref for HeldTree {
    type Target = TreeState;

    fn deref(&self) -> &TreeState {
        &self.0
    }
}

impl Drop for HeldTree {
    fn drop(&mut self) {
        let held = self.0.history().end_hold(self.1);
        drop(held); // It may be large, and the lock is given back.
    }
}
