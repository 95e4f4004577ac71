//! The worker, and the loop of the thread that owns it.
//!
//! A worker is not a thread; it is the P of Go's scheduler: queues and a timer wheel ([`WorkerCore`]), behind a
//! [`BiasedLock`]. The thread that holds the current lease owns the worker; a thread owns at most one. When a thread
//! is stuck in a job, the monitor retakes the worker ([`crate::scheduler::threads::monitor`]): it revokes the lease
//! and hands the worker to a spare thread. The stuck thread notices when it next takes the lock. Until its poll ends
//! it runs without a worker, and what it makes runnable enters through the injector.
//!
//! The loop ([`WorkerLoop::serve`]):
//! 1. find a job: if no look is due, in the pinned queue, the next slot or the ring. Otherwise, or if these are empty,
//!    look around (timers, reactor, injector) and try again; then the injector, the reactor and a steal; then sleep;
//! 2. run it ([`crate::scheduler::workers::run`]); take the next job under the lock of the core; park or free the
//!    job that just ran; repeat until no job is at hand.
//!
//! The run word names the job that the owner runs. It is set before the job runs, and replaced before the job can be
//! freed; both under the lock. So that job lives for as long as a foreign thread holds the lock.
//!
//! The reactor belongs to no worker; [`crate::reactor::registry`] says which threads poll it.

#![allow(unsafe_code)]

mod kept;
pub(crate) mod lazy;

use std::cell::Cell;

use crate::{
    biased_lock::{BiasedLock, Lease, OwnerGuard, Revoked},
    job::{Header, JobPtr, runnable::Runnable},
    queue::{ring, sharing::Sharing},
    reactor,
    scheduler::{
        stackful::pinned::PinnedQueue,
        threads::suspects::KnownSuspects,
        workers::{
            cancelled_timers::CancelledTimers,
            context::Context,
            ready,
            run::{self, Polled},
            run_word::RunWord,
            search::{
                self, Found, coarseness::Coarseness, exact_sleeps::ExactSleeps, sleep,
                sleep_policy::SleepPolicy, try_policy::TryPolicy,
            },
            serve_end::ServeEnd,
            shared::Shared,
            worker_core::{Pick, WorkerCore},
        },
    },
    sys::{AtomicU32, AtomicUsize, Ordering},
    timer::arrivals::Arrivals,
};

/// What a worker consists of, padded as [`CachePadded`](crate::memory::cache_padded::CachePadded) pads.
#[repr(align(128))]
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) core: BiasedLock<WorkerCore>,
    /// The end of the ring that other workers steal from.
    pub(crate) thief: ring::RingThief<Header>,
    /// How many lazy jobs it has, and which one is the oldest.
    lazy_counts: lazy::LazyCounts,
    /// Whether other workers steal, except for a job that prefers to.
    pub(crate) sharing: Sharing,
    /// What the owner runs; see [`RunWord`].
    run: AtomicUsize,
    /// The system's number of the owner. Written by the owner.
    pub(crate) owner_thread: AtomicU32,
    /// Timers from foreign threads, on their way to the wheel or the queue of callbacks.
    pub(crate) arrivals: Arrivals,
    /// Cancelled timers that are still in its lists.
    pub(crate) cancelled: CancelledTimers,
}

impl Worker {
    /// The worker, with this ring, and its first lease.
    pub(crate) fn new(index: usize, (ring, thief): ring::Ends<Header>) -> (Worker, Lease) {
        let (core, lease) = BiasedLock::new(WorkerCore::new(ring));
        let worker = Worker {
            index,
            core,
            thief,
            lazy_counts: lazy::LazyCounts::new(),
            sharing: Sharing::new(),
            run: AtomicUsize::new(0),
            owner_thread: AtomicU32::new(0),
            arrivals: Arrivals::new(),
            cancelled: CancelledTimers::new(),
        };
        (worker, lease)
    }

    /// Whether there are jobs that a thief may take. Any thread.
    pub(crate) fn has_open_jobs(&self) -> bool {
        self.sharing.is_open() && (self.thief.len() > 0 || self.has_lazy_jobs())
    }

    /// What the owner runs. Exact for a foreign thread that holds the lock; elsewhere a moment old.
    pub(crate) fn running(&self) -> RunWord {
        RunWord(self.run.load(Ordering::Relaxed))
    }

    /// The owner runs nothing, or there is no owner.
    pub(crate) fn set_running_none(&self) {
        self.run.store(RunWord::NONE.0, Ordering::Relaxed);
    }

    /// The running job begins something that the monitor must time as a run of its own. By the owner, under the lock.
    pub(crate) fn renew_running(&self) {
        self.run.store(self.running().next().0, Ordering::Relaxed);
    }

    /// The owner resumes what it ran before a nested run. Under the lock only.
    pub(crate) fn restore_running(&self, before: RunWord) {
        self.run.store(before.0, Ordering::Relaxed);
    }

    /// The owner runs `job`; `run` tells its runs apart. Under the lock only.
    #[inline(always)]
    pub(crate) fn set_running(&self, job: JobPtr, run: u64) {
        self.run.store(RunWord::new(job, run).0, Ordering::Relaxed);
    }
}

/// Whether the job that ran before has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Yes,
    No,
}

/// The state of a thread that serves workers, one after the other; its loops, each on a stack of its own, share it.
/// Only one of them is at work at a time, so everything that changes is in a cell.
pub(crate) struct WorkerLoop<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) shared: &'a Shared,
    /// The pinned queue of this thread.
    pub(crate) pinned: &'a PinnedQueue,
    /// The worker that the thread owns, or owned last.
    worker: Cell<&'a Worker>,
    /// Its lease; [`Lease::NONE`] while the thread owns none.
    lease: Cell<Lease>,
    /// Whether this worker counts as searching.
    pub(crate) searching: Cell<bool>,
    /// How many jobs may run between two looks around; follows how long they take.
    pub(crate) look_every: Cell<u32>,
    /// The last trim that this thread has seen.
    pub(crate) trims_seen: Cell<usize>,
    /// When the lease began.
    pub(crate) lease_since: Cell<std::time::Instant>,
    /// When the last look was.
    pub(crate) last_look: Cell<std::time::Instant>,
    pub(crate) coarseness: Coarseness,
    pub(crate) sleep_policy: SleepPolicy,
    pub(crate) exact_sleeps: ExactSleeps,
    /// Whether it should spin, and look at the reactor, before it sleeps.
    pub(crate) spin_policy: TryPolicy,
    pub(crate) poll_policy: TryPolicy,
    /// Which oldest lazy job this thread saw last.
    pub(crate) seen_lazy: lazy::SeenLazy,
    /// What this thread takes from the reactor.
    pub(crate) batch: Cell<reactor::ReadyBatch>,
    /// How many runs there were.
    pub(crate) runs: Cell<u64>,
    /// Which kinds of jobs run in quarantine.
    pub(crate) suspects: KnownSuspects,
}

impl<'a> WorkerLoop<'a> {
    /// For the calling thread, whose context is `cx`, and which owns no worker yet.
    pub(crate) fn new(
        cx: &'a Context,
        shared: &'a Shared,
        pinned: &'a PinnedQueue,
    ) -> WorkerLoop<'a> {
        WorkerLoop {
            cx,
            shared,
            pinned,
            worker: Cell::new(&shared.workers[0]),
            lease: Cell::new(Lease::NONE),
            searching: Cell::new(false),
            look_every: Cell::new(1),
            trims_seen: Cell::new(shared.trims.last()),
            lease_since: Cell::new(shared.clock.now()),
            last_look: Cell::new(shared.clock.now()),
            seen_lazy: lazy::SeenLazy::default(),
            batch: Cell::default(),
            runs: Cell::new(0),
            coarseness: Coarseness::new(shared.clock.now()),
            suspects: KnownSuspects::default(),
            sleep_policy: SleepPolicy::new(),
            exact_sleeps: ExactSleeps::default(),
            spin_policy: TryPolicy::default(),
            poll_policy: TryPolicy::default(),
        }
    }

    /// The thread now owns `worker`, by `lease`.
    pub(crate) fn begin(&self, worker: &'a Worker, lease: Lease) {
        let number = self.shared.thread_number();
        worker.owner_thread.store(number, Ordering::Relaxed);
        self.cx.set_worker(self.shared, worker, lease);
        self.worker.set(worker);
        self.lease.set(lease);
        self.look_every.set(1);
        self.lease_since.set(self.shared.clock.now());
        search::restart_clock(self);
        self.suspects.refresh(&self.shared.suspects);
    }

    /// Puts the worker back into the context, from which a loop that ended has removed it.
    pub(crate) fn restore_worker(&self) {
        if self.is_held() {
            self.cx
                .set_worker(self.shared, self.worker.get(), self.lease.get());
        }
    }

    /// The thread no longer serves: returns the worker that it owned, and the lease.
    pub(crate) fn end(&self) -> Option<(&'a Worker, Lease)> {
        self.cx.clear_worker();
        let lease = self.lease.replace(Lease::NONE);
        (lease != Lease::NONE).then(|| (self.worker.get(), lease))
    }

    /// Whether the thread owns a worker, or has not yet noticed that its lease was revoked.
    pub(crate) fn is_held(&self) -> bool {
        self.lease.get() != Lease::NONE
    }

    #[inline(always)]
    pub(crate) fn worker(&self) -> &'a Worker {
        self.worker.get()
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease.get()
    }

    /// Locks the core of the worker; fails if the lease was revoked, or there is none.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<OwnerGuard<'a, WorkerCore>, Revoked> {
        if !self.is_held() {
            return Err(Revoked);
        }
        // SAFETY: *owner*: the lease of this thread's worker.
        unsafe { self.worker.get().core.enter(self.lease.get()) }
    }

    /// The loop. Returns when the thread must stop serving; the context then names no worker.
    pub(crate) fn serve(&self) -> ServeEnd {
        let end = loop {
            let job = match self.find() {
                Ok(job) => job,
                Err(end) => break end,
            };
            if let Err(end) = self.run_from(job) {
                break end;
            }
        };
        self.end_search();
        self.cx.clear_worker();
        end
    }

    /// Step 1: a job to run.
    fn find(&self) -> Result<Runnable, ServeEnd> {
        loop {
            // Takes from the queues before it looks: otherwise a loop that begins because a job was suspended could
            // take that job from the pinned queue again and again, while others wait in the ring.
            if let Pick::Job(job) = self.take_next(RunEnd::No)? {
                return Ok(self.found(job));
            }
            if let Some(job) = search::look(self)? {
                return self.begin_unqueued(job);
            }
            match self.take_next(RunEnd::No)? {
                Pick::Job(job) => return Ok(self.found(job)),
                Pick::Look => continue,
                Pick::Empty | Pick::Callbacks => {}
            }
            if search::from_injector(self)? || search::from_reactor_before_sleep(self) {
                continue;
            }
            match search::steal(self)? {
                Found::Queued => {}
                Found::Stolen(job) => return self.begin_stolen(job),
                Found::Nothing => sleep::sleep(self)?,
            }
        }
    }

    /// A stolen job is about to run.
    fn begin_stolen(&self, job: Runnable) -> Result<Runnable, ServeEnd> {
        self.sleep_policy.reset();
        self.begin_unqueued(job)
    }

    /// A job that is in no queue is about to run.
    fn begin_unqueued(&self, job: Runnable) -> Result<Runnable, ServeEnd> {
        if let Err(revoked) = self.set_running_job(&job) {
            ready::ready_last(job);
            return Err(revoked.into());
        }
        Ok(self.found(job))
    }

    /// A job is about to run, the first after a look.
    fn found(&self, job: Runnable) -> Runnable {
        self.end_search();
        if !self.suspects.is_any() {
            job.header().prove_if_it_waited();
        }
        job
    }

    /// The worker no longer searches. The last one to stop wakes another, if it sees that work is left.
    fn end_search(&self) {
        if self.searching.take()
            && self.shared.sleepers.end_search()
            && (search::sees_work(self.shared)
                || self.shared.pool.is_wanted()
                || self.shared.refused_lazy.is_any())
        {
            self.shared.wake_one();
        }
    }

    /// Step 2: runs `job`, and each job that the core hands out after it, until it hands out none.
    pub(crate) fn run_from(&self, mut job: Runnable) -> Result<(), ServeEnd> {
        let budget = self.coarseness.budget(self.shared.config.poll_budget);
        let _before = self.cx.set_direct_budget(budget);
        loop {
            if self.suspects.is_any() && self.is_held() && self.is_kept(&job) {
                let Pick::Job(next) = self.quarantine(job)? else {
                    return Ok(());
                };
                job = next;
                continue;
            }
            let taken = match run::poll(self.cx, &mut job, budget) {
                Polled::Waits => {
                    // The lock before the park: the monitor, which locks the core, follows the run word to this job,
                    // and after the park others may free the job. `take_next` replaces the word, or the revocation did.
                    let next = self.take_next(RunEnd::No);
                    if next.is_err() {
                        self.cx.clear_worker();
                    }
                    run::park(self.cx, job);
                    next
                }
                Polled::Ended(panic) => {
                    let ended = run::finish(job, panic);
                    self.cx.set_job(None); // User destructors must not find this job running.
                    run::drop_last_extensions(&ended);
                    let next = self.take_next(RunEnd::Yes);
                    if next.is_err() {
                        self.cx.clear_worker();
                    }
                    drop(ended);
                    next
                }
            };
            let Ok(Pick::Job(next)) = taken else {
                self.cx.set_job(None);
                return taken.map(drop).map_err(ServeEnd::from);
            };
            // Nothing reads the current job before the next poll replaces it.
            job = next;
        }
    }

    /// A job has ended here after the worker was taken away.
    #[cold]
    fn count_apart(&self, ended: RunEnd) {
        if ended == RunEnd::Yes {
            self.shared.counters.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the next job from the core, under its lock. `ended`: whether a job has just ended here. Afterwards the
    /// run word names the next job, or none.
    #[inline(always)]
    pub(crate) fn take_next(&self, ended: RunEnd) -> Result<Pick, Revoked> {
        let mut core = self
            .enter()
            .inspect_err(|_revoked| self.count_apart(ended))?;
        if ended == RunEnd::Yes {
            core.ended += 1;
        }
        if let Some(job) = core.take_in_row(self.pinned) {
            self.name_run(&job);
            return Ok(Pick::Job(job));
        }
        Ok(self.take_slowly(core))
    }

    /// [`take_next`](WorkerLoop::take_next) where the next slot is empty, or not the only one that may have the turn.
    #[inline(never)]
    fn take_slowly(&self, mut core: OwnerGuard<'a, WorkerCore>) -> Pick {
        let streak_limit = self.shared.config.next_slot_runs;
        let Some(job) = core.take_behind_in_row(self.pinned, streak_limit) else {
            return self.take_any(core, streak_limit);
        };
        self.name_run(&job);
        drop(core);
        if self.coarseness.is_due(self.runs.get()) {
            search::sample_early(self);
        }
        Pick::Job(job)
    }

    /// [`take_next`](WorkerLoop::take_next) with everything that may have the turn.
    #[inline(never)]
    fn take_any(&self, mut core: OwnerGuard<'a, WorkerCore>, streak_limit: u32) -> Pick {
        let next = match core.take(self.pinned, streak_limit, &self.shared.injector) {
            Pick::Callbacks => Pick::Job(self.shared.callback_runner()),
            next => next,
        };
        match &next {
            Pick::Job(job) => self.name_run(job),
            Pick::Look | Pick::Empty | Pick::Callbacks => self.worker().set_running_none(),
        }
        let surplus = core.made_work_visible();
        drop(core);
        if surplus && self.worker().sharing.is_shared() {
            self.shared.wake_one();
        }
        next
    }

    /// A run of `job` begins. Under the lock only.
    #[inline(always)]
    fn name_run(&self, job: &Runnable) {
        let run = self.runs.get() + 1;
        self.runs.set(run);
        self.worker().set_running(job.ptr(), run);
    }

    /// Puts a job that did not come from the core into the run word, before it runs.
    pub(crate) fn set_running_job(&self, job: &Runnable) -> Result<(), Revoked> {
        let mut core = self.enter()?;
        core.count_poll();
        self.name_run(job);
        Ok(())
    }
}
