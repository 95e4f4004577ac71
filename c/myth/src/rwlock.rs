//! The lock for many readers or one writer.
//!
//! Who unlocks it hands it over: to the first writer that waits, or to the first reader and the readers right behind
//! it. By default a reader also enters while writers wait, as the default kind of MassiveThreads says; the two kinds
//! that prefer writers let it wait behind them.

use std::{
    cell::Cell,
    ffi::{c_int, c_long},
    time::Instant,
};

use crate::{
    queue::{Locked, Node, Queue, Taken},
    wait::{Ended, wait_in_until},
};

/// The default kind; the two others prefer writers.
const PREFER_READER: c_int = 0;
const LAST_KIND: c_int = 2;

/// How somebody wants to use it. Also the notes of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Beside other readers.
    Read,
    /// Alone.
    Write,
}

const READER: u32 = 0;
const WRITER: u32 = 1;

/// `myth_rwlock_t`. Zero is a free one of the default kind.
#[repr(C)]
pub(crate) struct RwLock {
    queue: Queue,
    /// How many readers have it; -1: a writer has. Only under the queue's lock.
    holders: Cell<c_long>,
    reserved: [usize; 2],
    kind: c_int,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RwLock>() == 40);

impl RwLock {
    /// A free lock.
    ///
    /// # Errors
    /// `EINVAL` if there is no such kind.
    pub(crate) fn new(kind: c_int) -> Result<RwLock, c_int> {
        if !(PREFER_READER..=LAST_KIND).contains(&kind) {
            return Err(libc::EINVAL);
        }
        Ok(RwLock {
            queue: Queue::new(),
            holders: Cell::new(0),
            reserved: [0; 2],
            kind,
        })
    }

    /// Locks it, waiting until `deadline` at the latest. `None`: as long as it takes.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub(crate) fn lock(&self, access: Access, deadline: Option<Instant>) -> Result<(), c_int> {
        let note = match access {
            Access::Read => READER,
            Access::Write => WRITER,
        };
        let node = Node::new(note);
        let ended = wait_in_until(&self.queue, &node, deadline, |node| {
            let mut queue = self.queue.lock();
            let entered = self.enter(&queue, access);
            if !entered {
                queue.push(node);
            }
            !entered
        });
        match ended {
            Ended::Woken => Ok(()),
            Ended::TimedOut => {
                // A writer that gave up may have kept readers behind it.
                self.hand_over(self.queue.lock());
                Err(libc::ETIMEDOUT)
            }
        }
    }

    /// Locks it if nothing speaks against it.
    ///
    /// # Errors
    /// `EBUSY`.
    pub(crate) fn try_lock(&self, access: Access) -> Result<(), c_int> {
        let queue = self.queue.lock();
        match self.enter(&queue, access) {
            true => Ok(()),
            false => Err(libc::EBUSY),
        }
    }

    /// Gives it up.
    ///
    /// # Errors
    /// `EPERM` if nobody has it.
    pub(crate) fn unlock(&self) -> Result<(), c_int> {
        let queue = self.queue.lock();
        match self.holders.get() {
            0 => return Err(libc::EPERM),
            -1 => self.holders.set(0),
            readers => self.holders.set(readers - 1),
        }
        self.hand_over(queue);
        Ok(())
    }

    /// Whether somebody has it.
    pub(crate) fn is_locked(&self) -> bool {
        let _queue = self.queue.lock();
        self.holders.get() != 0
    }

    /// Enters, if the caller may.
    fn enter(&self, queue: &Locked<'_>, access: Access) -> bool {
        let holders = self.holders.get();
        let may_enter = match access {
            Access::Write => holders == 0,
            Access::Read => holders >= 0 && (self.kind == PREFER_READER || queue.is_empty()),
        };
        if may_enter {
            self.holders.set(match access {
                Access::Write => -1,
                Access::Read => holders + 1,
            });
        }
        may_enter
    }

    /// Lets those enter that wait and may. Wakes them after the lock of the queue was given up: they may free the
    /// memory.
    fn hand_over(&self, mut queue: Locked<'_>) {
        let mut entered = Taken::NONE;
        while let Some(note) = queue.first_note() {
            let holders = self.holders.get();
            let holders = match note {
                WRITER if holders == 0 => -1,
                READER if holders >= 0 => holders + 1,
                _ => break,
            };
            self.holders.set(holders);
            if let Some(next) = queue.pop() {
                entered = entered.with(next);
            }
        }
        drop(queue);
        drop(entered);
    }
}
