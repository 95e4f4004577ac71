//! Which units run closures of updates now, and which threads are in a journal, so that a commit there is refused.
//!
//! - A mark belongs to the forest and names the unit, so it is removed by value, on whatever thread.
//! - The unit is the thread, unless the builder of the forest was given a function that names the unit. A
//!   runtime whose units share threads and wait inside closures needs that function; otherwise one unit would
//!   stand for all.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::CommitError;

/// Returns which unit of a runtime runs now; `None`, if none does.
pub(crate) type Running = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// A unit of execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Thread(u64),
    Named(u64),
}

/// The units that run closures of updates of one forest.
pub(crate) struct Reentrancy {
    running: Running,
    units: Mutex<Vec<Unit>>,
    /// How many units are marked. Relaxed everywhere, because a unit only asks about itself, and a marked
    /// unit sees its own store.
    count: AtomicUsize,
    /// Whether an answer of the journal has to be polled again. Relaxed: only the combiner's thread uses it.
    is_restless: AtomicBool,
}

thread_local! {
    /// The forests whose journals take a record on this thread, by address, the innermost last.
    static JOURNALS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
}

impl Reentrancy {
    pub(crate) fn new(running: Running) -> Self {
        Self {
            running,
            units: Mutex::default(),
            count: AtomicUsize::new(0),
            is_restless: AtomicBool::new(false),
        }
    }

    /// Marks the running unit until the mark is dropped.
    pub(crate) fn enter(&self) -> Mark<'_> {
        let unit = self.unit();
        self.units().push(unit);
        self.count.fetch_add(1, Ordering::Relaxed);
        Mark(self, unit)
    }

    /// Checks that the running unit runs no closure of an update of this forest.
    ///
    /// # Errors
    /// [`CommitError::Reentrant`], if it does.
    pub(crate) fn must_be_outside(&self) -> Result<(), CommitError> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let unit = self.unit();
        if self.units().contains(&unit) {
            return Err(CommitError::Reentrant);
        }
        Ok(())
    }

    /// Calls the journal, with the right to commit.
    pub(crate) fn in_journal<R>(&self, call: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                JOURNALS.with(|journals| _ = journals.borrow_mut().pop());
            }
        }
        JOURNALS.with(|journals| journals.borrow_mut().push(self.address()));
        let _leave = Leave;
        call()
    }

    /// Whether this thread is in the journal; then no other thread can give back the right to commit.
    pub(crate) fn is_in_journal(&self) -> bool {
        JOURNALS.with(|journals| journals.borrow().contains(&self.address()))
    }

    /// The journal woke the forest while it was called by it.
    pub(crate) fn set_restless(&self) {
        self.is_restless.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_restless(&self) -> bool {
        self.is_restless.load(Ordering::Relaxed) && self.is_restless.swap(false, Ordering::Relaxed)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn unit(&self) -> Unit {
        (self.running)().map_or_else(|| Unit::Thread(THREAD.with(|number| *number)), Unit::Named)
    }

    fn units(&self) -> MutexGuard<'_, Vec<Unit>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a unit while its closure runs.
pub(crate) struct Mark<'a>(&'a Reentrancy, Unit);

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let mut units = self.0.units();
        if let Some(at) = units.iter().position(|unit| *unit == self.1) {
            units.swap_remove(at);
        }
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
