//! The worker core: a worker's queues and timer wheel, and the rules by which the next job is taken.
//!
//! A core is touched by one thread at a time, under the worker's [`BiasedLock`](crate::biased_lock::BiasedLock): by the
//! owner, which holds the lease, or by a foreign thread, which is one of these:
//! - the monitor;
//! - a thread that reads the metrics, trims (`trim::sweep_timers`) or shuts the runtime down;
//! - after the stop, a thread that starts a sleep (`api::time`), or that waits in a destructor
//!   (`Shared::fire_due_after_stop`);
//! - the owner when it gives its worker away (`renew_lease`).
//!
//! Thieves never enter it. They take from the other end of the ring,
//! [`Worker::thief`](crate::scheduler::workers::worker::Worker).
//!
//! ```text
//!   ready callbacks ──── callbacks_turn ────┐
//!   pinned queue ─── pinned_turn, turn_left ┤   (the queue is the thread's, not the worker's)
//!   next slot ────────── in_row, streak_left┼──► take ──► the job that runs next
//!    │ both are 0, and the ring has a job:  │     └─────► Pick::Look, once until_look and in_row are 0
//!    ▼ its job goes behind, surplus is set  │
//!   ring ───────────────────────────────────┘
//!    │ full, or older jobs are in the injector
//!    └──► overflow queue ── 64 jobs, or the next look ──► injector
//! ```
//!
//! The fields that keep the order fair, and what would starve without them:
//!
//! ```text
//!   field            what it holds                      reset by                   what would starve
//!   in_row           jobs from the next slot that need  end_row, renew_row         what starves without streak_left
//!                    no look at the other fields                                   or until_look: in_row is subtracted
//!                                                                                  from both when the row begins
//!   streak_left      jobs that may come in a row from   a take from the ring       the ring, while two jobs wake each other
//!                    the next slot after in_row
//!   until_look       jobs left before the next look     set_until_look             timers, reactor, injector
//!                    after in_row
//!   pinned_turn      whether pinned jobs have the turn  flips when turn_left is 0  pinned jobs and the others
//!   turn_left        jobs left in that turn             the start of the next one  pinned jobs and the others
//!   callbacks_turn   whether callbacks have the turn    a take beside callbacks    callbacks and jobs
//!   surplus          a job became visible to thieves    made_work_visible          that job, while all thieves sleep
//! ```
//!
//! `allowed` is not for fairness: it is `until_look` after the last look, from which the polls are counted.

#![allow(unsafe_code)]

mod nested;
#[cfg(all(test, not(loom)))]
mod tests;
pub(crate) mod turns;

use std::time::Instant;

use crate::{
    job::{Header, JobPtr, runnable::Runnable},
    queue::{
        injector::{Injector, JobBatch},
        ring,
        sharing::{lazy_jobs::LazyJobs, lazy_watch::LazyWatch},
    },
    scheduler::stackful::pinned::PinnedQueue,
    timer::{
        arrivals::{Arrivals, Arrived},
        entry::{EntryPtr, READY_NOW},
        entry_queue::EntryQueue,
        wheel::Wheel,
    },
};

/// Touched only under the core's lock.
pub(crate) struct WorkerCore {
    /// The job just woken by the running one.
    pub(crate) next: Option<JobPtr>,
    pub(crate) ring: ring::RingOwner<Header>,
    /// The overflow queue: jobs on their way to the injector, which takes them in batches. Jobs enter it only while the
    /// ring is full or the injector has jobs; the next look moves them on.
    pub(crate) overflow: JobBatch<Header>,
    /// Code that becomes jobs only if somebody else than its joiner wants it.
    pub(crate) lazy: LazyJobs,
    pub(crate) lazy_watch: LazyWatch,
    pub(crate) wheel: Wheel,
    /// Callbacks that are ready to run.
    pub(crate) callbacks: EntryQueue,
    /// Whether ready callbacks have the turn.
    callbacks_turn: bool,
    /// Places under the process limit that this worker holds for its next spawns.
    pub(crate) spare_admissions: usize,
    /// Jobs that ended here, for the metrics.
    pub(crate) ended: u64,
    /// Polls that began here before the last look, and those of jobs that came from elsewhere, for the metrics.
    polls: u64,
    /// How many jobs may come from the next slot in a row, besides `in_row`.
    streak_left: u32,
    /// How many jobs may still run before the next look, besides `in_row`.
    until_look: u32,
    /// How many jobs [`take_in_row`](WorkerCore::take_in_row) may still take. `streak_left` and `until_look` no longer
    /// count them.
    in_row: u32,
    /// What `until_look` was at the last look.
    allowed: u32,
    /// How looks are put off, for runs that are nested in each other.
    put_off: Option<PutOff>,
    /// Whether pinned jobs have the turn.
    pinned_turn: bool,
    /// How many more jobs the present turn has.
    turn_left: usize,
    /// Whether a job from the next slot went behind the others, where thieves can see it; see
    /// [`WorkerCore::made_work_visible`].
    surplus: bool,
}

/// How a look is put off, in the middle of nested runs.
#[derive(Clone, Copy)]
struct PutOff {
    since: Instant,
    /// When it was put off again.
    last: Instant,
    /// For how many runs.
    runs: u32,
}

/// What a take returns.
pub(crate) enum Pick {
    /// The job to run next.
    Job(Runnable),
    /// The callbacks that are ready have the turn, and need a runner.
    Callbacks,
    /// A look is due first.
    Look,
    /// The queues are empty.
    Empty,
}

/// How many jobs go from the overflow queue to the injector together.
const OVERFLOW_MAX: usize = 64;

/// Where a job that is not urgent is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Behind the worker's own jobs.
    Ring,
    /// Behind those in the injector, which are older.
    Injector,
}

impl Behind {
    /// Where the end of the queue is now.
    #[inline]
    pub(crate) fn of(injector: &Injector<Header>) -> Behind {
        match injector.len() {
            0 => Behind::Ring,
            _ => Behind::Injector,
        }
    }
}

impl WorkerCore {
    /// Empty queues; a look is due.
    pub(crate) fn new(ring: ring::RingOwner<Header>) -> WorkerCore {
        WorkerCore {
            next: None,
            ring,
            overflow: JobBatch::new(),
            lazy: LazyJobs::new(),
            lazy_watch: LazyWatch::new(),
            wheel: Wheel::new(),
            callbacks: EntryQueue::new(),
            callbacks_turn: false,
            spare_admissions: 0,
            ended: 0,
            polls: 0,
            streak_left: 0,
            until_look: 0,
            in_row: 0,
            allowed: 0,
            put_off: None,
            pinned_turn: false,
            turn_left: 0,
            surplus: false,
        }
    }

    /// Puts `job` behind all others: at the end of the ring, or into the overflow queue if `behind` says that older
    /// jobs wait in the injector, or if the ring is full. Returns an overflow queue that is full, for the injector.
    #[inline]
    #[must_use]
    pub(crate) fn push_last(&mut self, job: JobPtr, behind: Behind) -> Option<JobBatch<Header>> {
        let job = job.as_raw().as_ptr();
        if behind == Behind::Ring && self.overflow.len() == 0 && self.ring.push(job).is_ok() {
            return None;
        }
        // SAFETY: as for the ring: the queue takes the job's right to run from the caller.
        unsafe { self.overflow(job) };
        (self.overflow.len() >= OVERFLOW_MAX).then(|| self.take_overflow())
    }

    /// Puts a job into the overflow queue.
    ///
    /// # Safety
    /// The caller has the job's right to run, and gives it up.
    pub(crate) unsafe fn overflow(&mut self, job: *mut Header) {
        // SAFETY: the caller's promise: a job that may run is alive and in no other queue.
        unsafe { self.overflow.push(job) };
    }

    /// Takes the whole overflow queue.
    pub(crate) fn take_overflow(&mut self) -> JobBatch<Header> {
        std::mem::replace(&mut self.overflow, JobBatch::new())
    }

    /// Whether any job or callback waits for its turn.
    pub(crate) fn has_jobs(&self) -> bool {
        self.next.is_some()
            || self.ring.len() > 0
            || self.overflow.len() > 0
            || !self.callbacks.is_empty()
    }

    /// The common case of [`take`](WorkerCore::take): the job in the next slot, if no other job can have the turn.
    #[inline(always)]
    pub(crate) fn take_in_row(&mut self, pinned: &PinnedQueue) -> Option<Runnable> {
        if self.in_row == 0 || !self.callbacks.is_empty() || pinned.has_own() {
            return None;
        }
        let job = self.next.take()?;
        self.in_row -= 1;
        // SAFETY: the slot held the job's right to run.
        Some(unsafe { Runnable::new(job) })
    }

    /// As [`take_in_row`](WorkerCore::take_in_row), where the next slot is empty: the first job of the ring or of the
    /// pinned queue. If both have jobs, only while the present turn lasts.
    #[inline(always)]
    pub(crate) fn take_behind_in_row(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
    ) -> Option<Runnable> {
        if pinned.has_own() && (self.ring.len() == 0 || self.pinned_turn) {
            return self.take_pinned_in_row(pinned, streak_limit);
        }
        let in_turn = pinned.has_own();
        if !self.has_row_behind() || in_turn && self.turn_left == 0 {
            return None;
        }
        let job = self.pop_ring()?;
        self.turn_left -= usize::from(in_turn);
        self.in_row -= 1;
        // No job waits behind a streak, so it begins anew.
        self.streak_left = streak_limit - self.in_row;
        // SAFETY: the ring held the job's right to run.
        Some(unsafe { Runnable::new(job) })
    }

    /// Whether a job from behind the next slot, which is empty, may come in the row.
    #[inline(always)]
    fn has_row_behind(&self) -> bool {
        self.in_row > 0 && self.callbacks.is_empty() && self.next.is_none()
    }

    #[inline(always)]
    fn pop_ring(&mut self) -> Option<JobPtr> {
        let job = std::ptr::NonNull::new(self.ring.pop()?)?;
        Some(JobPtr::from_raw(job))
    }

    /// The row ends before it is used up.
    #[inline]
    fn end_row(&mut self) {
        let left = std::mem::take(&mut self.in_row);
        self.streak_left += left;
        self.until_look += left;
    }

    /// A row begins: as many jobs as may come from the next slot before the streak ends or a look is due. Whatever sets
    /// one of the two counts must call [`end_row`](WorkerCore::end_row) first.
    #[inline]
    fn begin_row(&mut self) {
        self.in_row = self.streak_left.min(self.until_look);
        self.streak_left -= self.in_row;
        self.until_look -= self.in_row;
    }

    /// Takes the next job, as the head of this file shows: the next slot, up to `streak_limit` times in a row, then
    /// the ring; in turn with ready callbacks and with `pinned`, the pinned queue of the owner's thread.
    pub(crate) fn take(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
        injector: &Injector<Header>,
    ) -> Pick {
        self.end_row();
        if self.until_look == 0 {
            return Pick::Look;
        }
        let pick = match self.callbacks.is_empty() {
            true => self.take_job(pinned, streak_limit, injector),
            false => self.take_beside_callbacks(pinned, streak_limit, injector),
        };
        self.begin_row();
        pick
    }

    fn take_job(
        &mut self,
        pinned: &PinnedQueue,
        streak_limit: u32,
        injector: &Injector<Header>,
    ) -> Pick {
        match pinned.has_own() {
            false => self.take_unpinned(streak_limit, injector),
            true => self.take_in_turn(pinned, streak_limit, injector),
        }
    }

    fn take_unpinned(&mut self, streak_limit: u32, injector: &Injector<Header>) -> Pick {
        let job = match self.next {
            Some(job) if self.streak_left > 0 => {
                self.next = None;
                self.streak_left -= 1;
                job
            }
            _ => match self.take_after_streak(streak_limit, injector) {
                Some(job) => job,
                None => return Pick::Empty,
            },
        };
        self.until_look -= 1;
        // SAFETY: the queue held the job's right to run.
        Pick::Job(unsafe { Runnable::new(job) })
    }

    #[inline(never)]
    fn take_after_streak(
        &mut self,
        streak_limit: u32,
        injector: &Injector<Header>,
    ) -> Option<JobPtr> {
        let slot = self.next.take();
        self.streak_left = streak_limit;
        let from_ring = self.pop_ring();
        let (Some(waiting), Some(woken)) = (from_ring, slot) else {
            return from_ring.or(slot);
        };
        // The overflow queue may grow beyond its bound here; the next look sends it off.
        let woken = woken.as_raw().as_ptr();
        if Behind::of(injector) == Behind::Injector || self.ring.push(woken).is_err() {
            // SAFETY: the next slot held the job's right to run.
            unsafe { self.overflow(woken) };
        }
        self.surplus = true;
        Some(waiting)
    }

    /// Moves the timers that other threads started into the queue or the wheel.
    #[inline]
    pub(crate) fn take_arrivals(&mut self, arrivals: &Arrivals) {
        if !arrivals.is_empty() {
            self.link_all(arrivals.take());
        }
    }

    /// [`take_arrivals`](WorkerCore::take_arrivals) for the last time: callbacks that are started later are dropped,
    /// and sleeps go into the wheel.
    pub(crate) fn close(&mut self, arrivals: &Arrivals) {
        self.link_all(arrivals.close());
    }

    #[inline(never)]
    fn link_all(&mut self, arrived: Arrived) {
        for entry in arrived {
            // SAFETY: in no list, with the scheduler's claim.
            unsafe { self.link(entry) };
        }
    }

    /// # Safety
    /// The entry is in no list, and has its tick; its claim goes to the worker.
    #[inline]
    pub(crate) unsafe fn link(&mut self, entry: EntryPtr) {
        // SAFETY: the caller's promise.
        let links = unsafe { entry.get() }.links.get();
        // SAFETY: the links of an entry that is in no list are the caller's.
        match unsafe { (*links).deadline } {
            READY_NOW => self.callbacks.push(entry),
            _ => self.wheel.insert(entry),
        }
    }

    /// Whether the last take made a job visible to thieves, so that the caller must wake a sleeper. True once.
    #[inline(always)]
    pub(crate) fn made_work_visible(&mut self) -> bool {
        std::mem::take(&mut self.surplus)
    }

    /// Sets how many jobs may run before the next look.
    pub(crate) fn set_until_look(&mut self, jobs: u32) {
        self.end_row();
        self.polls += u64::from(self.allowed - self.until_look);
        self.until_look = jobs;
        self.allowed = jobs;
        self.put_off = None;
    }

    /// A job that did not come from here is about to be polled.
    pub(crate) fn count_poll(&mut self) {
        self.polls += 1;
    }

    /// How many polls have begun here.
    pub(crate) fn polls(&self) -> u64 {
        self.polls + u64::from(self.allowed - self.until_look - self.in_row)
    }

    /// In a test runtime: changes the order at random, within what a real runtime could show.
    pub(crate) fn shuffle(&mut self, chance: &mut impl FnMut(usize) -> usize) {
        if let Some(woken) = self.next.take_if(|_| chance(2) == 0)
            && let Err(woken) = self.ring.push(woken.as_raw().as_ptr())
        {
            // SAFETY: the next slot held the job's right to run.
            unsafe { self.overflow(woken) };
        }
        for _ in 0..chance(self.ring.len().max(1)) {
            if let Some(job) = self.ring.pop() {
                let _room = self.ring.push(job);
            }
        }
    }
}
