//! A tree of the forest as its writers and readers share it: the slot with the newest root, and the past.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::past::Past;
use crate::root::Root;

/// All versions of one tree. It keeps its number for ever and may change its name.
pub(crate) struct Line {
    pub(crate) number: u64,
    /// The newest root. Only the combiner stores, and only while it holds the past, so who has seen a
    /// root in the slot finds it in the past.
    pub(crate) slot: ArcSwap<Root>,
    past: Mutex<Past>,
    name: Mutex<Arc<str>>,
    is_deleted: AtomicBool,
}

impl Line {
    pub(crate) fn new(number: u64, name: Arc<str>, first: Arc<Root>) -> Self {
        Self {
            number,
            past: Mutex::new(Past::new(Arc::clone(&first))),
            slot: ArcSwap::new(first),
            name: Mutex::new(name),
            is_deleted: AtomicBool::new(false),
        }
    }

    pub(crate) fn past(&self) -> MutexGuard<'_, Past> {
        // Nothing between two changes of the past can panic, so it is whole even if a reader did.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_deleted(&self) -> bool {
        // Acquire: pairs with the store in `delete`, so who sees it finds the last version in the slot.
        self.is_deleted.load(Ordering::Acquire)
    }

    pub(crate) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Release);
    }

    pub(crate) fn rename(&self, name: Arc<str>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}
