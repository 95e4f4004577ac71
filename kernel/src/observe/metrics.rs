//! What a runtime did, as plain numbers.

use crate::{scheduler::workers::shared::Shared, sys::Ordering};

/// A runtime's numbers at one moment; see [`Runtime::metrics`](crate::Runtime::metrics).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Workers: how many jobs run at once.
    pub workers: usize,
    /// OS threads that serve workers, stand by, or are stuck in a job.
    pub threads: usize,
    /// Workers that sleep.
    pub sleeping: usize,
    /// Processes that live now, within 512 a worker where the limit is 65,536 or more.
    pub processes: usize,
    /// Jobs that ended on a worker since the start.
    pub ended: u64,
    /// Polls of jobs since the start.
    pub polls: u64,
    /// Jobs that wait to run, in the rings, the next slots, and the injector; and callbacks that do.
    pub runnable: usize,
    /// Timers that are pending, callbacks among them.
    pub timers: usize,
    /// How often a stuck worker was relieved without having been announced.
    pub detached: u64,
    /// How often a job announced that it would block.
    pub announced: u64,
    /// How often a woken job was taken from behind a busy one by an idle worker.
    pub overdue: u64,
}

impl Metrics {
    pub(crate) fn of(shared: &Shared) -> Metrics {
        let mut metrics = Metrics {
            workers: shared.workers.len(),
            threads: shared.pool.threads(),
            sleeping: shared.sleepers.sleeping(),
            processes: shared.limit.limit() - shared.limit.free(),
            ended: 0,
            polls: 0,
            runnable: shared.injector.len(),
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
