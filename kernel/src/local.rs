//! Jobs that may run on one OS thread only: non-`Send` futures.
//!
//! Their home is a queue that belongs to the thread. Every wake of such a job, from whichever thread,
//! ends here, and unparks the home's thread. The thread takes from its home when it holds a right, or
//! while it is inside `block_on`.

#![allow(unsafe_code)]

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{Thread, ThreadId},
};

use crate::{
    job::{JobPtr, JobRef},
    join, report,
    runnable::Runnable,
    shared::Shared,
    sys::{Mutex, lock},
};

/// The queue of one thread.
pub(crate) struct Home {
    thread: Thread,
    runnable: Mutex<VecDeque<JobPtr>>,
    /// The queue's length, for those who only look.
    len: AtomicUsize,
    /// Jobs that live here, runnable or not. A thread with one never retires.
    residents: AtomicUsize,
    /// Set when the thread will never take from the queue again.
    closed: AtomicBool,
}

impl Home {
    /// The home of the calling thread.
    pub(crate) fn new() -> Home {
        Home {
            thread: std::thread::current(),
            runnable: Mutex::new(VecDeque::new()),
            len: AtomicUsize::new(0),
            residents: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Queues a job that lives here. Any thread. If the thread has ended, the job leaks, and is named:
    /// its future may not be dropped by anyone else.
    pub(crate) fn push(&self, job: Runnable) {
        let mut runnable = lock(&self.runnable);
        if self.closed.load(Ordering::Acquire) && !self.is_here() {
            drop(runnable);
            report::stranded(job.header());
            job.into_ptr();
            return;
        }
        runnable.push_back(job.into_ptr());
        // Release: pairs with `has_runnable`; the unpark below orders it for a parked thread.
        self.len.store(runnable.len(), Ordering::Release);
        drop(runnable);
        self.thread.unpark();
    }

    /// Takes the first job that can run. The home's thread only.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if !self.has_runnable() {
            return None;
        }
        let mut runnable = lock(&self.runnable);
        let job = runnable.pop_front();
        self.len.store(runnable.len(), Ordering::Release);
        // SAFETY: the queue held the job's right to run, which `push` took from a runnable.
        job.map(|job| unsafe { Runnable::new(job) })
    }

    pub(crate) fn has_runnable(&self) -> bool {
        self.len() > 0
    }

    /// How many jobs can run.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether the caller is on the home's thread.
    pub(crate) fn is_here(&self) -> bool {
        self.thread_id() == std::thread::current().id()
    }

    pub(crate) fn thread_id(&self) -> ThreadId {
        self.thread.id()
    }

    /// A job moves in, or out.
    pub(crate) fn count_resident(&self, change: Resident) {
        match change {
            Resident::MovesIn => self.residents.fetch_add(1, Ordering::AcqRel),
            Resident::MovesOut => self.residents.fetch_sub(1, Ordering::AcqRel),
        };
    }

    pub(crate) fn has_residents(&self) -> bool {
        self.residents.load(Ordering::Acquire) > 0
    }

    /// From now on only the home's own thread may queue jobs. The home's thread only.
    pub(crate) fn close(&self) {
        let _runnable = lock(&self.runnable);
        self.closed.store(true, Ordering::Release);
    }
}

/// Ends every job that lives at `home`, whose thread is about to leave. The home's thread only.
pub(crate) fn evict(shared: &Shared, home: &Arc<Home>) {
    while home.has_residents() {
        let here = |job: &JobRef| {
            job.header()
                .home()
                .is_some_and(|other| Arc::ptr_eq(&other, home))
        };
        for job in shared.live_jobs().into_iter().filter(here) {
            join::cancel(&job);
        }
        while let Some(job) = home.pop() {
            // Dropping a runnable cancels its job, on this thread as it must be.
            drop(job);
        }
        std::thread::yield_now();
    }
    // Only now: until the last resident has ended, whoever wakes one must find its home open.
    home.close();
}

/// Whether a job begins or ends to live at a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resident {
    /// It was spawned here.
    MovesIn,
    /// It has ended.
    MovesOut,
}
