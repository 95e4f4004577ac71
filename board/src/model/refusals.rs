//! Whether the disk has room: a refused commit is noted, and so is the next text that is taken. Also whether the
//! journal has failed, so that no page has to ask the journal.
//!
//! While the disk is full, a try tells whether messages are taken, at most once a second: a commit that is as large as
//! a message, and changes nothing that anybody sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex as StdMutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Instant;

use weald::sync::Mutex;

use super::store::{Failure, Store};

/// Whether the disk takes texts, as far as is known, and whether the journal takes any.
pub(crate) struct Refusals {
    /// The disk is full, or the system refused a file, and no text was taken since. Relaxed everywhere: it is a hint,
    /// and orders nothing.
    pub(crate) is_full: AtomicBool,
    pub(crate) tried: Mutex<Option<Instant>>,
    /// Waits for the failure; `None` after it, or if there can be none.
    failure: StdMutex<Option<Failure>>,
    has_failed: AtomicBool,
}

impl Refusals {
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            is_full: AtomicBool::new(false),
            tried: Mutex::new(None),
            failure: StdMutex::new(store.when_failed()),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Whether the journal has failed, after which it takes no commit.
    pub(crate) fn has_failed(&self) -> bool {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waits) = &mut *failure
            && waits
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        {
            *failure = None;
            self.has_failed.store(true, Ordering::Relaxed);
        }
        self.has_failed.load(Ordering::Relaxed)
    }
}
