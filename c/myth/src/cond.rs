//! The condition variable: a queue of threads that wait with a mutex.

use std::{ffi::c_int, time::Instant};

use crate::{
    mutex::{Depth, Mutex},
    queue::{Node, Queue},
    wait::{Ended, wait_in, wait_in_until},
};

/// `myth_cond_t`. Zero is one that nobody waits for.
#[repr(C)]
pub(crate) struct Cond {
    queue: Queue,
    reserved: [usize; 3],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Cond>() == 32);

impl Cond {
    pub(crate) fn new() -> Cond {
        Cond {
            queue: Queue::new(),
            reserved: [0; 3],
        }
    }

    /// Unlocks `mutex`, waits until somebody signals, and locks it again.
    ///
    /// # Errors
    /// `EPERM` if the caller has not locked the mutex.
    pub(crate) fn wait(&self, mutex: &Mutex) -> Result<(), c_int> {
        let node = Node::new(0);
        let mut unlocked = Err(libc::EPERM);
        wait_in(&self.queue, &node, |node| {
            self.enter(node, mutex, &mut unlocked)
        });
        mutex.lock_fully(unlocked?)
    }

    /// As [`wait`](Cond::wait), until `deadline` at the latest. None: no deadline.
    ///
    /// # Errors
    /// As there; `ETIMEDOUT` if the deadline passed first. The caller has the mutex again then.
    pub(crate) fn wait_until(&self, mutex: &Mutex, deadline: Option<Instant>) -> Result<(), c_int> {
        let node = Node::new(0);
        let mut unlocked = Err(libc::EPERM);
        let ended = wait_in_until(&self.queue, &node, deadline, |node| {
            self.enter(node, mutex, &mut unlocked)
        });
        mutex.lock_fully(unlocked?)?;
        match ended {
            Ended::Woken => Ok(()),
            Ended::TimedOut => Err(libc::ETIMEDOUT),
        }
    }

    /// Puts the node into the queue, and unlocks `mutex`. False if the caller has not locked it.
    #[inline(always)]
    fn enter(&self, node: &Node, mutex: &Mutex, unlocked: &mut Result<Depth, c_int>) -> bool {
        // In the queue first: who locks the mutex next may signal.
        self.queue.lock().push(node);
        *unlocked = mutex.unlock_fully();
        unlocked.is_ok() || !self.queue.lock().remove(node)
    }

    /// Wakes the thread that has waited longest.
    pub(crate) fn signal(&self) {
        let first = self.queue.lock().pop();
        drop(first);
    }

    /// Wakes all that wait.
    pub(crate) fn broadcast(&self) {
        let all = self.queue.lock().take_all();
        drop(all);
    }
}
