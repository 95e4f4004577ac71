//! The OS threads of a runtime: who holds a right, who stands by, who wants one.
//!
//! Invariants:
//! - A right is in exactly one place: held by a serving thread, offered to one, or being handed over.
//! - A thread that stands by is in `spares` or in `wanting`, never in both.
//! - A thread on which local jobs live never retires: they may run nowhere else.
//!
//! Stand-ins are made when a right needs a holder and no spare is there, up to the bound; a spare that
//! nobody needed for a while retires.

#![allow(unsafe_code)]

use std::{sync::Arc, thread::Thread};

use crate::{
    biased_lock::Lease,
    scheduler::{stackful::pinned::PinnedQueue, workers::shared::Shared},
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// The right to a worker, on its way to a thread.
#[must_use = "a handoff that is dropped is a worker that nobody serves"]
pub(crate) struct Handoff {
    pub(crate) worker: usize,
    pub(crate) lease: Lease,
}

/// One thread of the crew.
pub(super) struct PoolThread {
    pub(super) pinned: Arc<PinnedQueue>,
    pub(super) thread: Thread,
    pub(super) offer: Mutex<Option<Handoff>>,
}

/// All threads of a runtime.
pub(crate) struct ThreadPool {
    inner: Mutex<PoolLists>,
    /// How many threads want a right; the length of `wanting`, for workers that look.
    wanted: AtomicUsize,
}

struct PoolLists {
    spares: Vec<Arc<PoolThread>>,
    wanting: Vec<Arc<PoolThread>>,
    /// Threads that have started and not ended.
    threads: usize,
}

/// In which list a thread is that stands by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAs {
    Spare,
    Wanting,
}

/// No thread can be had for a right: as many stand-ins as allowed are there, or the system refuses.
pub(crate) struct NoThread {
    pub(crate) handoff: Handoff,
    /// Why the system refused, if it was asked.
    pub(crate) error: Option<std::io::Error>,
}

impl ThreadPool {
    pub(crate) fn new() -> ThreadPool {
        ThreadPool {
            inner: Mutex::new(PoolLists {
                spares: Vec::new(),
                wanting: Vec::new(),
                threads: 0,
            }),
            wanted: AtomicUsize::new(0),
        }
    }

    /// Whether a thread wants a right. Any thread.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.inner).threads
    }

    /// Whether a right could be given to a thread now, standing by or new.
    pub(crate) fn has_spare_thread(&self, shared: &Shared) -> bool {
        let inner = lock(&self.inner);
        let idle = inner.spares.len() + inner.wanting.len();
        idle > 0 || inner.threads < shared.most_threads()
    }

    /// Counts a thread that is about to start, if there may be `most`; returns their number.
    pub(super) fn count_new(&self, most: usize) -> Option<usize> {
        let mut inner = lock(&self.inner);
        if inner.threads >= most {
            return None;
        }
        inner.threads += 1;
        Some(inner.threads)
    }

    /// A thread has ended, or could not start.
    pub(super) fn uncount(&self) {
        lock(&self.inner).threads -= 1;
    }

    /// Wakes every thread that stands by, so that it sees that the runtime stops.
    pub(crate) fn dismiss(&self) {
        let inner = lock(&self.inner);
        for member in inner.spares.iter().chain(&inner.wanting) {
            member.thread.unpark();
        }
    }

    /// Takes a thread that stands by: first one that wants a right, then the latest spare.
    pub(super) fn take_idle(&self) -> Option<Arc<PoolThread>> {
        let mut inner = lock(&self.inner);
        if let Some(member) = inner.wanting.pop() {
            self.wanted.store(inner.wanting.len(), Ordering::Release);
            return Some(member);
        }
        inner.spares.pop()
    }

    pub(super) fn enlist(&self, member: &Arc<PoolThread>, shared: &Shared) -> IdleAs {
        let mut inner = lock(&self.inner);
        if !member.pinned.has_runnable() {
            inner.spares.push(member.clone());
            return IdleAs::Spare;
        }
        inner.wanting.push(member.clone());
        self.wanted.store(inner.wanting.len(), Ordering::Release);
        drop(inner);
        // A worker that sleeps looks at what is wanted when it wakes.
        shared.wake_one();
        IdleAs::Wanting
    }

    /// Leaves whichever list the member is in. False if it is in none: an offer is under way.
    pub(super) fn delist(&self, member: &Arc<PoolThread>) -> bool {
        let mut inner = lock(&self.inner);
        let before = inner.spares.len() + inner.wanting.len();
        inner.spares.retain(|other| !Arc::ptr_eq(other, member));
        inner.wanting.retain(|other| !Arc::ptr_eq(other, member));
        self.wanted.store(inner.wanting.len(), Ordering::Release);
        inner.spares.len() + inner.wanting.len() < before
    }
}
