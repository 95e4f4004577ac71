//! A latch at which tests block OS threads.

#![allow(dead_code, reason = "each test file uses only some of it")]

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Blocks threads until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Blocker(Arc<(Mutex<bool>, Condvar, AtomicUsize)>);

impl Blocker {
    pub(crate) fn block(&self) {
        self.0.2.fetch_add(1, Ordering::SeqCst);
        let mut open = self.0.0.lock().unwrap();
        while !*open {
            open = self.0.1.wait(open).unwrap();
        }
    }

    /// Blocks until it is opened, but no longer than this.
    pub(crate) fn block_for(&self, most: Duration) {
        let open = self.0.0.lock().unwrap();
        drop(
            self.0
                .1
                .wait_timeout_while(open, most, |open| !*open)
                .unwrap(),
        );
    }

    /// How many have begun to block.
    pub(crate) fn begun(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }

    /// Threads that come from now on block again.
    pub(crate) fn close(&self) {
        *self.0.0.lock().unwrap() = false;
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}
