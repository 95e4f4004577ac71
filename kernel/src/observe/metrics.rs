//! What a runtime has done, and what it holds now, as plain numbers.
//!
//! The numbers are read one after the other while the runtime runs, so they need not add up.

use std::time::Duration;

use weald_sync::backlog;

use crate::{
    scheduler::{
        threads::held_up,
        workers::{cancelled_timers::CancelledTimers, shared::Shared},
    },
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
    /// operations on files and lookups of names, and idle ones. They are not among `threads`.
    pub blocking_threads: usize,
    /// Closures and operations that run on blocking threads.
    pub blocking: usize,
    /// Closures and operations that wait for a blocking thread.
    pub blocking_queued: usize,
    /// Workers that sleep.
    pub sleeping: usize,
    /// Live processes. Exact if the process limit is below 65,536, else exact to 512 per worker.
    pub processes: usize,
    /// Jobs that have run and ended since the start, including those that ended on a detached
    /// thread.
    pub ended: u64,
    /// Polls of jobs since the start, with the runs of threads of the C face that were no jobs.
    pub polls: u64,
    /// Runnable jobs (in rings, overflow queues, next slots, the injector and the quarantine), and ready callbacks.
    pub runnable: usize,
    /// Jobs that are held up: runnable, but pinned to an OS thread that another job holds, or the future of `block_on`,
    /// by blocking or computing. [`Runtime::waits`](crate::Runtime::waits) names them. They are not among `runnable`.
    pub held_up: usize,
    /// Jobs that were asked to end while their threads were detached from their workers, because they block or compute,
    /// and that have not come to a wait since. [`Runtime::waits`](crate::Runtime::waits) names them.
    pub pending_kills: usize,
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
    /// How often a ready callback was moved from a busy worker, so that an idle worker could run it.
    pub moved_callbacks: u64,
    /// Mailboxes whose receivers found at least [`mailbox_mark`](crate::Builder::mailbox_mark) messages, and have not
    /// received them yet, and those that have got as many while nobody looked into them.
    /// [`Runtime::long_mailboxes`](crate::Runtime::long_mailboxes) and
    /// [`Runtime::unread_mailboxes`](crate::Runtime::unread_mailboxes) list them.
    pub long_mailboxes: usize,
    /// The most messages that a receiver found, and has not received yet, or got while nobody looked into a long
    /// mailbox. Of what receivers find, 1,024 messages and more at once count.
    pub longest_mailbox: usize,
    /// How long the oldest message in a mailbox has waited, at least, if any waits. Messages that nobody has taken out
    /// of a mailbox count, and from when they were found those of which a receiver found 1,024 or more at once.
    /// [`Runtime::unread_mailboxes`](crate::Runtime::unread_mailboxes) says how exact it is.
    pub oldest_message: Option<Duration>,
    /// Channels of the whole program that hold at least [`mailbox_mark`](crate::Builder::mailbox_mark) values;
    /// [`Runtime::long_channels`](crate::Runtime::long_channels) lists them.
    pub long_channels: usize,
    /// The most values that one channel of the program holds, among those that once held more than 64.
    pub longest_channel: usize,
    /// How long the oldest value in one of these channels has waited, at least, if any waits.
    pub oldest_value: Option<Duration>,
}

impl Metrics {
    pub(crate) fn of(shared: &Shared) -> Metrics {
        let mut metrics = Metrics::without_queues(shared);
        let mailboxes = shared.queues.figures(&shared.clock);
        metrics.long_mailboxes = mailboxes.long;
        metrics.longest_mailbox = mailboxes.longest;
        let now = shared.clock.now();
        let age = |since| now.saturating_duration_since(since);
        metrics.oldest_message = mailboxes.oldest.map(age);
        let channels = backlog::long_channels();
        let is_long = |values: usize| values >= shared.config.mailbox_mark;
        metrics.long_channels = channels.iter().filter(|it| is_long(it.values)).count();
        metrics.longest_channel = channels.first().map_or(0, |longest| longest.values);
        metrics.oldest_value = channels.iter().map(|channel| channel.waited).max();
        metrics
    }

    /// All numbers except those of mailboxes and channels, which may need a look at every job.
    pub(crate) fn without_queues(shared: &Shared) -> Metrics {
        let (blocking, blocking_queued) = shared.blocking.calls();
        let mut metrics = Metrics {
            blocking_threads: shared.blocking.threads(),
            blocking,
            blocking_queued,
            workers: shared.workers.len(),
            threads: shared.pool.threads(),
            sleeping: shared.sleepers.sleeping(),
            processes: shared.limit.limit() - shared.limit.free(),
            ended: shared.counters.ended.load(Ordering::Relaxed),
            polls: 0,
            runnable: shared.injector.len() + shared.quarantine.len(),
            held_up: held_up::count(shared),
            pending_kills: shared.detached.pending_kills().len(),
            timers: 0,
            detached: shared.counters.detached.load(Ordering::Relaxed),
            announced: shared.counters.announced.load(Ordering::Relaxed),
            overdue: shared.counters.overdue.load(Ordering::Relaxed),
            moved_callbacks: shared.counters.moved_callbacks.load(Ordering::Relaxed),
            long_mailboxes: 0,
            longest_mailbox: 0,
            oldest_message: None,
            long_channels: 0,
            longest_channel: 0,
            oldest_value: None,
        };
        for worker in &shared.workers {
            let mut core = worker.core.enter_foreign();
            core.take_arrivals(&worker.arrivals);
            metrics.processes = metrics.processes.saturating_sub(core.spare_admissions);
            metrics.ended += core.ended;
            metrics.polls += core.polls();
            metrics.runnable +=
                core.overflow.len() + core.ring.len() + usize::from(core.next.is_some());
            metrics.runnable += core.callbacks.len();
            metrics.timers += core.wheel.pending();
        }
        let cancelled = shared.workers.iter().map(|worker| &worker.cancelled);
        let cancelled = CancelledTimers::sum_of(cancelled);
        metrics.timers = metrics.timers.saturating_sub(cancelled);
        metrics
    }
}
