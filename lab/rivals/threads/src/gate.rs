//! A counter that wakes the main thread when it is full.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use common::Tally;

/// The half that every unit counts on.
#[derive(Debug)]
pub(crate) struct Gate {
    tally: Tally,
    open: SyncSender<()>,
}

/// Where the main thread waits for a gate to open.
#[derive(Debug)]
pub(crate) struct Opened(Receiver<()>);

impl Gate {
    /// A gate that opens after `full` counts; it lives until the program ends.
    pub(crate) fn leak(full: usize) -> (&'static Self, Opened) {
        let (open, opened) = sync_channel(1);
        let tally = Tally::new(full);
        (Box::leak(Box::new(Self { tally, open })), Opened(opened))
    }

    /// Counts one.
    pub(crate) fn count(&self) {
        if self.tally.count() {
            self.open.send(()).expect("the main thread waits");
        }
    }
}

impl Opened {
    /// Waits until all have counted.
    pub(crate) fn wait(&self) {
        self.0.recv().expect("the gate keeps its sender");
    }
}
