//! Step 1 of the [monitor](super::monitor)'s round: moves what is overdue at a busy worker to the injector, where
//! another worker finds it. Called by the monitor only.

#![allow(unsafe_code)]

use crate::{
    job::{foreign_call::ForeignCalls, runnable::Runnable},
    reactor,
    scheduler::{
        threads::round_memory::RoundMemory,
        workers::{ready, run_word::RunWord, search, shared::Shared, waker, worker::Worker},
    },
    sys::Ordering,
    timer::{due::Due, entry_queue::EntryQueue},
};

/// The most ready callbacks, and the most due timers, that are taken from a worker in one round. They are taken under
/// the worker's lock, and whichever worker finds the callbacks moves them to its own queue. A queue of a million that
/// moved as a whole in each round would go back and forth between workers and never run.
const TAKEN_AT_ONCE: usize = 256;

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// For a worker that sleeps: everything.
    All,
    /// For one that has jobs of its own: callbacks stay. It may come to hold its thread as well, and they would go back
    /// and forth.
    JobsAndTimers,
    /// Without memory.
    Jobs,
}

impl Moved {
    /// To a worker that sleeps.
    pub(super) fn to_sleeper(memory: RoundMemory) -> Moved {
        match memory {
            RoundMemory::Lacking => Moved::Jobs,
            RoundMemory::Enough => Moved::All,
        }
    }

    /// To a worker that has jobs of its own.
    pub(super) fn to_busy(memory: RoundMemory) -> Moved {
        match memory {
            RoundMemory::Lacking => Moved::Jobs,
            RoundMemory::Enough => Moved::JobsAndTimers,
        }
    }
}

/// Moves jobs, callbacks and due timers of a worker that is still in the run `running`, or in none.
pub(super) fn take_overdue(shared: &Shared, worker: &Worker, running: RunWord, moved: Moved) {
    let mut due = Due::default();
    let mut core = worker.core.enter_foreign();
    if worker.running() != running {
        return;
    }
    core.take_arrivals(&worker.arrivals);
    let slot = core.next.take();
    // No other worker sees the overflow queue, and the owner sends it off only at its next look.
    let overflow = core.take_overflow();
    let now = shared.clock.step_at(shared.clock.now());
    let ready = &mut *core;
    if moved != Moved::Jobs && ready.wheel.next_step().is_some_and(|step| step <= now) {
        let mut take = |entry| due.add(entry, &mut ready.callbacks);
        ready.wheel.advance(now, TAKEN_AT_ONCE, &mut take);
    }
    let callbacks = match moved {
        Moved::All => ready.callbacks.take_first(TAKEN_AT_ONCE),
        Moved::JobsAndTimers | Moved::Jobs => EntryQueue::new(),
    };
    let mut calls = ForeignCalls::default();
    search::fire_and_unlock(worker, core, due, |by, waker| {
        waker::call(by, waker, &mut calls);
    });
    if overflow.len() > 0 {
        ready::inject_all(shared, overflow);
    }
    let moved = callbacks.len() as u64;
    shared
        .counters
        .moved_callbacks
        .fetch_add(moved, Ordering::Relaxed);
    ready::inject_callbacks(shared, callbacks);
    ready::ready_calls(shared, calls);
    if let Some(job) = slot {
        shared.counters.overdue.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the slot held the job's right to run.
        ready::inject(shared, unsafe { Runnable::new(job) });
    }
}

/// The same for the reactor, which nobody polls while this worker is busy and the others are parked.
pub(super) fn take_ready(shared: &Shared) {
    if shared.reactor.is_unattended() {
        let mut batch = reactor::ReadyBatch::default();
        if shared.reactor.poll(&mut batch) {
            search::handle_ready(shared, &mut batch);
        }
    }
}
