//! The unconditional wait: a wait and a signal meet, and whichever of the two comes first waits for the other.
//!
//! If signals were counted, a thread that signals and then waits could take its own. So a thread that signals waits
//! until somebody waits, as in MassiveThreads, where it spins and one thread may wait. Here it suspends, and any number
//! of threads may be on either side, in eight bytes.

use crate::{
    queue::{Locked, Node, Queue, Taken},
    wait::wait_in,
};

/// The note of one that waits for a signal.
const WAITS: u32 = 0;
/// The note of one whose signal waits for somebody.
const SIGNALS: u32 = 1;

/// `myth_uncond_t`. Its queue has threads of one side only. Zero is one without any.
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
        self.meet(WAITS);
    }

    /// Ends one wait, the one that began first. If there is none, waits until one begins.
    pub(crate) fn signal(&self) {
        // What does not wait costs no more than the queue's lock.
        let waiter = take_other(&mut self.0.lock(), SIGNALS);
        if waiter.is_none() {
            self.meet(SIGNALS);
        }
    }

    fn meet(&self, side: u32) {
        let node = Node::new(side);
        wait_in(&self.0, &node, |node| {
            let mut queue = self.0.lock();
            let other = take_other(&mut queue, side);
            if other.is_none() {
                queue.push(node);
            }
            // The one that it wakes may free it.
            drop(queue);
            other.is_none()
        });
    }
}

/// Takes the first thread of the other side.
fn take_other(queue: &mut Locked<'_>, side: u32) -> Option<Taken> {
    match queue.first_note()? == side {
        true => None,
        false => queue.pop(),
    }
}
