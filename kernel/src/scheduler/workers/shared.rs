//! What the threads of a runtime share, and how a job finds its runtime.
//!
//! Jobs name their runtime by a number ([`numbers`]). [`find`] turns the number into the runtime, or returns `None` if
//! the runtime is gone. A runtime is open, then closing (nothing new is spawned), then cancelling (every job is asked
//! to end), then stopped (workers end); it never goes back.

#![allow(unsafe_code)]

mod numbers;
mod phase;

use std::{
    sync::{Arc, Condvar},
    time::Instant,
};

use self::numbers::RuntimeNumbers;
pub(crate) use self::numbers::TooManyRuntimes;
use crate::{
    FEATURES,
    job::{
        Header, JobPtr, JobRef, REPEATS,
        runnable::Runnable,
        walked::{self, WalkedJobs},
    },
    memory,
    queue::{
        injector::{Injector, JobBatch},
        ring,
        sharing::refused_lazy_jobs::RefusedLazyJobs,
        sleepers::Sleepers,
    },
    reactor::Reactor,
    report::RuntimeSubscriber,
    scheduler::services::Forks,
    scheduler::{
        threads::{
            blocking_pools::BlockingPools,
            detached::DetachedThreads,
            leftovers::{LeftoverThreads, Leftovers},
            monitor_sleep::MonitorSleep,
            pool::{Handoff, ThreadPool},
            quarantine::Quarantine,
            queue_watch::QueueWatch,
            suspects::Suspects,
        },
        workers::{
            config::{Config, available_workers},
            counters::Counters,
            limit::Limit,
            own_process::ProcessNumber,
            search::{self, sleep::Sleeper},
            trim_requests::TrimRequests,
            waker,
            worker::Worker,
            worker_core::WorkerCore,
        },
    },
    stack::Stack,
    sys::{AtomicBool, AtomicU8, AtomicUsize, Mutex, Ordering, barrier, lock},
    timer::clock::{self, Clock, TICK},
    timer::{due::Due, entry_queue::EntryQueue},
};

/// What a runtime's threads share.
pub(crate) struct Shared {
    id: u16,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) workers: Box<[Worker]>,
    pub(crate) injector: Injector<Header>,
    /// Lazy jobs for which the system has refused a stack, or what else they need.
    pub(crate) refused_lazy: RefusedLazyJobs,
    pub(crate) sleepers: Sleepers<Sleeper>,
    /// Sockets may keep it longer than the runtime lives.
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) pool: ThreadPool,
    /// The threads for closures that block.
    pub(crate) blocking: BlockingPools,
    pub(crate) monitor: MonitorSleep,
    pub(crate) limit: Limit,
    pub(crate) counters: Counters,
    /// Gets the reports that the runtime's threads make.
    pub(crate) subscriber: Arc<RuntimeSubscriber>,
    /// The forked work.
    pub(crate) forks: Box<dyn Forks<Shared>>,
    pub(crate) trims: TrimRequests,
    /// The threads whose worker was retaken, or that gave it away to block.
    pub(crate) detached: DetachedThreads,
    /// The kinds of jobs that held their threads for too long, and the jobs of these kinds that wait for a thread.
    pub(crate) suspects: Suspects,
    pub(crate) quarantine: Quarantine,
    /// How long messages wait.
    pub(crate) queues: QueueWatch,
    /// How many threads are held by jobs in `wait()`: they do not count against the limit of spare threads.
    pub(crate) threads_held_in_wait: AtomicUsize,
    /// Whether it was reported that all spare threads are in use, and no thread was found since.
    pub(crate) at_bound: AtomicBool,
    /// Workers for which no thread was found; the monitor tries again each round. It has room for all workers.
    pub(crate) orphans: Mutex<Vec<Handoff>>,
    /// Run the user code that is left once the runtime has stopped.
    pub(crate) leftovers: Arc<LeftoverThreads>,
    phase: AtomicU8,
    /// The process that has the runtime's threads.
    pub(crate) process: ProcessNumber,
    /// Signalled when a thread of the runtime ends.
    ended: (std::sync::Mutex<()>, Condvar),
}

static NUMBERS: RuntimeNumbers<Shared> = RuntimeNumbers::new();

/// The runtime with this number, if it still exists.
pub(crate) fn find(id: u16) -> Option<Arc<Shared>> {
    NUMBERS.find(id)
}

impl Shared {
    /// A runtime without threads, and a handoff for each of its workers.
    pub(crate) fn new(
        config: Config,
        clock: clock::ClockKind,
    ) -> Result<(Arc<Shared>, Vec<Handoff>), TooManyRuntimes> {
        barrier::register();
        let repeats = match clock {
            clock::ClockKind::Virtual => REPEATS,
            clock::ClockKind::Real => 0,
        };
        let subscriber = RuntimeSubscriber::current();
        let ring = match config.workers {
            1 => ring::alone,
            _ => ring::new,
        };
        let worker = |index| Worker::new(index, ring());
        let (workers, leases): (Vec<_>, Vec<_>) = (0..config.workers).map(worker).unzip();
        let shared = NUMBERS.assign(|number| {
            let id = number | repeats;
            Arc::new(Shared {
                id,
                clock: Clock::new(clock),
                workers: workers.into_boxed_slice(),
                injector: Injector::new(),
                refused_lazy: RefusedLazyJobs::new(),
                sleepers: Sleepers::new(config.workers),
                reactor: Arc::new(Reactor::new()),
                pool: ThreadPool::new(),
                blocking: BlockingPools::new(&config),
                monitor: MonitorSleep::new(),
                limit: Limit::new(config.process_limit),
                counters: Counters::default(),
                leftovers: LeftoverThreads::new(subscriber.clone()),
                subscriber,
                forks: (FEATURES.forks)(),
                trims: TrimRequests::new(config.workers),
                detached: DetachedThreads::new(available_workers()),
                suspects: Suspects::default(),
                quarantine: Quarantine::new(),
                queues: QueueWatch::new(id, config.mailbox_mark),
                threads_held_in_wait: AtomicUsize::new(0),
                at_bound: AtomicBool::new(false),
                orphans: Mutex::new(Vec::with_capacity(config.workers)),
                phase: AtomicU8::new(phase::OPEN),
                process: ProcessNumber::here(),
                ended: (std::sync::Mutex::new(()), Condvar::new()),
                config,
            })
        })?;
        let handoff = |(worker, lease)| Handoff { worker, lease };
        Ok((
            shared,
            leases.into_iter().enumerate().map(handoff).collect(),
        ))
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    /// The class of the stacks on which this runtime's loops run.
    pub(crate) fn stack_class(&self) -> u32 {
        Stack::class_of(self.config.thread_stack)
    }

    /// The system's number of the calling thread.
    pub(crate) fn thread_number(&self) -> u32 {
        rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
    }

    /// Whether one thread drives everything, in virtual time.
    pub(crate) fn is_driven(&self) -> bool {
        self.clock.kind() == clock::ClockKind::Virtual
    }

    /// How many threads there may be: workers, spare threads, and those that jobs hold in `wait()`. The last are not
    /// bounded, because all others may wait for one of them.
    pub(crate) fn most_threads(&self) -> usize {
        let held = self.threads_held_in_wait.load(Ordering::Relaxed);
        self.config
            .spare_threads
            .saturating_add(self.workers.len())
            .saturating_add(held)
    }

    /// Work became visible to all workers: wakes a sleeper, if there is one and no worker searches.
    #[inline]
    pub(crate) fn wake_one(&self) {
        if let Some(sleeper) = self.sleepers.take_one() {
            sleeper.wake(self);
        }
    }

    /// As [`wake_one`](Shared::wake_one), by the owner of a worker, after it has put a job into its own ring.
    #[inline]
    pub(crate) fn wake_one_for_own_ring(&self) {
        if let Some(sleeper) = self.sleepers.take_for_own_ring() {
            sleeper.wake(self);
        }
    }

    /// A job, in no queue, that runs the callbacks that are ready at its worker.
    pub(crate) fn callback_runner(&self) -> Runnable {
        FEATURES.callbacks.runner(self.id, EntryQueue::new())
    }

    /// Whether new jobs are refused.
    pub(crate) fn is_closing(&self) -> bool {
        self.phase.load(Ordering::Acquire) >= phase::CLOSING
    }

    /// Whether the workers stop.
    pub(crate) fn is_stopped(&self) -> bool {
        // SeqCst: pairs with the store in `stop`; see `ready::inject_all`.
        self.phase.load(Ordering::SeqCst) == phase::STOPPED
    }

    /// First step of a shutdown: nothing new.
    pub(crate) fn close(&self) {
        self.phase.fetch_max(phase::CLOSING, Ordering::SeqCst);
    }

    /// Third step of a shutdown: every job is asked to end.
    pub(crate) fn begin_to_cancel(&self) {
        self.phase.fetch_max(phase::CANCELLING, Ordering::SeqCst);
    }

    /// Whether a shutdown has asked every job to end.
    pub(crate) fn is_cancelling(&self) -> bool {
        self.phase.load(Ordering::Acquire) >= phase::CANCELLING
    }

    /// Fourth step of a shutdown: every thread that is not in a job ends.
    pub(crate) fn stop(&self) {
        self.phase.store(phase::STOPPED, Ordering::SeqCst);
        for (_, sleeper) in self.sleepers.take_all() {
            sleeper.wake(self);
        }
        self.pool.dismiss();
        let mut refused = Leftovers::default();
        refused.queued = self.blocking.stop();
        self.leave(refused);
        self.monitor.wake();
    }

    /// A thread of the runtime has ended.
    pub(crate) fn thread_ended(&self) {
        let _guard = lock(&self.ended.0);
        self.ended.1.notify_all();
    }

    /// Waits until no blocking thread and no pool thread is left, apart from `own` that cannot end before the caller
    /// returns; at most until `deadline`. Meanwhile fires the timers that are due.
    pub(crate) fn await_threads(&self, own: usize, deadline: Instant) {
        let mut guard = lock(&self.ended.0);
        while self.pool.threads() + self.blocking.threads() > own {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.ended.1.wait_timeout(guard, left.min(TICK));
            guard = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            drop(guard);
            self.fire_due_after_stop();
            guard = lock(&self.ended.0);
        }
    }

    /// Cancels the jobs in the injector, in the outboxes and in the quarantine's queue. Only once the runtime is
    /// stopped.
    pub(crate) fn cancel_injected(&self) {
        while let Some(job) = self.quarantine.pop() {
            drop(job);
        }
        self.injector.push(self.pool.outboxes.take_all());
        loop {
            let Some(job) = self.injector.pop(1).pop() else {
                return;
            };
            let job = JobPtr::from_raw(std::ptr::NonNull::new(job).expect("a queued job"));
            // SAFETY: the injector held the job's right to run.
            drop(unsafe { Runnable::new(job) });
        }
    }

    /// Puts a job where [`cancel_injected`](Self::cancel_injected) finds it.
    pub(crate) fn inject_stopped(&self, job: Runnable) {
        let mut batch = JobBatch::new();
        // SAFETY: the runnable's right goes into the batch.
        unsafe { batch.push(job.into_ptr().as_raw().as_ptr()) };
        self.injector.push(batch);
    }

    /// Every job of this runtime that is not done; on a test runtime in the order in which they were spawned. Exact
    /// once no thread of the runtime runs; until then jobs may end meanwhile. A worker that needs memory for jobs waits
    /// for the walk; so elsewhere than in a shutdown, [`jobs_that`](Self::jobs_that) is to be used.
    pub(crate) fn live_jobs(&self) -> WalkedJobs {
        let mut jobs = Vec::new();
        // SAFETY: job blocks stay mapped.
        let of_runtime = |block| unsafe { JobRef::from_block_of(block, self.id) };
        memory::collect_job_blocks(&mut jobs, of_runtime);
        let mut jobs = WalkedJobs::new(jobs);
        jobs.retain(|job| job.header().runtime() == self.id && !job.header().state.is_done());
        if self.is_driven() {
            jobs.sort_by_cached_key(|job| job.header().extensions.lock().number());
        }
        jobs
    }

    /// The jobs of this runtime that `is_wanted` selects, as in [`walked::jobs_of`].
    pub(crate) fn jobs_that(&self, is_wanted: impl Fn(&JobRef) -> bool) -> WalkedJobs {
        walked::jobs_of(&[self.id], is_wanted)
    }

    /// The shutdown leaves jobs behind: the number stays out of use until they have ended.
    pub(crate) fn note_left_jobs(&self) {
        NUMBERS.note_left_jobs(self.id);
    }

    /// Cancels the jobs in the queues of the workers. Only once the runtime is stopped.
    pub(crate) fn cancel_in_workers(&self) {
        for worker in &self.workers {
            let mut queued = Vec::new();
            let mut core = worker.core.enter_foreign();
            queued.extend(core.next.take());
            while let Some(job) = core.ring.pop().or_else(|| core.overflow.pop()) {
                queued.extend(std::ptr::NonNull::new(job).map(JobPtr::from_raw));
            }
            drop(core);
            for job in queued {
                // SAFETY: the queue held the job's right to run.
                drop(unsafe { Runnable::new(job) });
            }
        }
    }

    /// Fires the sleeps that are due in every wheel, and leaves the callbacks that are due to be dropped. Only once the
    /// runtime is stopped: no worker does it any longer, and a destructor may sleep.
    pub(crate) fn fire_due_after_stop(&self) {
        let now = self.clock.step_at(self.clock.now());
        self.fire_all(|worker, core, due| {
            let mut callbacks = EntryQueue::new();
            let mut take = |entry| due.add(entry, &mut callbacks);
            core.take_arrivals(&worker.arrivals);
            core.wheel.advance(now, usize::MAX, &mut take);
            callbacks.take()
        });
    }

    /// Fires every timer, so that nothing waits for ever for a runtime that is gone, and leaves the callbacks to be
    /// dropped. A sleep that fires early starts anew in a runtime that lives.
    fn close_timers(&self) {
        self.fire_all(|worker, core, due| {
            core.close(&worker.arrivals);
            let mut take = |entry| due.add(entry, &mut core.callbacks);
            core.wheel.sweep(|_| true, &mut take);
            core.callbacks.take()
        });
    }

    /// Fires what `take` takes out of each worker's wheel. Foreign wakers, and the callbacks that it returns, are
    /// leftovers, because no worker is left.
    fn fire_all(&self, mut take: impl FnMut(&Worker, &mut WorkerCore, &mut Due) -> EntryQueue) {
        let mut found = Leftovers::default();
        for worker in &self.workers {
            let mut due = Due::default();
            let mut core = worker.core.enter_foreign();
            let mut callbacks = take(worker, &mut core, &mut due);
            search::fire_and_unlock(worker, core, due, |by, waker| {
                waker::call(by, waker, &mut found.calls);
            });
            while let Some(callback) = callbacks.pop() {
                found.closures.push_unlisted(callback);
            }
        }
        self.leave(found);
    }

    /// Runs the user code that was found after the stop, on threads for it.
    pub(crate) fn leave(&self, found: Leftovers) {
        match self.is_driven() {
            true => drop(found),
            false => self.leftovers.add(found),
        }
    }

    /// Wakes whatever still waits for a timer or a descriptor of this runtime, which has stopped.
    pub(crate) fn wake_leftovers(&self) {
        self.close_timers();
        waker::wake_ready(self, self.reactor.close());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake_leftovers();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}
