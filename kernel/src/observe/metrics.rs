//! What a runtime has done, and what it holds now, as plain numbers.
//!
//! The numbers are read one after the other while the runtime runs, so they need not add up.

use crate::{
    scheduler::{threads::held_up, workers::shared::Shared},
    sys::Ordering,
};

/// A runtime's numbers at about one moment; see [`Runtime::metrics`](crate::Runtime::metrics).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Workers, which is how many jobs run at once.
    pub workers: usize,
    /// OS threads: those that serve workers, spare threads, and detached threads that are still in a job.
    pub threads: usize,
    /// Blocking threads: those that run closures of [`blocking`](crate::blocking) and [`offload`](crate::offload()),
    /// and idle ones. They are not among `threads`.
    pub blocking_threads: usize,
    /// Closures that run on blocking threads.
    pub blocking: usize,
    /// Closures that wait for a turn on a blocking thread.
    pub blocking_queued: usize,
    /// Workers that sleep.
    pub sleeping: usize,
    /// Live processes. Exact to 512 per worker if the process limit is 65,536 or more, else exact.
    pub processes: usize,
    /// Jobs that have ended on a worker since the start.
    pub ended: u64,
    /// Polls of jobs since the start.
    pub polls: u64,
    /// Runnable jobs (in rings, overflow queues, next slots, the injector and the quarantine), and ready callbacks.
    pub runnable: usize,
    /// Jobs that are held up: runnable, but pinned to an OS thread that another job holds, by blocking or computing.
    /// [`Runtime::waits`](crate::Runtime::waits) names them. They are not among `runnable`.
    pub held_up: usize,
    /// Pending timers, including those of callbacks.
    pub timers: usize,
    /// How often a thread was detached from its worker because its job blocked or computed for too long without
    /// releasing the worker.
    pub detached: u64,
    /// How often a job released its worker before it blocked its thread: in
    /// [`block_in_place`](crate::block_in_place), or in a
    /// [`wait()`](crate::Wait::wait) that holds the thread.
    pub announced: u64,
    /// How often a woken job left the next slot of a busy worker, so that an idle worker could run it.
    pub overdue: u64,
}

impl Metrics {
    pub(crate) fn of(shared: &Shared) -> Metrics {
        let (blocking, blocking_queued) = shared.blocking.calls();
        let mut metrics = Metrics {
            blocking_threads: shared.blocking.threads(),
            blocking,
            blocking_queued,
            workers: shared.workers.len(),
            threads: shared.pool.threads(),
            sleeping: shared.sleepers.sleeping(),
            processes: shared.limit.limit() - shared.limit.free(),
            ended: 0,
            polls: 0,
            runnable: shared.injector.len() + shared.quarantine.len(),
            held_up: held_up::count(shared),
            timers: 0,
            detached: shared.counters.detached.load(Ordering::Relaxed),
            announced: shared.counters.announced.load(Ordering::Relaxed),
            overdue: shared.counters.overdue.load(Ordering::Relaxed),
        };
        for worker in &shared.workers {
            let core = worker.core.enter_foreign();
            metrics.processes = metrics.processes.saturating_sub(core.spare_places);
            metrics.ended += core.ended;
            metrics.polls += core.polls();
            metrics.runnable +=
                core.overflow.len() + core.ring.len() + usize::from(core.next.is_some());
            metrics.runnable += core.callbacks.len();
            metrics.runnable += usize::from(!worker.arrivals.is_empty());
            let cancelled = worker.cancelled_timers();
            metrics.timers += core.wheel.pending().saturating_sub(cancelled);
        }
        metrics
    }
}
