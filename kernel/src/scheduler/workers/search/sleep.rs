//! The last step of a search: a worker sleeps, in the poller or parked, until it is woken.

use std::{
    num::NonZeroU64,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::scheduler::workers::search::{
    handle_ready, other_core, restart_clock, sees_work, take_part_in_trim,
};
use crate::{
    biased_lock::Revoked,
    queue::sleepers::Before,
    reactor::{ReadyBatch, poller_lock::PollerGuard},
    scheduler::workers::{
        shared::Shared,
        worker::{Worker, WorkerLoop},
    },
    sys::Ordering,
};

/// How to wake a sleeping worker.
pub(crate) struct Sleeper {
    /// The system's number of the thread.
    thread: u32,
    sleeps: Sleeps,
}

enum Sleeps {
    Parked(Thread),
    InPoller,
}

impl Sleeper {
    /// Ends the sleep. Called with what [`crate::queue::sleepers`] returned, once.
    pub(crate) fn wake(self, shared: &Shared) {
        match self.sleeps {
            Sleeps::Parked(thread) => thread.unpark(),
            Sleeps::InPoller => shared.reactor.notify(),
        }
    }

    /// As [`wake`](Sleeper::wake), by a thread that goes on computing beside the work for which it wakes.
    pub(crate) fn wake_on_other_core(self, shared: &Shared) {
        other_core::wake_on_other_core(self.thread, || self.wake(shared));
    }
}

/// Asks the system to end the sleeps of the calling thread when they should end. Otherwise it may end each up to 50 µs
/// later, together with others.
///
/// Threads and processes that a job starts inherit this, processes also over an `exec`: their sleeps are as exact. It
/// is not reset for them, since jobs start them through the standard library.
pub(crate) fn wake_on_time() {
    // If the system refuses, sleeps end later.
    let _set = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Sleeps until there is work, a timer is due, the reactor reports something, or the runtime needs the worker for
/// anything else. The worker searches afterwards.
pub(crate) fn sleep(worker_loop: &WorkerLoop<'_>) -> Result<(), Revoked> {
    let (shared, worker) = (worker_loop.shared, worker_loop.worker());
    let poller_guard = shared.reactor.lock_poller();
    let sleeper = Sleeper {
        thread: worker.owner_thread.load(Ordering::Relaxed),
        sleeps: match &poller_guard {
            Some(_) => Sleeps::InPoller,
            None => Sleeps::Parked(thread::current()),
        },
    };
    let from = match worker_loop.searching.get() {
        true => Before::Searching,
        false => Before::Running,
    };
    shared.sleepers.prepare(worker.index, sleeper, from);
    // After `prepare`: a timer or callback that a foreign thread adds now finds this worker asleep and wakes
    // it, and so does a fork.
    let core = worker_loop.enter()?;
    let deadline = core.wheel.next_deadline();
    let callbacks = !core.callbacks.is_empty() || !worker.arrivals.is_empty();
    drop(core);
    let until = |deadline| worker_loop.exact_sleeps.end_for(deadline);
    let deadline = deadline.map(|step| shared.clock.start_of(until(step)));
    let forks = worker_loop.sleep_policy.watch_forks(shared);
    let deadline = forks.deadline(deadline);
    // Whoever adds the first that was refused wakes a sleeper, as for a timer.
    let retry = shared.refused_lazy.next_try(shared.clock.now());
    let deadline = deadline.into_iter().chain(retry).min();
    let mut batch = worker_loop.batch.take();
    let lacks_me = poller_guard.is_none() && shared.reactor.is_unattended();
    let no_work =
        !callbacks && !sees_work_before_sleep(shared) && !forks.sees_work(shared) && !lacks_me;
    if no_work && shared.trims.last() == worker_loop.trims_seen.get() {
        match &poller_guard {
            Some(poller_guard) => wait_in_poller(worker_loop, poller_guard, deadline, &mut batch),
            None => park_thread(worker_loop, deadline),
        }
    }
    // The poller lock first: a worker that is awake never holds it.
    drop(poller_guard);
    shared.sleepers.retract(worker.index);
    worker_loop.searching.set(true);
    // Before anything is found to do, and before the thread may lose its worker: a trim waits for it.
    take_part_in_trim(worker_loop);
    // The sleep is not a part of the work that follows.
    restart_clock(worker_loop);
    shared.monitor.worker_woke();
    if batch.len() > 1 {
        // Under such a load a poll may well find the next events.
        worker_loop.poll_policy.found_work();
    }
    // Handled only now, while this worker counts as searching: so the jobs that become runnable here wake no other
    // worker.
    handle_ready(shared, &mut batch);
    worker_loop.batch.set(batch);
    Ok(())
}

/// As [`sees_work`], for a worker that is about to sleep.
fn sees_work_before_sleep(shared: &Shared) -> bool {
    let mut workers = shared.workers.iter();
    match shared.is_driven() {
        true => sees_work(shared),
        false => shared.injector.len() > 0 || workers.any(Worker::has_work_for_sleepers),
    }
}

/// How long a sleep may still last. None: it is over. Some(None): there is no limit.
fn left(worker_loop: &WorkerLoop<'_>, deadline: Option<Instant>) -> Option<Option<Duration>> {
    let shared = worker_loop.shared;
    let must_wake =
        shared.is_stopped() || shared.pool.is_wanted() || worker_loop.pinned.has_runnable();
    if must_wake || !shared.sleepers.is_asleep(worker_loop.worker().index) {
        return None;
    }
    match deadline.map(|deadline| deadline.saturating_duration_since(shared.clock.now())) {
        Some(Duration::ZERO) => None,
        left => Some(left),
    }
}

fn park_thread(worker_loop: &WorkerLoop<'_>, deadline: Option<Instant>) {
    while let Some(left) = left(worker_loop, deadline) {
        match left {
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
    }
}

fn wait_in_poller(
    worker_loop: &WorkerLoop<'_>,
    poller_guard: &PollerGuard<'_>,
    deadline: Option<Instant>,
    batch: &mut ReadyBatch,
) {
    let reactor = &worker_loop.shared.reactor;
    // A wake of a pinned job only unparks this thread, which would not end a wait in the poller.
    let _poller_wait = worker_loop.pinned.notify_through(reactor);
    while let Some(left) = left(worker_loop, deadline) {
        reactor.wait(poller_guard, batch, left);
        if !batch.is_empty() {
            return;
        }
    }
}
