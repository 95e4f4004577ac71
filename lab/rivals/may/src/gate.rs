//! A counter that wakes the main process when it is full.

use common::Tally;
use may::sync::SyncFlag;

/// Opens when all have counted themselves.
#[derive(Debug)]
pub(crate) struct Gate {
    tally: Tally,
    open: SyncFlag,
}

impl Gate {
    /// A gate that opens after `full` counts; it lives until the program ends.
    pub(crate) fn leak(full: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            tally: Tally::new(full),
            open: SyncFlag::new(),
        }))
    }

    /// Counts one.
    pub(crate) fn count(&self) {
        if self.tally.count() {
            self.open.fire();
        }
    }

    /// Waits until all have counted; only the main process may call it.
    pub(crate) fn wait(&self) {
        self.open.wait();
    }
}
