//! Jobs that may run on one OS thread only: non-`Send` futures, and those whose stack stands.
//!
//! Their home is a queue that belongs to the thread. Every wake of such a job, from whichever thread,
//! ends here, and unparks the home's thread if it comes from another one. The thread takes from its home
//! when it holds a right, or while it is inside `block_on`.
//!
//! # Safety
//! **own thread**: the part of a home that is not behind a lock is touched by the home's thread only;
//! whoever touches it has seen that the calling thread's context names this very home.

#![allow(unsafe_code)]

use std::{
    cell::{Cell, UnsafeCell},
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread, ThreadId},
};

use crate::{
    job::{JobPtr, runnable::Runnable},
    reactor::Reactor,
    report::{self, JobName},
    scheduler::workers::context,
    sys::{Mutex, lock},
};

/// The queue of one thread.
pub(crate) struct PinnedQueue {
    thread: Thread,
    /// What other threads have woken.
    incoming: Mutex<VecDeque<JobPtr>>,
    /// How many these are, for those who only look.
    incoming_len: AtomicUsize,
    /// The reactor that the thread waits in instead of parking.
    polled_reactor: Mutex<Option<Arc<Reactor>>>,
    /// Set when the thread will never take from the queue again.
    closed: AtomicBool,
    own: Own,
}

/// What the home's thread keeps to itself.
struct Own {
    /// Jobs that can run.
    runnable: UnsafeCell<VecDeque<JobPtr>>,
    /// Jobs that live here, runnable or not. A thread with one never retires.
    pinned_jobs: Cell<usize>,
}

// SAFETY: own thread.
unsafe impl Sync for Own {}
// SAFETY: own thread: a home moves to another thread only as a shared reference, or to be dropped.
unsafe impl Send for Own {}

/// While it lives, the home's thread waits in a reactor.
pub(crate) struct PollerWait<'a>(&'a PinnedQueue);

impl Drop for PollerWait<'_> {
    fn drop(&mut self) {
        lock(&self.0.polled_reactor).take();
    }
}

impl PinnedQueue {
    /// The home of the calling thread.
    pub(crate) fn new() -> PinnedQueue {
        PinnedQueue {
            thread: thread::current(),
            incoming: Mutex::new(VecDeque::new()),
            incoming_len: AtomicUsize::new(0),
            polled_reactor: Mutex::new(None),
            closed: AtomicBool::new(false),
            own: Own {
                runnable: UnsafeCell::new(VecDeque::new()),
                pinned_jobs: Cell::new(0),
            },
        }
    }

    /// Queues a job that lives here. Any thread. If the thread has ended, the job leaks, and is named:
    /// its future may not be dropped by anyone else.
    pub(crate) fn push(&self, job: Runnable) {
        match self.is_current() {
            true => self.push_own(job),
            false => self.push_foreign(job),
        }
    }

    /// Queues a job, on the home's thread.
    #[inline(always)]
    pub(crate) fn push_own(&self, job: Runnable) {
        debug_assert!(self.is_here(), "only the home's thread queues so");
        // SAFETY: own thread: the caller has seen it.
        unsafe { &mut *self.own.runnable.get() }.push_back(job.into_ptr());
    }

    fn push_foreign(&self, job: Runnable) {
        let mut incoming = lock(&self.incoming);
        if self.closed.load(Ordering::Acquire) && !self.is_here() {
            drop(incoming);
            report::stranded(&JobName::of(job.header()));
            job.into_ptr();
            return;
        }
        incoming.push_back(job.into_ptr());
        // Release: pairs with `has_runnable`; the unpark below orders it for a parked thread.
        self.incoming_len.store(incoming.len(), Ordering::Release);
        drop(incoming);
        self.thread.unpark();
        if let Some(reactor) = &*lock(&self.polled_reactor) {
            reactor.notify();
        }
    }

    /// The home's thread is about to wait in `reactor`, unless a job can run already.
    pub(crate) fn notify_through(&self, reactor: &Arc<Reactor>) -> PollerWait<'_> {
        // The lock orders: a job that is queued later finds this, one queued before is seen.
        *lock(&self.polled_reactor) = Some(reactor.clone());
        PollerWait(self)
    }

    /// Takes the first job that can run. The home's thread only.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.incoming_len.load(Ordering::Acquire) > 0 {
            self.drain_incoming();
        }
        self.pop_own()
    }

    /// Takes the first job that this thread knows of. The home's thread only.
    #[inline(always)]
    pub(crate) fn pop_own(&self) -> Option<Runnable> {
        debug_assert!(self.is_here(), "only the home's thread takes");
        // SAFETY: own thread: the caller's promise.
        let job = unsafe { &mut *self.own.runnable.get() }.pop_front();
        // SAFETY: the queue held the job's right to run, which `push` took from a runnable.
        job.map(|job| unsafe { Runnable::new(job) })
    }

    #[cold]
    fn drain_incoming(&self) {
        let mut incoming = lock(&self.incoming);
        // SAFETY: own thread: the caller's promise.
        unsafe { &mut *self.own.runnable.get() }.append(&mut incoming);
        self.incoming_len.store(0, Ordering::Release);
    }

    /// Whether the thread knows of a job that can run. The home's thread only.
    #[inline(always)]
    pub(crate) fn has_own(&self) -> bool {
        // SAFETY: own thread: the caller's promise.
        !unsafe { &*self.own.runnable.get() }.is_empty()
    }

    /// How many jobs can run of which the thread knows. The home's thread only.
    pub(crate) fn own_len(&self) -> usize {
        // SAFETY: own thread: the caller's promise.
        unsafe { &*self.own.runnable.get() }.len()
    }

    /// Whether a job can run. The home's thread only.
    pub(crate) fn has_runnable(&self) -> bool {
        debug_assert!(self.is_here(), "only the home's thread looks");
        // SAFETY: own thread: the caller's promise.
        let own = unsafe { &*self.own.runnable.get() };
        !own.is_empty() || self.incoming_len.load(Ordering::Acquire) > 0
    }

    /// How many jobs can run. The home's thread only.
    pub(crate) fn len(&self) -> usize {
        debug_assert!(self.is_here(), "only the home's thread looks");
        // SAFETY: own thread: the caller's promise.
        let own = unsafe { &*self.own.runnable.get() }.len();
        own + self.incoming_len.load(Ordering::Acquire)
    }

    /// Whether the caller is on the home's thread.
    pub(crate) fn is_here(&self) -> bool {
        self.thread_id() == thread::current().id()
    }

    /// Whether the caller is on the home's thread, and that works for this home at this moment.
    #[inline(always)]
    fn is_current(&self) -> bool {
        std::ptr::eq(context::here().pinned_ptr(), self)
    }

    pub(crate) fn thread_id(&self) -> ThreadId {
        self.thread.id()
    }

    /// A job moves in, or out. The home's thread only.
    #[inline(always)]
    pub(crate) fn count_pinned(&self, change: PinChange) {
        debug_assert!(self.is_here(), "only the home's thread counts");
        let pinned_jobs = &self.own.pinned_jobs;
        pinned_jobs.set(match change {
            PinChange::Pinned => pinned_jobs.get() + 1,
            PinChange::Unpinned => pinned_jobs.get() - 1,
        });
    }

    /// Whether any job lives here. The home's thread only.
    pub(crate) fn has_pinned_jobs(&self) -> bool {
        self.own.pinned_jobs.get() > 0
    }

    /// From now on only the home's own thread may queue jobs. The home's thread only.
    pub(crate) fn close(&self) {
        let _incoming = lock(&self.incoming);
        self.closed.store(true, Ordering::Release);
    }
}

/// Whether a job begins or ends to live at a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinChange {
    /// It was spawned here.
    Pinned,
    /// It has ended.
    Unpinned,
}
