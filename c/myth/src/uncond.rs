//! The unconditional wait: each signal ends one wait, whichever of the two comes first.
//!
//! In MassiveThreads one thread may wait, and a signal spins until it does. Here signals are counted, and any number of
//! threads may wait, in eight bytes.

use std::ffi::c_int;

use crate::{
    queue::{Node, Queue},
    wait::wait_in,
};

/// `myth_uncond_t`. Zero is one without signals that nobody waits for.
#[repr(transparent)]
pub(crate) struct Uncond(Queue);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Uncond>() == 8);

impl Uncond {
    pub(crate) fn new() -> Uncond {
        Uncond(Queue::new())
    }

    /// Waits for a signal.
    pub(crate) fn wait(&self) {
        let node = Node::new(0);
        wait_in(&self.0, &node, |node| {
            let mut queue = self.0.lock();
            let signals = queue.number();
            match signals {
                0 => queue.push(node),
                _ => queue.set_number(signals - 1),
            }
            signals == 0
        });
    }

    /// Ends one wait: the first, or else the next one.
    ///
    /// # Errors
    /// `EOVERFLOW` if there were 2^61 signals without a wait.
    pub(crate) fn signal(&self) -> Result<(), c_int> {
        let mut queue = self.0.lock();
        let Some(first) = queue.pop() else {
            let signals = queue.number();
            if signals >= 1 << 61 {
                return Err(libc::EOVERFLOW);
            }
            queue.set_number(signals + 1);
            return Ok(());
        };
        // The one that it wakes may free it.
        drop(queue);
        drop(first);
        Ok(())
    }
}
