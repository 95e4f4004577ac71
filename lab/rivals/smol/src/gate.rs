//! A counter that wakes the main process when it is full.

use async_channel::{Receiver, Sender, bounded};
use common::Tally;

/// Opens when all have counted themselves.
#[derive(Debug)]
pub(crate) struct Gate {
    tally: Tally,
    open: Sender<()>,
    opened: Receiver<()>,
}

impl Gate {
    /// A gate that opens after `full` counts; it lives until the program ends.
    pub(crate) fn leak(full: usize) -> &'static Self {
        let (open, opened) = bounded(1);
        Box::leak(Box::new(Self {
            tally: Tally::new(full),
            open,
            opened,
        }))
    }

    /// Counts one.
    pub(crate) fn count(&self) {
        if self.tally.count() {
            self.open.try_send(()).expect("the gate opens once");
        }
    }

    /// Waits until all have counted; only the main process may call it.
    pub(crate) async fn wait(&self) {
        self.opened.recv().await.expect("the gate keeps its sender");
    }
}
