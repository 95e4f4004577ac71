//! The join counter: threads wait until it was counted down to zero.

use std::{
    cell::Cell,
    ffi::{c_int, c_long},
};

use crate::{
    queue::{Node, Queue},
    wait::wait_in,
};

/// `myth_join_counter_t`.
#[repr(C)]
pub(crate) struct JoinCounter {
    /// Only under the queue's lock.
    left: Cell<c_long>,
    queue: Queue,
    reserved: [usize; 6],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<JoinCounter>() == 64);

impl JoinCounter {
    /// To be counted down `count` times.
    ///
    /// # Errors
    /// `EINVAL` if that is negative.
    pub(crate) fn new(count: c_int) -> Result<JoinCounter, c_int> {
        if count < 0 {
            return Err(libc::EINVAL);
        }
        Ok(JoinCounter {
            left: Cell::new(c_long::from(count)),
            queue: Queue::new(),
            reserved: [0; 6],
        })
    }

    /// Waits until it is zero.
    pub(crate) fn wait(&self) {
        let node = Node::new(0);
        wait_in(&self.queue, &node, |node| {
            let mut queue = self.queue.lock();
            let waits = self.left.get() > 0;
            if waits {
                queue.push(node);
            }
            waits
        });
    }

    /// Counts down.
    ///
    /// # Errors
    /// `EINVAL` if it was zero already.
    pub(crate) fn decrement(&self) -> Result<(), c_int> {
        let mut queue = self.queue.lock();
        let left = self.left.get();
        if left <= 0 {
            return Err(libc::EINVAL);
        }
        self.left.set(left - 1);
        if left == 1 {
            let all = queue.take_all();
            // Those that it wakes may free it.
            drop(queue);
            drop(all);
        }
        Ok(())
    }
}
