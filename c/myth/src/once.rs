//! A function that is called once, however many threads ask for it.

use std::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Release},
};

use crate::{
    queue::{Node, Queue},
    wait::wait_in,
};

const NEW: i32 = 0;
const IN_PROGRESS: i32 = 1;
const COMPLETED: i32 = 2;

/// `myth_once_t`. Zero is one whose function was not called.
#[repr(transparent)]
pub(crate) struct Once(AtomicI32);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Once>() == 4);

/// Threads that wait for a function that another one calls, for all `Once` of the program: they have no room for a
/// queue, and the wait is rare.
#[cfg(not(loom))]
static WAITERS: Queue = Queue::new();
#[cfg(loom)]
static WAITERS: std::sync::LazyLock<Queue> = std::sync::LazyLock::new(Queue::new);

impl Once {
    /// Calls `function`, or waits until the call that another thread has begun has ended.
    pub(crate) fn call(&self, function: impl FnOnce()) {
        // Pairs with the release below.
        match self.0.compare_exchange(NEW, IN_PROGRESS, Acquire, Acquire) {
            Ok(_) => {
                function();
                self.0.store(COMPLETED, Release);
                let all = WAITERS.lock().take_all();
                drop(all);
            }
            Err(COMPLETED) => {}
            Err(_) => self.wait(),
        }
    }

    fn wait(&self) {
        let is_over = || self.0.load(Acquire) == COMPLETED;
        while !is_over() {
            let node = Node::new(0);
            wait_in(&WAITERS, &node, |node| {
                let mut queue = WAITERS.lock();
                // Under the lock: who completes it takes the lock afterwards.
                let waits = !is_over();
                if waits {
                    queue.push(node);
                }
                waits
            });
        }
    }
}
