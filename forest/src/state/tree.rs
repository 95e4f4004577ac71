//! The state of a tree, which its writers and readers share: the slot with the newest root, and the history.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weald_memory::{Shared, Slot};

use super::history::{History, Hold};
use super::name::{Name, Sought};
use super::root::{Root, RootRef};

/// A tree that several hold.
pub(crate) type TreeRef = Shared<TreeState>;

/// All versions of one tree. Its number never changes; its name may.
pub(crate) struct TreeState {
    pub(crate) number: u64,
    /// The newest root. Only the combiner stores here, and only while it holds the history's lock, so a
    /// reader that has seen a root in the slot finds it in the history.
    pub(crate) slot: Slot<Root>,
    history: Mutex<History>,
    name: Mutex<Name>,
    /// The greatest id of a node that a visible commit has brought; less for a tree that was created from others'
    /// nodes. Only the combiner uses it, and only the combiner changes the word. With [`DELETED`], if the tree is.
    last_id: AtomicU64,
}

/// No id has this bit.
const DELETED: u64 = 1 << 63;

impl TreeState {
    pub(crate) fn new(number: u64, name: &str, first: RootRef) -> Self {
        // It has at least as many ids, and they are in its first record.
        let last_id = AtomicU64::new(first.tree.len());
        Self {
            number,
            last_id,
            history: Mutex::new(History::new(first.clone())),
            slot: Slot::new(first),
            name: Mutex::new(Name::new(name)),
        }
    }

    /// A tree with all its versions. Its source of ids is behind all that were given out before.
    pub(crate) fn of(number: u64, name: &str, history: History) -> Self {
        let last_id = AtomicU64::new(history.newest().tree.ids().last());
        Self {
            number,
            last_id,
            slot: Slot::new(history.newest().clone()),
            history: Mutex::new(history),
            name: Mutex::new(Name::new(name)),
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        // Nothing between two changes of the history can panic, so it is whole even if a reader panicked.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> Name {
        Name::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How its name compares with one that is sought.
    #[inline]
    pub(crate) fn compare_name(&self, sought: &Sought<'_>) -> Ordering {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        sought.order_of(&name)
    }

    /// A commit with this greatest id is about to be published; returns by how much it exceeds the former greatest.
    /// Called by the combiner only, so the word does not change meanwhile.
    #[inline]
    pub(crate) fn bring(&self, last_id: u64) -> u64 {
        let word = self.last_id.load(Relaxed);
        let before = word & !DELETED;
        if last_id > before {
            // Release: as in `delete`, if the tree is deleted.
            self.last_id.store(word & DELETED | last_id, Release);
        }
        last_id.saturating_sub(before)
    }

    pub(crate) fn is_deleted(&self) -> bool {
        // Acquire: pairs with the store in `delete`; a reader that sees the flag finds the last version in
        // the slot.
        self.last_id.load(Acquire) & DELETED != 0
    }

    pub(crate) fn delete(&self) {
        self.last_id.fetch_or(DELETED, Release);
    }

    /// A deletion is taken back.
    pub(crate) fn undelete(&self) {
        self.last_id.fetch_and(!DELETED, Release);
    }

    /// Called by [`Names::rename`](super::names::Names::rename) only.
    pub(crate) fn rename(&self, name: Name) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

/// A tree whose versions stay known, up to the number of a moment, while a checkpoint of that moment is made.
pub(crate) struct HeldTree(TreeRef, Hold);

impl HeldTree {
    pub(crate) fn new(state: &TreeRef, number: u64) -> Self {
        let hold = state.history().hold(number);
        Self(state.clone(), hold)
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
