//! A gate at which tests block OS threads.

use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Blocks threads until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar, AtomicUsize)>);

impl Gate {
    pub(crate) fn block(&self) {
        self.0.2.fetch_add(1, Ordering::SeqCst);
        let mut open = self.0.0.lock().unwrap();
        while !*open {
            open = self.0.1.wait(open).unwrap();
        }
    }

    /// How many have begun to block.
    pub(crate) fn begun(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}
