//! A counter that wakes the main process when it is full.

use common::Tally;
use tokio::sync::Notify;

/// Opens when all have counted themselves.
#[derive(Debug)]
pub(crate) struct Gate {
    tally: Tally,
    open: Notify,
}

impl Gate {
    /// A gate that opens after `full` counts; it lives until the program ends.
    pub(crate) fn leak(full: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            tally: Tally::new(full),
            open: Notify::new(),
        }))
    }

    /// Counts one.
    pub(crate) fn count(&self) {
        if self.tally.count() {
            self.open.notify_one();
        }
    }

    /// Waits until all have counted; only the main process may call it.
    pub(crate) async fn wait(&self) {
        self.open.notified().await;
    }
}
