//! The condition variable: a queue of threads that wait with a mutex.

use std::{ffi::c_int, time::Instant};

use crate::{
    mutex::Mutex,
    queue::{Node, Queue},
    wait::{Ended, wait_in_until},
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
    /// `EPERM` if the caller has not locked the mutex, `ETIMEDOUT` if the deadline passed first. In the second case it
    /// has the mutex again.
    pub(crate) fn wait(&self, mutex: &Mutex, deadline: Option<Instant>) -> Result<(), c_int> {
        let node = Node::new(0);
        let mut unlocked = Err(libc::EPERM);
        let ended = wait_in_until(&self.queue, &node, deadline, |node| {
            // In the queue first: who locks the mutex next may signal.
            let mut queue = self.queue.lock();
            queue.push(node);
            drop(queue);
            unlocked = mutex.unlock_fully();
            unlocked.is_ok() || !self.queue.lock().remove(node)
        });
        mutex.lock_fully(unlocked?)?;
        match ended {
            Ended::Woken => Ok(()),
            Ended::TimedOut => Err(libc::ETIMEDOUT),
        }
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
