//! The state of a tree, which its writers and readers share: the slot with the newest root, and the history.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use super::history::History;
use super::root::Root;

/// All versions of one tree. Its number never changes; its name may.
pub(crate) struct TreeState {
    pub(crate) number: u64,
    /// The newest root. Only the combiner stores here, and only while it holds the history's lock, so a
    /// reader that has seen a root in the slot finds it in the history.
    pub(crate) slot: ArcSwap<Root>,
    history: Mutex<History>,
    name: Mutex<Arc<str>>,
    is_deleted: AtomicBool,
}

impl TreeState {
    pub(crate) fn new(number: u64, name: Arc<str>, first: Arc<Root>) -> Self {
        Self {
            number,
            history: Mutex::new(History::new(Arc::clone(&first))),
            slot: ArcSwap::new(first),
            name: Mutex::new(name),
            is_deleted: AtomicBool::new(false),
        }
    }

    /// A tree with all its versions.
    pub(crate) fn of(number: u64, name: Arc<str>, history: History) -> Self {
        Self {
            number,
            slot: ArcSwap::new(Arc::clone(history.newest())),
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
