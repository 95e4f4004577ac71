//! The pinned queue of a thread: jobs that only this thread may run, because their future is not `Send` or their stack
//! is suspended on it.
//!
//! Every wake of such a job ends here, from whichever thread, and unparks the queue's thread if it comes from another
//! one. The thread takes jobs from its queue when it owns a worker, or while it is inside `block_on`.
//!
//! # Safety
//! **own thread**: only the queue's thread touches the part that is not behind a lock. The code that does has checked
//! that the calling thread's context names this very queue.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    collections::VecDeque,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread, ThreadId},
};

use crate::{
    job::{Header, JobPtr, JobRef, runnable::Runnable},
    memory,
    queue::watched_queue::WatchedQueue,
    reactor::Reactor,
    report::{self, LateName},
    scheduler::{
        stackful::visit_run::VisitRun,
        workers::{context, shared},
    },
    sys::{Mutex, lock},
};

/// The pinned queue of one thread.
pub(crate) struct PinnedQueue {
    thread: Thread,
    /// Jobs that other threads have woken.
    incoming: Mutex<VecDeque<JobPtr>>,
    /// The length of `incoming`, which can be read without the lock.
    incoming_len: AtomicUsize,
    /// The reactor in which the thread waits instead of parking.
    polled_reactor: Mutex<Option<Arc<Reactor>>>,
    /// Whether the monitor wants to know of the next job that another thread wakes.
    watched: AtomicBool,
    /// Set when the thread will never take from the queue again.
    closed: AtomicBool,
    /// Whether the thread is no thread of the pool, and what it runs.
    visit: Option<VisitRun>,
    own: Own,
}

/// What only the queue's thread changes.
struct Own {
    /// Runnable jobs. Other threads may look at them.
    runnable: WatchedQueue<Header>,
    /// How many jobs are pinned here, runnable or not. A thread with one never retires.
    pinned_jobs: Cell<usize>,
}

// SAFETY: own thread.
unsafe impl Sync for Own {}
// SAFETY: own thread: a queue moves to another thread only as a shared reference, or to be dropped.
unsafe impl Send for Own {}

/// While it lives, the queue's thread waits in a reactor.
pub(crate) struct PollerWait<'a>(&'a PinnedQueue);

impl Drop for PollerWait<'_> {
    fn drop(&mut self) {
        lock(&self.0.polled_reactor).take();
    }
}

impl PinnedQueue {
    /// The pinned queue of the calling thread.
    pub(crate) fn new() -> PinnedQueue {
        PinnedQueue::with(None)
    }

    /// The pinned queue of the calling thread, which is in `block_on`.
    pub(crate) fn of_visit(visit: VisitRun) -> PinnedQueue {
        PinnedQueue::with(Some(visit))
    }

    fn with(visit: Option<VisitRun>) -> PinnedQueue {
        PinnedQueue {
            thread: thread::current(),
            incoming: Mutex::new(VecDeque::new()),
            incoming_len: AtomicUsize::new(0),
            polled_reactor: Mutex::new(None),
            watched: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            visit,
            own: Own {
                runnable: WatchedQueue::new(),
                pinned_jobs: Cell::new(0),
            },
        }
    }

    /// The visit that its thread is on, if it is no thread of the pool.
    #[inline]
    pub(crate) fn visit(&self) -> Option<&VisitRun> {
        self.visit.as_ref()
    }

    /// Queues a job that is pinned here. Any thread. If the queue's thread has ended, the job leaks and is reported:
    /// no other thread may drop its future.
    pub(crate) fn push(&self, job: Runnable) {
        match self.is_current() {
            true => self.push_own(job),
            false => self.push_foreign(job),
        }
    }

    /// Queues a job. The queue's thread only.
    #[inline(always)]
    pub(crate) fn push_own(&self, job: Runnable) {
        debug_assert!(self.is_here(), "only the queue's thread pushes here");
        let job = job.into_ptr().as_raw().as_ptr();
        // SAFETY: own thread: the caller has checked it.
        unsafe { self.own.runnable.push(job) };
    }

    fn push_foreign(&self, job: Runnable) {
        let mut incoming = lock(&self.incoming);
        // Relaxed, as the store: the lock of `incoming` orders the two.
        if self.closed.load(Ordering::Relaxed) && !self.is_here() {
            drop(incoming);
            report::stranded(LateName::of(job.header()));
            job.into_ptr();
            return;
        }
        let runtime = job.header().runtime();
        incoming.push_back(job.into_ptr());
        // Release: pairs with `has_runnable`; the unpark below orders it for a parked thread.
        self.incoming_len.store(incoming.len(), Ordering::Release);
        drop(incoming);
        self.thread.unpark();
        if let Some(reactor) = &*lock(&self.polled_reactor) {
            reactor.notify();
        }
        // Relaxed: the lock of `incoming` orders it; see `watch`.
        if self.watched.swap(false, Ordering::Relaxed)
            && let Some(shared) = shared::find(runtime)
        {
            shared.monitor.wake();
        }
    }

    /// The next job that another thread wakes wakes the monitor. If the caller then finds the queue empty, it may
    /// sleep.
    pub(crate) fn watch(&self) {
        // Under the lock under which `push_foreign` counts a job: if that was before, the caller sees the count,
        // although it looks without the lock; if it comes later, the push sees this.
        let _incoming = lock(&self.incoming);
        self.watched.store(true, Ordering::Relaxed);
    }

    /// The queue's thread is about to wait in `reactor`, unless a job is runnable already.
    pub(crate) fn notify_through(&self, reactor: &Arc<Reactor>) -> PollerWait<'_> {
        // The lock orders: a job that is queued later finds this, one queued before is seen.
        *lock(&self.polled_reactor) = Some(reactor.clone());
        PollerWait(self)
    }

    /// Takes the first runnable job. The queue's thread only.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.incoming_len.load(Ordering::Acquire) > 0 {
            self.drain_incoming();
        }
        self.pop_own()
    }

    /// Takes the first job of the thread's own part, without those that just came in. The queue's thread only.
    #[inline(always)]
    pub(crate) fn pop_own(&self) -> Option<Runnable> {
        debug_assert!(self.is_here(), "only the queue's thread takes");
        // SAFETY: own thread: the caller's promise.
        let job = NonNull::new(unsafe { self.own.runnable.pop() }?)?;
        // SAFETY: the queue held the job's right to run, which `push` took from a runnable.
        Some(unsafe { Runnable::new(JobPtr::from_raw(job)) })
    }

    /// Takes the first runnable job that is wanted. The others keep their order. The queue's thread only.
    pub(crate) fn take_first(&self, is_wanted: impl Fn(JobPtr) -> bool) -> Option<Runnable> {
        self.drain_incoming();
        let mut taken = None;
        for _ in 0..self.own_len() {
            let job = self.pop_own()?;
            match taken.is_none() && is_wanted(job.ptr()) {
                true => taken = Some(job),
                false => self.push_own(job),
            }
        }
        taken
    }

    /// As a [`pop_own`](PinnedQueue::pop_own), and a [`push_own`](PinnedQueue::push_own) of `last` behind it. The
    /// caller has seen the [first](PinnedQueue::first_own) job, and now has the right to run it. The queue's thread
    /// only.
    #[inline(always)]
    pub(crate) fn rotate_own(&self, last: Runnable) {
        debug_assert!(self.is_here(), "only the queue's thread takes");
        let last = last.into_ptr().as_raw().as_ptr();
        // SAFETY: own thread: the caller's promise.
        unsafe { self.own.runnable.rotate(last) };
    }

    /// The first job of the thread's own part. The queue's thread only.
    #[inline(always)]
    pub(crate) fn first_own(&self) -> Option<JobPtr> {
        // SAFETY: own thread: the caller's promise.
        let job = NonNull::new(unsafe { self.own.runnable.first() }?)?;
        Some(JobPtr::from_raw(job))
    }

    /// Takes the [first](PinnedQueue::first_own) job, which the caller has seen, and now has the right to run. The
    /// queue's thread only.
    #[inline(always)]
    pub(crate) fn drop_first_own(&self) {
        debug_assert!(self.is_here(), "only the queue's thread takes");
        // SAFETY: own thread: the caller's promise; it has seen a first job.
        unsafe { self.own.runnable.drop_first() };
    }

    #[cold]
    fn drain_incoming(&self) {
        let mut incoming = lock(&self.incoming);
        for job in incoming.drain(..) {
            // SAFETY: own thread: the caller's promise.
            unsafe { self.own.runnable.push(job.as_raw().as_ptr()) };
        }
        self.incoming_len.store(0, Ordering::Release);
    }

    /// Whether the own part has a runnable job. The queue's thread only.
    #[inline(always)]
    pub(crate) fn has_own(&self) -> bool {
        self.own.runnable.len() > 0
    }

    /// How many runnable jobs the own part has. The queue's thread only.
    pub(crate) fn own_len(&self) -> usize {
        self.own.runnable.len()
    }

    /// Whether a job is runnable. The queue's thread only.
    pub(crate) fn has_runnable(&self) -> bool {
        debug_assert!(self.is_here(), "only the queue's thread looks");
        self.own.runnable.len() > 0 || self.incoming_len.load(Ordering::Acquire) > 0
    }

    /// How many jobs are runnable: exact for the queue's thread, else a moment old.
    pub(crate) fn len(&self) -> usize {
        self.own.runnable.len() + self.incoming_len.load(Ordering::Acquire)
    }

    /// The runnable jobs, as they were about now; at most `most` of them. Any thread. The time grows with their number,
    /// and with that of all jobs: each must be found among all blocks.
    pub(crate) fn runnable_jobs(&self, most: usize) -> Vec<JobRef> {
        let is_runnable = |job: &JobRef| {
            let state = &job.header().state;
            !state.is_done() && !state.is_waiting()
        };
        let mut jobs = Vec::new();
        for job in self.own.runnable.snapshot() {
            if jobs.len() == most {
                return jobs;
            }
            let Some(block) = NonNull::new(job.cast::<u8>()) else {
                continue;
            };
            jobs.extend(job_in(block).filter(is_runnable));
        }
        let incoming = lock(&self.incoming);
        // SAFETY: a queued job is alive, and leaves this part only under the lock.
        let incoming = incoming.iter().map(|job| unsafe { JobRef::new_for(*job) });
        jobs.extend(incoming.filter(is_runnable).take(most - jobs.len()));
        jobs
    }

    /// Whether the caller is on the queue's thread.
    pub(crate) fn is_here(&self) -> bool {
        self.thread_id() == thread::current().id()
    }

    /// Whether the caller is on the queue's thread, and the thread uses this queue at this moment.
    #[inline(always)]
    fn is_current(&self) -> bool {
        std::ptr::eq(context::here().pinned_ptr(), self)
    }

    pub(crate) fn thread_id(&self) -> ThreadId {
        self.thread.id()
    }

    /// Counts a job that is pinned or unpinned. The queue's thread only.
    #[inline(always)]
    pub(crate) fn count_pinned(&self, change: PinChange) {
        debug_assert!(self.is_here(), "only the queue's thread counts");
        let pinned_jobs = &self.own.pinned_jobs;
        pinned_jobs.set(match change {
            PinChange::Pinned => pinned_jobs.get() + 1,
            PinChange::Unpinned => pinned_jobs.get() - 1,
        });
    }

    /// Whether any job is pinned here. The queue's thread only.
    #[inline]
    pub(crate) fn has_pinned_jobs(&self) -> bool {
        self.own.pinned_jobs.get() > 0
    }

    /// From now on only the queue's own thread may queue jobs. The queue's thread only.
    pub(crate) fn close(&self) {
        let _incoming = lock(&self.incoming);
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// The job in this block, which once was a job's, if it holds one.
pub(crate) fn job_in(block: NonNull<u8>) -> Option<JobRef> {
    let mut found = None;
    memory::with_job_block(block, |block| {
        // SAFETY: it was a job's block. If that job has gone, the block is free, or another job's.
        found = unsafe { JobRef::from_block(block) };
    });
    found
}

/// What a job's pin to a queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinChange {
    /// It begins: the job was spawned here, or its stack is suspended here.
    Pinned,
    /// It ends: the job has ended, or its stack resumes.
    Unpinned,
}
