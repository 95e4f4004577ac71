//! A lane: what one stack of forks needs, beginning with the deque of its forked halves.
//!
//! A *region* is an outermost fork and all that it runs on its stack. While a region lasts it has a lane of
//! its own, so that all entries of the lane descend from the region's fork. A lane belongs to the OS thread
//! on which the region began: it goes nowhere when the thread loses its right.
//!
//! Lanes are never freed before their runtime, and are used again, so that thieves may look at any time.
//!
//! Invariants:
//! - `stack_end`, `segment` and what an owner does with the deque belong to the thread that claimed the lane.
//! - `ancestry` is written before the region's first push, or is empty; thieves read it under the deque's lock.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ptr::{self, NonNull},
    sync::Arc,
};

use crate::fork::{
    deque::Deque, root_fork::Origin, root_job::RootJob, stack_job::EntryHeader,
    stolen_job::StolenJob,
};
use crate::{
    fork::fork_deques,
    job::{self, JobPtr, JobRef},
    scheduler::workers::context::Context,
    scheduler::workers::shared::Shared,
    services::{ThreadFork, WaitedBefore},
    sys::barrier,
    sys::{AtomicBool, AtomicPtr, Mutex, Ordering, lock},
};

/// From whom the forks of a lane descend: the numbers of thefts, the first one first.
pub(super) type Ancestry = Arc<[u64]>;

/// See the head of this file.
pub(crate) struct ForkDeque {
    pub(super) deque: Deque<EntryHeader, StolenJob>,
    /// Below this address of its stack a fork goes on on a further one.
    pub(super) stack_end: Cell<usize>,
    /// How many bytes of further stacks the region uses.
    pub(super) segment: Cell<usize>,
    /// Whether a thread has the lane, in a region or to spare.
    claimed: AtomicBool,
    /// Whether a region lasts.
    active: AtomicBool,
    /// Whether the region's thread is parked in a join.
    pub(super) parked: AtomicBool,
    /// The job that runs the region; null on a foreign thread.
    job: AtomicPtr<job::Header>,
    /// The [`RootJob`] of all forks that this one descends from.
    root: AtomicPtr<job::Header>,
    ancestry: Mutex<Option<Ancestry>>,
    /// The runtime that owns the lane.
    shared: *const Shared,
    /// The lane that was made before this one.
    pub(super) next: *const ForkDeque,
}

// SAFETY: the cells belong to the thread that claimed the lane; `next` never changes.
unsafe impl Sync for ForkDeque {}
// SAFETY: as above.
unsafe impl Send for ForkDeque {}

impl ForkDeque {
    /// A lane that the caller has claimed.
    pub(super) fn new(shared: &Shared, next: *const ForkDeque) -> ForkDeque {
        ForkDeque {
            deque: Deque::new(),
            stack_end: Cell::new(0),
            segment: Cell::new(0),
            claimed: AtomicBool::new(true),
            active: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            job: AtomicPtr::new(ptr::null_mut()),
            root: AtomicPtr::new(ptr::null_mut()),
            ancestry: Mutex::new(None),
            shared: ptr::from_ref(shared),
            next,
        }
    }

    /// The runtime that owns the lane.
    pub(super) fn shared(&self) -> &Shared {
        // SAFETY: a runtime frees its lanes last.
        unsafe { &*self.shared }
    }

    /// Takes the lane for the calling thread, if no thread has it.
    pub(super) fn claim(&self) -> bool {
        // Acquire: pairs with the store in `unclaim`: the cells are as the last thread left them.
        !self.claimed.load(Ordering::Relaxed) && !self.claimed.swap(true, Ordering::Acquire)
    }

    /// Gives the lane back.
    pub(super) fn unclaim(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// A region begins, run by `job`. `origin`: what it descends from, if it was stolen.
    pub(super) fn begin(&self, job: Option<JobPtr>, origin: Option<Origin>) {
        let root = origin
            .as_ref()
            .map_or(RootJob::new(job), |origin| origin.root);
        let job = job.map_or(ptr::null_mut(), |job| job.as_raw().as_ptr());
        self.job.store(job, Ordering::Relaxed);
        self.root.store(root.into_raw(), Ordering::Relaxed);
        if let Some(origin) = origin {
            *lock(&self.ancestry) = Some(origin.ancestry);
        }
        // Release: pairs with the load in `is_active`.
        self.active.store(true, Ordering::Release);
    }

    /// From now on no cancel reaches what the region forks.
    pub(super) fn cut_off(&self) {
        let root = self.root().cut_off();
        self.root.store(root.into_raw(), Ordering::Relaxed);
    }

    /// The region has ended.
    pub(super) fn end(&self) {
        self.active.store(false, Ordering::Release);
        self.job.store(ptr::null_mut(), Ordering::Relaxed);
        self.root.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The region, which was stolen, has ended: what is forked here later descends from nobody.
    pub(super) fn forget_ancestry(&self) {
        *lock(&self.ancestry) = None;
    }

    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// What the region descends from.
    pub(super) fn root(&self) -> RootJob {
        RootJob::from_raw(self.root.load(Ordering::Relaxed))
    }

    /// What those descend from that are forked here: while a cancel unwinds already, it does not reach them. By the
    /// region's thread, or a thief that has just taken a half of the lane.
    pub(super) fn root_of_forks(&self) -> RootJob {
        match self.unwinds() {
            true => self.root().cut_off(),
            false => self.root(),
        }
    }

    /// Whether a cancel unwinds the region's job already, or the root. Both are alive: they run or wait for who asks.
    fn unwinds(&self) -> bool {
        let job = ptr::NonNull::new(self.job.load(Ordering::Relaxed)).map(JobPtr::from_raw);
        let jobs = [job, self.root().canceller()];
        jobs.into_iter().flatten().any(|job| {
            // SAFETY: it runs, or waits for, who asks.
            let header = unsafe { job.header() };
            header
                .extensions
                .lock_existing()
                .is_some_and(|extensions| extensions.unwound)
        })
    }

    /// Whether `job` runs the region.
    pub(super) fn is_run_by(&self, job: &JobRef) -> bool {
        self.job.load(Ordering::Relaxed) == job.ptr().as_raw().as_ptr()
    }

    /// Whether a cancel of `job` is one of the region: it descends from the job, or is its own.
    pub(super) fn is_cancelled_with(&self, job: &JobRef) -> bool {
        self.root().canceller() == Some(job.ptr())
    }

    /// The job that runs the region, if that is still so when the reference is there.
    pub(super) fn job(&self) -> Option<JobRef> {
        let address = self.job.load(Ordering::Relaxed);
        let block = ptr::NonNull::new(address)?;
        // SAFETY: it is, or was a moment ago, a job's block; those stay mapped.
        let job = unsafe { JobRef::from_block(block.cast()) }?;
        // With the reference the block holds the same job as before, and if that runs the region now, it
        // is the region's.
        (self.is_active() && self.is_run_by(&job)).then_some(job)
    }

    /// The thefts that the region descends from.
    pub(super) fn ancestry(&self) -> Option<Ancestry> {
        lock(&self.ancestry).clone()
    }

    /// Whether the region computes at this moment, as far as can be told from outside: its thread does not
    /// wait.
    pub(super) fn computes(&self) -> bool {
        if !self.is_active() || self.parked.load(Ordering::Relaxed) {
            return false;
        }
        match self.job.load(Ordering::Relaxed).is_null() {
            true => true,
            false => self
                .job()
                .is_some_and(|job| !job.header().state.is_waiting()),
        }
    }
}

impl ThreadFork for ForkDeque {
    fn root_job(&self) -> Option<JobPtr> {
        self.root().job()
    }

    fn begin_wait(&self) -> WaitedBefore {
        let before = self.parked.swap(true, Ordering::Relaxed);
        // Either whoever is about to sleep sees that there is room, or this sees the sleeper.
        barrier::full();
        fork_deques::room_for_another(self.shared());
        match before {
            true => WaitedBefore::Yes,
            false => WaitedBefore::No,
        }
    }

    fn end_wait(&self, before: WaitedBefore) {
        self.parked
            .store(before == WaitedBefore::Yes, Ordering::Relaxed);
    }

    fn give_back(&self) {
        self.unclaim();
    }
}

/// The lane of the calling thread's root fork.
#[inline(always)]
pub(super) fn of(cx: &Context) -> Option<&ForkDeque> {
    let fork = cx.thread_fork_ptr()?.cast::<ForkDeque>();
    // SAFETY: only lanes are set, and whoever set it stays inside the fork's runtime until it is replaced.
    Some(unsafe { fork.as_ref() })
}

/// The lane that the calling thread keeps, if it keeps one; it keeps it no longer.
pub(super) fn take_spare(cx: &Context) -> Option<&ForkDeque> {
    let spare = cx.take_spare_thread_fork()?.cast::<ForkDeque>();
    // SAFETY: only lanes are kept; the thread belongs to the lane's runtime, and gives the lane back before it ends.
    Some(unsafe { spare.as_ref() })
}

/// The lane as a thread's context names it.
pub(super) fn named(fork_deque: &ForkDeque) -> NonNull<dyn ThreadFork> {
    NonNull::from(fork_deque as &dyn ThreadFork)
}
