//! The worker: the right to run jobs on one of the runtime's queues, and the loop that uses it.
//!
//! A worker is not a thread. It is a right, with a queue, a next slot and a timer wheel behind a
//! [`BiasedLock`]; an OS thread holds at most one. A thread that is stuck in a job loses its right to a
//! stand-in ([`crate::scheduler::threads::monitor`]), learns of it at its next passage through the gate, and goes on
//! without: what it makes runnable then enters through the injector.
//!
//! The loop, in the order in which the machine works ([`WorkerLoop::serve`]):
//! 1. find a job: look around (time, home, injector) when a look is due; next slot; ring; injector;
//!    steal; sleep;
//! 2. run it ([`crate::scheduler::workers::run`]); pass the gate, which hands out the next job; settle the first one; and
//!    go on with the next, until none is at hand.
//!
//! The run word names the job that the holder runs. It is written inside the gate only, before the
//! job runs and before it can be freed, so that an outsider inside the gate can rely on it: that job
//! lives until the outsider leaves.
//!
//! The reactor ([`crate::reactor`]) belongs to no worker: it is looked at in `look`, and waited for in
//! `sleep`.

use std::cell::Cell;

use crate::{
    biased_lock::{BiasedLock, Lease, OwnerGuard, Revoked},
    job::{Header, JobPtr, runnable::Runnable},
    queue::ring,
    reactor,
    scheduler::workers::{
        context::Context,
        ready,
        run::{self, Polled},
        run_word::RunWord,
        search::{self, Found, sleep, sleep_policy::SleepPolicy, spin_policy::SpinPolicy},
        shared::Shared,
        worker_core::{Pick, WorkerCore},
    },
    sys::{AtomicIsize, AtomicU32, AtomicUsize, Ordering},
    timer::arrivals::Arrivals,
};

/// The right's data.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) core: BiasedLock<WorkerCore>,
    /// The end of the ring that other workers steal from.
    pub(crate) thief: ring::RingThief<Header>,
    /// What the holder runs; see [`RunWord`].
    run: AtomicUsize,
    /// The system's number of the thread that holds the right. Written by the holder.
    pub(crate) owner_thread: AtomicU32,
    /// Callbacks from outside, on their way to the wheel or the queue.
    pub(crate) arrivals: Arrivals,
    /// Cancelled timers that still lie in the wheel; see [`Worker::count_cancelled`].
    cancelled_timers: AtomicIsize,
}

impl Worker {
    /// The worker, and the epoch of its first holder.
    pub(crate) fn new(index: usize) -> (Worker, Lease) {
        let (ring, thief) = ring::new();
        let (core, lease) = BiasedLock::new(WorkerCore::new(ring));
        let worker = Worker {
            index,
            core,
            thief,
            run: AtomicUsize::new(0),
            owner_thread: AtomicU32::new(0),
            arrivals: Arrivals::new(),
            cancelled_timers: AtomicIsize::new(0),
        };
        (worker, lease)
    }

    /// Counts timers that were cancelled but not unlinked, or that left the wheel after that. The two
    /// may come in either order, so that the number is below zero for a moment. Returns the number.
    pub(crate) fn count_cancelled(&self, change: isize) -> isize {
        // Relaxed: it is a count, and guards no other memory.
        self.cancelled_timers.fetch_add(change, Ordering::Relaxed) + change
    }

    /// How many cancelled timers lie in the wheel.
    pub(crate) fn cancelled_timers(&self) -> usize {
        let count = self.cancelled_timers.load(Ordering::Relaxed);
        usize::try_from(count).unwrap_or(0)
    }

    /// What the holder runs. Exact inside the gate as an outsider; elsewhere a moment old.
    pub(crate) fn running(&self) -> RunWord {
        RunWord(self.run.load(Ordering::Relaxed))
    }

    /// The holder runs nothing, or there is no holder.
    pub(crate) fn set_running_none(&self) {
        self.run.store(RunWord::NONE.0, Ordering::Relaxed);
    }

    /// The running job begins something that is watched as a run of its own. By the holder, inside the gate.
    pub(crate) fn renew_running(&self) {
        self.run.store(self.running().next().0, Ordering::Relaxed);
    }

    /// The holder runs `job` in the middle of another run; `number` tells such runs apart. Inside the gate only.
    pub(crate) fn set_running_nested(&self, job: JobPtr, number: u64) {
        self.run
            .store(RunWord::new(job, number).0, Ordering::Relaxed);
    }

    /// The holder goes on with what it ran before. Inside the gate only.
    pub(crate) fn restore_running(&self, before: RunWord) {
        self.run.store(before.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn set_running(&self, job: JobPtr, run: u64) {
        self.run.store(RunWord::new(job, run).0, Ordering::Relaxed);
    }
}

/// Whether the run before a passage was a job's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Yes,
    No,
}

/// Why a thread no longer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServeEnd {
    /// The right was taken over while the thread was in a job.
    Revoked,
    /// Another thread wants a right, for a job that may run there only; this one is given to it.
    Wanted,
    /// The runtime stops.
    Stopped,
}

impl From<Revoked> for ServeEnd {
    fn from(_: Revoked) -> ServeEnd {
        ServeEnd::Revoked
    }
}

/// A thread's times with a right, one after the other. Loops on several stacks of the thread share it, of
/// which one is at work at a time; so everything that changes is in a cell.
pub(crate) struct WorkerLoop<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) shared: &'a Shared,
    /// The jobs bound to this thread.
    pub(crate) pinned: &'a crate::scheduler::stackful::pinned::PinnedQueue,
    /// The worker whose right the thread holds, or held last.
    worker: Cell<&'a Worker>,
    /// The right's tenure; [`Lease::NONE`] while the thread holds none.
    lease: Cell<Lease>,
    /// Whether this worker counts as searching.
    pub(crate) searching: Cell<bool>,
    /// How many jobs may run between two looks around; follows how long they take.
    pub(crate) look_every: Cell<u32>,
    /// The trim that this thread last took part in.
    pub(crate) trims_seen: Cell<usize>,
    /// When the tenure began.
    pub(crate) lease_since: Cell<std::time::Instant>,
    /// When the last look was.
    pub(crate) last_look: Cell<std::time::Instant>,
    /// How the worker waits for forked halves.
    pub(crate) sleep_policy: SleepPolicy,
    /// Whether searches came true.
    pub(crate) spin_policy: SpinPolicy,
    /// What this thread takes from the reactor.
    pub(crate) batch: Cell<reactor::ReportBatch>,
    /// How many runs there were; tells apart runs of one job.
    runs: Cell<u64>,
}

impl<'a> WorkerLoop<'a> {
    /// The calling thread, whose context is `cx`, holds no right yet.
    pub(crate) fn new(
        cx: &'a Context,
        shared: &'a Shared,
        pinned: &'a crate::scheduler::stackful::pinned::PinnedQueue,
    ) -> WorkerLoop<'a> {
        WorkerLoop {
            cx,
            shared,
            pinned,
            worker: Cell::new(&shared.workers[0]),
            lease: Cell::new(Lease::NONE),
            searching: Cell::new(false),
            look_every: Cell::new(1),
            trims_seen: Cell::new(shared.trims.load(Ordering::Acquire)),
            lease_since: Cell::new(shared.clock.now()),
            last_look: Cell::new(shared.clock.now()),
            batch: Cell::default(),
            runs: Cell::new(0),
            sleep_policy: SleepPolicy::new(),
            spin_policy: SpinPolicy::default(),
        }
    }

    /// The thread now holds `worker`'s right, since `lease`.
    pub(crate) fn begin(&self, worker: &'a Worker, lease: Lease) {
        let number = self.shared.thread_number();
        worker.owner_thread.store(number, Ordering::Relaxed);
        self.cx.set_worker(self.shared, worker, lease);
        self.worker.set(worker);
        self.lease.set(lease);
        self.look_every.set(1);
        self.lease_since.set(self.shared.clock.now());
        self.last_look.set(self.lease_since.get());
    }

    /// The context names the right again, if a loop that ended made it forget.
    pub(crate) fn restore_worker(&self) {
        if self.is_held() {
            self.cx
                .set_worker(self.shared, self.worker.get(), self.lease.get());
        }
    }

    /// The thread no longer serves: returns the worker whose right it held, and the tenure.
    pub(crate) fn end(&self) -> Option<(&'a Worker, Lease)> {
        self.cx.clear_worker();
        let lease = self.lease.replace(Lease::NONE);
        (lease != Lease::NONE).then(|| (self.worker.get(), lease))
    }

    /// Whether the thread holds a right, or was not yet told that it has lost it.
    pub(crate) fn is_held(&self) -> bool {
        self.lease.get() != Lease::NONE
    }

    #[inline(always)]
    pub(crate) fn worker(&self) -> &'a Worker {
        self.worker.get()
    }

    /// The right's tenure.
    pub(crate) fn lease(&self) -> Lease {
        self.lease.get()
    }

    /// Enters the gate of the worker.
    ///
    /// # Errors
    /// If the right was taken over, or there is none.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<OwnerGuard<'a, WorkerCore>, Revoked> {
        let lease = self.lease.get();
        if lease == Lease::NONE {
            return Err(Revoked);
        }
        self.worker.get().core.enter(lease)
    }

    /// The loop. Returns when the thread must stop serving; the context then holds no right.
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
            // Before the look: a loop that begins because a job left its stack must not take that job first again
            // and again, while others wait in the ring.
            if let Pick::Job(job) = self.take_next(RunEnd::No)? {
                return Ok(self.found(job));
            }
            if let Some(job) = search::look(self)? {
                self.announce(&job)?;
                return Ok(self.found(job));
            }
            match self.take_next(RunEnd::No)? {
                Pick::Job(job) => return Ok(self.found(job)),
                Pick::Look => continue,
                Pick::Empty | Pick::Callbacks => {}
            }
            if search::from_injector(self)? || search::from_reactor(self) {
                continue;
            }
            match search::steal(self)? {
                Found::Queued => {}
                Found::Stolen(half) => return self.begin_stolen(half),
                Found::Nothing => sleep::sleep(self)?,
            }
        }
    }

    /// A forked half to run.
    fn begin_stolen(&self, half: Runnable) -> Result<Runnable, ServeEnd> {
        self.sleep_policy.renew();
        if let Err(lost) = self.announce(&half) {
            ready::inject(self.shared, half);
            return Err(lost.into());
        }
        Ok(self.found(half))
    }

    /// A job is to be run.
    fn found(&self, job: Runnable) -> Runnable {
        self.end_search();
        job
    }

    /// The worker no longer searches; the last one to stop wakes the next, if it sees that more is left to do.
    fn end_search(&self) {
        if self.searching.take()
            && self.shared.sleepers.end_search()
            && (search::sees_work(self.shared) || self.shared.pool.is_wanted())
        {
            self.shared.wake_one();
        }
    }

    /// Step 2: runs `job`, and what the gate hands out after it, until that is nothing.
    pub(crate) fn run_from(&self, job: Runnable) -> Result<(), ServeEnd> {
        let mut job = job;
        let budget = self.shared.config.poll_budget;
        loop {
            self.runs.set(self.runs.get() + 1);
            let next = match run::poll(self.cx, &job, budget) {
                Polled::Waits => {
                    // The gate before the parking: once parked, the job may be freed by another
                    // thread, and until the gate the run word still names it.
                    let next = self.take_next(RunEnd::No);
                    if next.is_err() {
                        self.cx.clear_worker();
                    }
                    run::park(self.cx, job);
                    next
                }
                Polled::Ended(panic) => {
                    let ended = run::finish(job, panic);
                    let next = self.take_next(RunEnd::Yes);
                    if next.is_err() {
                        self.cx.clear_worker();
                    }
                    // Freeing may drop a foreign waker, which must not find this job as the running one.
                    self.cx.set_job(None);
                    drop(ended);
                    next
                }
            };
            self.cx.set_job(None);
            match next? {
                Pick::Job(next) => job = next,
                Pick::Look | Pick::Empty | Pick::Callbacks => return Ok(()),
            }
        }
    }

    /// A passage through the gate: takes the next job. `ended`: whether a job ended here.
    /// After it the run word names the next job, or none.
    #[inline(always)]
    pub(crate) fn take_next(&self, ended: RunEnd) -> Result<Pick, Revoked> {
        let mut core = self.enter()?;
        if ended == RunEnd::Yes {
            core.ended += 1;
        }
        let next = core.take(
            self.pinned,
            self.shared.config.next_slot_runs,
            &self.shared.injector,
        );
        let next = next.with_runner(|| self.shared.callback_runner());
        match &next {
            Pick::Job(job) => self.worker().set_running(job.ptr(), self.runs.get() + 1),
            Pick::Look | Pick::Empty | Pick::Callbacks => self.worker().set_running_none(),
        }
        let surplus = core.take_surplus();
        drop(core);
        if surplus {
            self.shared.wake_one();
        }
        Ok(next)
    }

    /// Names a job that came from elsewhere than the gate as the one that runs next.
    pub(crate) fn announce(&self, job: &Runnable) -> Result<(), Revoked> {
        let _inside = self.enter()?;
        self.worker().set_running(job.ptr(), self.runs.get() + 1);
        Ok(())
    }
}
