//! The worker: the right to run jobs on one of the runtime's queues, and the loop that uses it.
//!
//! A worker is not a thread. It is a right, with a queue, a next slot and a timer wheel behind a
//! [`Gate`]; an OS thread holds at most one. A thread that is stuck in a job loses its right to a
//! stand-in ([`crate::scheduler::threads::monitor`]), learns of it at its next passage through the gate, and goes on
//! without: what it makes runnable then enters through the injector.
//!
//! The loop, in the order in which the machine works ([`Tenure::serve`]):
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
    biased_lock::{Epoch, Gate, Holder, Lost},
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
        worker_core::{Inside, Next},
    },
    sys::{AtomicIsize, AtomicU32, AtomicUsize, Ordering},
    timer::arrivals::Arrivals,
};

/// The right's data.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) gate: Gate<Inside>,
    /// The end of the ring that other workers steal from.
    pub(crate) thief: ring::Thief<Header>,
    /// What the holder runs; see [`RunWord`].
    run: AtomicUsize,
    /// The system's number of the thread that holds the right. Written by the holder.
    pub(crate) holder: AtomicU32,
    /// Callbacks from outside, on their way to the wheel or the queue.
    pub(crate) arrivals: Arrivals,
    /// Cancelled timers that still lie in the wheel; see [`Worker::count_cancelled`].
    cancelled_timers: AtomicIsize,
}

impl Worker {
    /// The worker, and the epoch of its first holder.
    pub(crate) fn new(index: usize) -> (Worker, Epoch) {
        let (ring, thief) = ring::new();
        let (gate, epoch) = Gate::new(Inside::new(ring));
        let worker = Worker {
            index,
            gate,
            thief,
            run: AtomicUsize::new(0),
            holder: AtomicU32::new(0),
            arrivals: Arrivals::new(),
            cancelled_timers: AtomicIsize::new(0),
        };
        (worker, epoch)
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
    pub(crate) fn set_running_aside(&self, job: JobPtr, number: u64) {
        self.run
            .store(RunWord::new(job, number).0, Ordering::Relaxed);
    }

    /// The holder goes on with what it ran before. Inside the gate only.
    pub(crate) fn set_running_again(&self, before: RunWord) {
        self.run.store(before.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn set_running(&self, job: JobPtr, run: u64) {
        self.run.store(RunWord::new(job, run).0, Ordering::Relaxed);
    }
}

/// Whether the run before a passage was a job's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Yes,
    No,
}

/// Why a thread no longer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The right was taken over while the thread was in a job.
    Lost,
    /// Another thread wants a right, for a job that may run there only; this one is given to it.
    Wanted,
    /// The runtime stops.
    Stopped,
}

impl From<Lost> for End {
    fn from(_: Lost) -> End {
        End::Lost
    }
}

/// A thread's times with a right, one after the other. Loops on several stacks of the thread share it, of
/// which one is at work at a time; so everything that changes is in a cell.
pub(crate) struct Tenure<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) shared: &'a Shared,
    /// The jobs bound to this thread.
    pub(crate) home: &'a crate::scheduler::stackful::pinned::Home,
    /// The worker whose right the thread holds, or held last.
    worker: Cell<&'a Worker>,
    /// The right's tenure; [`Epoch::NONE`] while the thread holds none.
    epoch: Cell<Epoch>,
    /// Whether this worker counts as searching.
    pub(crate) searching: Cell<bool>,
    /// How many jobs may run between two looks around; follows how long they take.
    pub(crate) look_every: Cell<u32>,
    /// The trim that this thread last took part in.
    pub(crate) trims_seen: Cell<usize>,
    /// When the tenure began.
    pub(crate) since: Cell<std::time::Instant>,
    /// When the last look was.
    pub(crate) last_look: Cell<std::time::Instant>,
    /// How the worker waits for forked halves.
    pub(crate) patience: SleepPolicy,
    /// Whether searches came true.
    pub(crate) hope: SpinPolicy,
    /// What this thread takes from the reactor.
    pub(crate) batch: Cell<reactor::Batch>,
    /// How many runs there were; tells apart runs of one job.
    runs: Cell<u64>,
}

impl<'a> Tenure<'a> {
    /// The calling thread, whose context is `cx`, holds no right yet.
    pub(crate) fn new(
        cx: &'a Context,
        shared: &'a Shared,
        home: &'a crate::scheduler::stackful::pinned::Home,
    ) -> Tenure<'a> {
        Tenure {
            cx,
            shared,
            home,
            worker: Cell::new(&shared.workers[0]),
            epoch: Cell::new(Epoch::NONE),
            searching: Cell::new(false),
            look_every: Cell::new(1),
            trims_seen: Cell::new(shared.trims.load(Ordering::Acquire)),
            since: Cell::new(shared.clock.now()),
            last_look: Cell::new(shared.clock.now()),
            batch: Cell::default(),
            runs: Cell::new(0),
            patience: SleepPolicy::new(),
            hope: SpinPolicy::default(),
        }
    }

    /// The thread now holds `worker`'s right, since `epoch`.
    pub(crate) fn begin(&self, worker: &'a Worker, epoch: Epoch) {
        let number = self.shared.thread_number();
        worker.holder.store(number, Ordering::Relaxed);
        self.cx.hold(self.shared, worker, epoch);
        self.worker.set(worker);
        self.epoch.set(epoch);
        self.look_every.set(1);
        self.since.set(self.shared.clock.now());
        self.last_look.set(self.since.get());
    }

    /// The context names the right again, if a loop that ended made it forget.
    pub(crate) fn hold_again(&self) {
        if self.is_held() {
            self.cx
                .hold(self.shared, self.worker.get(), self.epoch.get());
        }
    }

    /// The thread no longer serves: returns the worker whose right it held, and the tenure.
    pub(crate) fn end(&self) -> Option<(&'a Worker, Epoch)> {
        self.cx.lose();
        let epoch = self.epoch.replace(Epoch::NONE);
        (epoch != Epoch::NONE).then(|| (self.worker.get(), epoch))
    }

    /// Whether the thread holds a right, or was not yet told that it has lost it.
    pub(crate) fn is_held(&self) -> bool {
        self.epoch.get() != Epoch::NONE
    }

    #[inline(always)]
    pub(crate) fn worker(&self) -> &'a Worker {
        self.worker.get()
    }

    /// The right's tenure.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// Enters the gate of the worker.
    ///
    /// # Errors
    /// If the right was taken over, or there is none.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Holder<'a, Inside>, Lost> {
        let epoch = self.epoch.get();
        if epoch == Epoch::NONE {
            return Err(Lost);
        }
        self.worker.get().gate.enter(epoch)
    }

    /// The loop. Returns when the thread must stop serving; the context then holds no right.
    pub(crate) fn serve(&self) -> End {
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
        self.cx.lose();
        end
    }

    /// Step 1: a job to run.
    fn find(&self) -> Result<Runnable, End> {
        loop {
            // Before the look: a loop that begins because a job left its stack must not take that job first again
            // and again, while others wait in the ring.
            if let Next::Job(job) = self.pass(Ended::No)? {
                return Ok(self.found(job));
            }
            if let Some(job) = search::look(self)? {
                self.announce(&job)?;
                return Ok(self.found(job));
            }
            match self.pass(Ended::No)? {
                Next::Job(job) => return Ok(self.found(job)),
                Next::Look => continue,
                Next::Empty | Next::Callbacks => {}
            }
            if search::from_injector(self)? || search::from_reactor(self) {
                continue;
            }
            match search::steal(self)? {
                Found::Queued => {}
                Found::Half(half) => return self.begin_half(half),
                Found::Nothing => sleep::sleep(self)?,
            }
        }
    }

    /// A forked half to run.
    fn begin_half(&self, half: Runnable) -> Result<Runnable, End> {
        self.patience.renew();
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
            && self.shared.idle.end_search()
            && (search::sees_work(self.shared) || self.shared.crew.is_wanted())
        {
            self.shared.wake_one();
        }
    }

    /// Step 2: runs `job`, and what the gate hands out after it, until that is nothing.
    pub(crate) fn run_from(&self, job: Runnable) -> Result<(), End> {
        let mut job = job;
        let budget = self.shared.config.poll_budget;
        loop {
            self.runs.set(self.runs.get() + 1);
            let next = match run::poll(self.cx, &job, budget) {
                Polled::Waits => {
                    // The gate before the parking: once parked, the job may be freed by another
                    // thread, and until the gate the run word still names it.
                    let next = self.pass(Ended::No);
                    if next.is_err() {
                        self.cx.lose();
                    }
                    run::park(self.cx, job);
                    next
                }
                Polled::Ended(panic) => {
                    let ended = run::finish(job, panic);
                    let next = self.pass(Ended::Yes);
                    if next.is_err() {
                        self.cx.lose();
                    }
                    // Freeing may drop a foreign waker, which must not find this job as the running one.
                    self.cx.set_job(None);
                    drop(ended);
                    next
                }
            };
            self.cx.set_job(None);
            match next? {
                Next::Job(next) => job = next,
                Next::Look | Next::Empty | Next::Callbacks => return Ok(()),
            }
        }
    }

    /// A passage through the gate: takes the next job. `ended`: whether a job ended here.
    /// After it the run word names the next job, or none.
    #[inline(always)]
    pub(crate) fn pass(&self, ended: Ended) -> Result<Next, Lost> {
        let mut inside = self.enter()?;
        if ended == Ended::Yes {
            inside.ended += 1;
        }
        let next = inside.take(
            self.home,
            self.shared.config.next_slot_runs,
            &self.shared.injector,
        );
        let next = next.with_runner(|| self.shared.callback_runner());
        match &next {
            Next::Job(job) => self.worker().set_running(job.ptr(), self.runs.get() + 1),
            Next::Look | Next::Empty | Next::Callbacks => self.worker().set_running_none(),
        }
        let surplus = inside.take_surplus();
        drop(inside);
        if surplus {
            self.shared.wake_one();
        }
        Ok(next)
    }

    /// Names a job that came from elsewhere than the gate as the one that runs next.
    pub(crate) fn announce(&self, job: &Runnable) -> Result<(), Lost> {
        let _inside = self.enter()?;
        self.worker().set_running(job.ptr(), self.runs.get() + 1);
        Ok(())
    }
}
