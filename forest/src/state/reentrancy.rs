//! Which units run closures of updates now, so that a commit inside such a closure is refused.
//!
//! - A mark belongs to the forest and names the unit, so it is removed by value, on whatever thread.
//! - The unit is the thread, unless the builder of the forest was given a function that names it: a runtime
//!   whose units share threads and wait inside closures needs that, or one unit would stand for all.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    /// How many units are marked. Relaxed everywhere, because a unit only asks about itself: one that is
    /// marked finds its own store.
    count: AtomicUsize,
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
