//! Who runs the closure of an update now, so that it is refused when it commits.
//!
//! - The mark is the forest's and names who runs, so it is taken away by value, on whatever thread.
//! - Who runs is the thread, unless the one who built the forest says otherwise: a runtime whose units
//!   of execution share threads and wait in closures names the unit, else one would stand for all.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::CommitError;

/// Says which unit of a runtime runs now; nothing, if none does.
pub(crate) type Running = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// One who runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Thread(u64),
    Named(u64),
}

/// Those who run closures of updates of one forest.
pub(crate) struct Insiders {
    running: Running,
    units: Mutex<Vec<Unit>>,
    /// How many there are. Relaxed everywhere, for it is asked only about oneself: whoever is counted
    /// finds its own store.
    count: AtomicUsize,
}

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
}

impl Insiders {
    pub(crate) fn new(running: Running) -> Self {
        Self {
            running,
            units: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Marks who runs now until the mark is dropped.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let unit = self.unit();
        self.units().push(unit);
        self.count.fetch_add(1, Ordering::Relaxed);
        Inside(self, unit)
    }

    /// Whether who runs now runs no closure of an update of this forest.
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

/// The time in which a closure runs.
pub(crate) struct Inside<'a>(&'a Insiders, Unit);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut units = self.0.units();
        if let Some(at) = units.iter().position(|unit| *unit == self.1) {
            units.swap_remove(at);
        }
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
