//! Giving back what a runtime keeps without need: cancelled timers in its wheels, and the caches of its threads.
//!
//! Any thread may call this, outside every worker's lock. A trim gives back both; a spawn that was refused a stack
//! gives back the caches only.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::{
    job::foreign_call::ForeignCalls,
    scheduler::workers::{
        cancelled_timers::CancelledTimers,
        ready,
        search::{self, sleep::Sleeper},
        shared::Shared,
        waker,
        worker_core::WorkerCore,
    },
    timer::{due::Due, entry::EntryPtr},
};

/// How long sleeping workers have to give back their caches. They do it first when they wake, but the system decides
/// when they run: hence the limit.
const TIME_LIMIT: Duration = Duration::from_millis(20);

/// Frees the cancelled timers in the wheel of every worker, even of one that sleeps or is stuck. The lock of a worker
/// is taken for one slot of its wheel at a time.
pub(crate) fn sweep_timers(shared: &Shared) {
    // SAFETY: entries in the wheel are alive.
    let unwanted = |entry: EntryPtr| unsafe { entry.get() }.is_cancelled();
    let cancelled = || shared.workers.iter().map(|worker| &worker.cancelled);
    let mut calls = ForeignCalls::default();
    for worker in &shared.workers {
        let mut next = Some(0);
        while CancelledTimers::sum_of(cancelled()) > 0
            && let Some(slot) = next
        {
            let mut due = Due::default();
            let mut core = worker.core.enter_foreign();
            core.take_arrivals(&worker.arrivals);
            let WorkerCore {
                wheel, callbacks, ..
            } = &mut *core;
            next = wheel.sweep_from(slot, unwanted, &mut |entry| due.add(entry, callbacks));
            search::fire_and_unlock(worker, core, due, |by, waker| {
                waker::call(by, waker, &mut calls);
            });
        }
    }
    ready::ready_calls(shared, calls);
}

/// Asks the runtime's threads to give the depots what they cache, and waits for the workers that sleep
/// ([`crate::scheduler::workers::trim_requests`]). A thread inside a job does it later.
pub(crate) fn flush_caches(shared: &Shared) {
    let wake = |sleeper: Sleeper| sleeper.wake(shared);
    let trim = shared.trims.request(&shared.sleepers, wake);
    let give_up = Instant::now() + TIME_LIMIT;
    while !shared.trims.is_seen(&trim) && Instant::now() < give_up {
        std::thread::yield_now();
    }
}
