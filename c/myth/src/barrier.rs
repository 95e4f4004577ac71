//! The barrier: as many threads as it was made for wait until all have come.

use std::{
    cell::Cell,
    ffi::{c_int, c_long, c_uint},
};

use crate::{
    queue::{Node, Queue},
    wait::wait_in,
};

/// `myth_barrier_t`.
#[repr(C)]
pub(crate) struct Barrier {
    count: c_long,
    /// How many have come. Only under the queue's lock.
    arrived: Cell<c_long>,
    queue: Queue,
    reserved: usize,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Barrier>() == 32);

impl Barrier {
    /// For `count` threads.
    ///
    /// # Errors
    /// `EINVAL` if that is none.
    pub(crate) fn new(count: c_uint) -> Result<Barrier, c_int> {
        if count == 0 {
            return Err(libc::EINVAL);
        }
        Ok(Barrier {
            count: c_long::from(count),
            arrived: Cell::new(0),
            queue: Queue::new(),
            reserved: 0,
        })
    }

    /// Waits for the others. True for one of them, the one that came last.
    pub(crate) fn wait(&self) -> bool {
        let mut is_last = false;
        let node = Node::new(0);
        wait_in(&self.queue, &node, |node| {
            let mut queue = self.queue.lock();
            let arrived = self.arrived.get() + 1;
            is_last = arrived >= self.count;
            if !is_last {
                self.arrived.set(arrived);
                queue.push(node);
                return true;
            }
            self.arrived.set(0);
            let others = queue.take_all();
            // The others may free the barrier.
            drop(queue);
            drop(others);
            false
        });
        is_last
    }
}
