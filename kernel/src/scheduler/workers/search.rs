//! What a worker does besides running the jobs at hand. Every few jobs it *looks around*: timers, which fire here,
//! reactor, overflow queue, injector. Without jobs it searches, which is where it steals from rings and forks, and then
//! sleeps.
//!
//! The loop of [`WorkerLoop`] calls `look`, `from_injector`, `from_reactor`, `steal` and `sleep`; each returns what it
//! found, and none of them runs a job.

#![allow(unsafe_code)]

pub(crate) mod coarseness;
pub(crate) mod exact_sleeps;
mod other_core;
mod pace;
pub(crate) mod prefer;
pub(crate) mod sleep;
pub(crate) mod sleep_policy;
mod spread;
pub(crate) mod try_policy;

pub(crate) use self::spread::{restart_clock, sample_early};

use std::{ptr, task::Waker};

use crate::{
    FEATURES,
    biased_lock::{Lease, Revoked},
    job::{
        Header,
        foreign_call::{FiredBy, ForeignCalls},
        runnable::Runnable,
    },
    memory,
    queue::ring,
    reactor::ReadyBatch,
    report,
    scheduler::workers::{
        ready,
        serve_end::ServeEnd,
        shared::Shared,
        waker::{self, FirstOfLook},
        worker::{Worker, WorkerLoop},
        worker_core::WorkerCore,
    },
    stack,
    sys::spin_loop,
    timer::{
        clock::TICK,
        due::Due,
        entry::{EntryPtr, TimerOwes},
    },
};

/// The most timers that fire in one look.
const TIMERS_PER_LOOK: usize = 128;
/// How many rounds over all its victims a searching worker makes before it sleeps. A round takes about 150 ns; all
/// rounds take some 15 µs, a little more than to park a thread and wake it.
const SEARCH_ROUNDS: usize = 100;
/// How many pauses there are in a round, so that a search costs the victims little.
const PAUSES: usize = 10;
/// While more threads have forked than this, not each round looks for something to steal from them: their number does
/// not make a search much longer.
const FORKERS_PER_ROUND: usize = 16;

/// Looks around: does everything that is due besides the jobs at hand. Under load this happens at least once a tick (1
/// ms), because the number of jobs between two looks adapts to how long the jobs take. Returns the job that runs next
/// if it is in no queue of the core: one that is pinned to this thread, or one that goes [first](FirstOfLook).
pub(crate) fn look(worker_loop: &WorkerLoop<'_>) -> Result<Option<Runnable>, ServeEnd> {
    let shared = worker_loop.shared;
    if shared.is_stopped() {
        return Err(ServeEnd::Stopped);
    }
    take_part_in_trim(worker_loop);
    if shared.pool.is_wanted() && may_hand_off(worker_loop) {
        return Err(ServeEnd::Wanted);
    }
    worker_loop.suspects.refresh(&shared.suspects);
    worker_loop.make_lazy_jobs()?;
    adapt(worker_loop);
    spread::share(worker_loop);
    let mut first = FirstOfLook::of(shared, worker_loop.pinned);
    fire_due(worker_loop, &mut first)?;
    if shared.is_driven() || shared.reactor.is_poll_due(worker_loop.last_look.get()) {
        from_reactor(worker_loop);
    }
    send_overflow(worker_loop)?;
    first.take_injected();
    take_share(worker_loop, first.count())?;
    Ok(first.take().or_else(|| worker_loop.pinned.pop()))
}

/// Gives back what this thread caches, if there is a request for a trim that the thread has not seen.
fn take_part_in_trim(worker_loop: &WorkerLoop<'_>) {
    let trims = &worker_loop.shared.trims;
    let last = trims.last();
    if last == worker_loop.trims_seen.get() {
        return;
    }
    memory::flush();
    worker_loop.cx.flush_stack();
    stack::flush();
    worker_loop.trims_seen.set(last);
    trims.note_seen(worker_loop.worker().index, last);
}

/// Whether the worker may go to a thread that wants one. A thread with pinned jobs keeps its worker for at least a
/// tick: otherwise two such threads would hand it to each other for ever and run nothing.
fn may_hand_off(worker_loop: &WorkerLoop<'_>) -> bool {
    let held = worker_loop.shared.clock.now() - worker_loop.lease_since.get();
    held >= TICK || !worker_loop.pinned.has_runnable()
}

/// Adapts the number of jobs between two looks to how long the jobs since the last one took. Neither a sleep nor the
/// spinning before it counts as time that jobs took: both set `last_look` anew when they end.
fn adapt(worker_loop: &WorkerLoop<'_>) {
    let now = worker_loop.shared.clock.now();
    let took = now.saturating_duration_since(worker_loop.last_look.replace(now));
    worker_loop.coarseness.sample(now, worker_loop.runs.get());
    let every = match worker_loop.shared.is_driven() {
        // One job at a time, so that each next one is drawn.
        true => 1,
        false => pace::next_look_after(worker_loop.look_every.get(), took),
    };
    worker_loop.look_every.set(every);
}

/// Fires the timers of a test runtime's worker, which runs no job now.
pub(crate) fn fire_timers(worker_loop: &WorkerLoop<'_>) {
    restart_clock(worker_loop);
    let mut first = FirstOfLook::of(worker_loop.shared, worker_loop.pinned);
    if let Err(Revoked) = fire_due(worker_loop, &mut first) {
        report::impossible("a test runtime's worker was retaken");
    }
}

fn fire_due(worker_loop: &WorkerLoop<'_>, first: &mut FirstOfLook<'_>) -> Result<(), Revoked> {
    let now = worker_loop
        .shared
        .clock
        .step_at(worker_loop.last_look.get());
    let mut due = Due::default();
    let mut core = worker_loop.enter()?;
    core.set_until_look(worker_loop.look_every.get());
    core.take_arrivals(&worker_loop.worker().arrivals);
    if core.wheel.pending() == 0 {
        return Ok(());
    }
    let WorkerCore {
        wheel, callbacks, ..
    } = &mut *core;
    let mut take = |entry| due.add(entry, callbacks);
    let cancelled = &worker_loop.worker().cancelled;
    cancelled.sweep_if_many(wheel, &mut take);
    if wheel.advance(now, TIMERS_PER_LOOK, &mut take) {
        core.set_until_look(1);
    }
    let mut calls = ForeignCalls::default();
    let worker = worker_loop.worker();
    fire_and_unlock(worker, core, due, |by, waker| {
        first.wake(by, waker, &mut calls)
    });
    ready::ready_calls(worker_loop.shared, calls);
    Ok(())
}

/// Fires what came out of the wheel of `worker`, whose core the caller has locked: sets what is due to expired under
/// the lock, releases the lock, then passes each waker to `wake`.
pub(crate) fn fire_and_unlock(
    worker: &Worker,
    core: impl Sized,
    due: Due,
    wake: impl FnMut(FiredBy, Waker),
) {
    let wakers = expire(&due.sleeps);
    drop(core);
    worker
        .cancelled
        .count(-fire(&due.sleeps, wakers, wake) - due.counted);
    // The closures of cancelled callbacks are gone already: the thread that cancelled them has dropped them.
    FEATURES.callbacks.discard(due.cancelled);
}

/// First step of firing, under the lock: the entries are out of the wheel. Returns for each entry its waker, or `None`
/// if it does not fire; `fire` frees that one.
pub(crate) fn expire(due: &[EntryPtr]) -> Vec<Option<Waker>> {
    let expire = |entry: &EntryPtr| {
        // SAFETY: an entry that was in the wheel is alive until the wheel gives up its claim.
        match unsafe { entry.get() }.state.expire() {
            // SAFETY: the state just granted it.
            TimerOwes::Fire => unsafe { entry.take_waker() },
            _ => None,
        }
    };
    due.iter().map(expire).collect()
}

/// Second step, without the lock: passes the wakers to `wake`. Returns how many entries were cancelled.
pub(crate) fn fire(
    due: &[EntryPtr],
    wakers: Vec<Option<Waker>>,
    mut wake: impl FnMut(FiredBy, Waker),
) -> isize {
    let mut cancelled = 0;
    for (entry, expired) in due.iter().zip(wakers) {
        // SAFETY: expiring: the wheel's claim lasts until `fire`.
        let fires = expired.is_some() && unsafe { entry.get() }.state.fire() == TimerOwes::Wake;
        if fires {
            expired
                .into_iter()
                .for_each(|waker| wake(FiredBy::Timer, waker));
            continue;
        }
        cancelled += 1;
        // SAFETY: its future cancelled it before, and now the wheel gives it up too.
        let unused = expired.or_else(|| unsafe { entry.take_waker() });
        // SAFETY: as above.
        unsafe { entry.free() };
        unused
            .into_iter()
            .for_each(|waker| wake(FiredBy::Cancel, waker));
    }
    cancelled
}

/// Sends the overflow queue to the injector.
fn send_overflow(worker_loop: &WorkerLoop<'_>) -> Result<(), Revoked> {
    let mut core = worker_loop.enter()?;
    if core.overflow.len() == 0 {
        return Ok(());
    }
    let overflow = core.take_overflow();
    drop(core);
    match worker_loop.worker().sharing.is_shared() {
        true => ready::inject_all(worker_loop.shared, overflow),
        false => ready::inject_quietly(worker_loop.shared, overflow),
    }
    Ok(())
}

/// Moves a fair share of the injector's jobs to the ring, unless the ring is more than half full. True if there were
/// any jobs. Wakes a sleeper if thieves may take some of these jobs: when the sleeper last looked, the jobs may have
/// been in neither queue.
///
/// A job that is moved into a private ring is not held up behind one that blocks there. While any worker sleeps, the
/// monitor shares the ring of a worker that stays in one run, after one to two of its rounds. While none sleeps, the
/// monitor retakes the worker after `stuck_after`, and the ring goes with the worker.
pub(crate) fn from_injector(worker_loop: &WorkerLoop<'_>) -> Result<bool, Revoked> {
    take_share(worker_loop, 0)
}

/// As [`from_injector`], while so many jobs are in no queue that this worker runs before those of the ring.
fn take_share(worker_loop: &WorkerLoop<'_>, in_front: usize) -> Result<bool, Revoked> {
    let shared = worker_loop.shared;
    if shared.injector.len() == 0 {
        return Ok(false);
    }
    let used = worker_loop.enter()?.ring.len();
    if used > ring::CAPACITY / 2 {
        return Ok(false);
    }
    let share = shared.injector.len() / shared.workers.len() + 1;
    let mut batch = shared.injector.pop(share.min(ring::BATCH));
    let count = batch.len();
    match worker_loop.enter() {
        Ok(mut core) => {
            while let Some(job) = batch.pop() {
                // SAFETY: the batch held the job's right to run.
                unsafe { push(&mut core, job) };
            }
            drop(core);
            if count > 0 && count + in_front > 1 && worker_loop.worker().sharing.is_shared() {
                shared.wake_one();
            }
            Ok(count > 0)
        }
        Err(revoked) => {
            ready::inject_all(shared, batch);
            Err(revoked)
        }
    }
}

/// Puts a job that came from elsewhere into the ring.
///
/// # Safety
/// The caller has the job's right to run, and gives it up.
unsafe fn push(core: &mut WorkerCore, job: *mut Header) {
    if let Err(job) = core.ring.push(job) {
        // SAFETY: the caller's promise.
        unsafe { core.overflow(job) };
    }
}

/// What a search found.
pub(crate) enum Found {
    /// Jobs, which are in the ring, the injector or the pinned queue now.
    Queued,
    /// A stolen job of a fork, which is in no queue.
    Stolen(Runnable),
    Nothing,
}

/// Searches for work: takes half of the first ring that has jobs, or sees jobs in the injector, or steals from a fork.
/// Spins for a few microseconds if that is promising: to wake a sleeper costs more.
pub(crate) fn steal(worker_loop: &WorkerLoop<'_>) -> Result<Found, Revoked> {
    let shared = worker_loop.shared;
    if !worker_loop.searching.get() {
        worker_loop.searching.set(shared.sleepers.start_search());
    }
    if !worker_loop.searching.get() {
        return Ok(shared
            .forks
            .steal_stack_job(shared)
            .map_or(Found::Nothing, Found::Stolen));
    }
    let others_run = shared.sleepers.sleeping() + 1 < shared.workers.len();
    let may_spin = others_run || worker_loop.spin_policy.is_worth_a_try();
    let rounds = match may_spin && !shared.is_driven() {
        true => SEARCH_ROUNDS,
        false => 1,
    };
    let between_forks = 1 + shared.forks.threads() / FORKERS_PER_ROUND;
    let mut round = 0..;
    search_for(worker_loop, rounds, || {
        let with_forks = round.next().is_some_and(|round| round % between_forks == 0);
        search_once(worker_loop, with_forks)
    })
}

/// Searches up to `rounds` times, with pauses, until `search` finds something; and for as long as a lazy job stays that
/// it will soon take.
fn search_for(
    worker_loop: &WorkerLoop<'_>,
    rounds: usize,
    mut search: impl FnMut() -> Result<Found, Revoked>,
) -> Result<Found, Revoked> {
    let mut watched = None;
    for round in (0..).take_while(|it| *it < rounds || worker_loop.still_watches(&mut watched)) {
        if round > 0 {
            (0..PAUSES).for_each(|_| spin_loop());
        }
        let found = search()?;
        if !matches!(found, Found::Nothing) {
            if round > 0 {
                worker_loop.spin_policy.found_work();
                // The spinning is not a part of the work that follows, and a look came right before it.
                restart_clock(worker_loop);
            }
            return Ok(found);
        }
    }
    worker_loop.spin_policy.found_nothing();
    Ok(Found::Nothing)
}

fn search_once(worker_loop: &WorkerLoop<'_>, with_forks: bool) -> Result<Found, Revoked> {
    let shared = worker_loop.shared;
    for distance in 1..shared.workers.len() {
        let victim = (worker_loop.worker().index + distance) % shared.workers.len();
        if steal_from_ring(worker_loop, victim)? {
            return Ok(Found::Queued);
        }
    }
    if shared.injector.len() > 0 || worker_loop.pinned.has_runnable() {
        return Ok(Found::Queued);
    }
    if !with_forks || shared.is_driven() {
        return Ok(Found::Nothing);
    }
    Ok(shared
        .forks
        .steal_stack_job(shared)
        .map_or(Found::Nothing, Found::Stolen))
}

fn steal_from_ring(worker_loop: &WorkerLoop<'_>, victim: usize) -> Result<bool, Revoked> {
    let victim = &worker_loop.shared.workers[victim];
    if victim.thief.len() == 0 {
        return Ok(victim.sharing.is_open() && victim.steal_old_lazy(worker_loop));
    }
    if !victim.sharing.begin_steal() {
        return Ok(false);
    }
    take_half((worker_loop.worker(), worker_loop.lease()), victim)
}

/// Moves half of the victim's ring, at most [`ring::BATCH`] jobs, to that of the caller's worker.
fn take_half((worker, lease): (&Worker, Lease), victim: &Worker) -> Result<bool, Revoked> {
    if victim.thief.len() == 0 {
        return Ok(false);
    }
    // The lock first: jobs that were stolen before a revoked lease is noticed would be in no queue.
    // SAFETY: *owner*: the worker of this thread's context.
    let mut core = unsafe { worker.core.enter(lease) }?;
    let mut batch = [ptr::null_mut(); ring::BATCH];
    let count = victim.thief.steal(&mut batch);
    for job in &batch[..count] {
        // SAFETY: the victim's ring held the job's right to run.
        unsafe { push(&mut core, *job) };
    }
    Ok(count > 0)
}

/// Whether there is work that any worker may take.
pub(crate) fn sees_work(shared: &Shared) -> bool {
    shared.injector.len() > 0 || shared.workers.iter().any(Worker::has_open_jobs)
}

/// As [`from_reactor`], for a worker that would otherwise sleep. If such polls were in vain lately, it leaves this one
/// out: it then sees in its sleep what is ready.
pub(crate) fn from_reactor_before_sleep(worker_loop: &WorkerLoop<'_>) -> bool {
    let policy = &worker_loop.poll_policy;
    let found =
        (worker_loop.shared.is_driven() || policy.is_worth_a_try()) && from_reactor(worker_loop);
    match found {
        true => policy.found_work(),
        false => policy.found_nothing(),
    }
    found
}

/// Polls the reactor. True if anything was ready: jobs may be runnable now.
pub(crate) fn from_reactor(worker_loop: &WorkerLoop<'_>) -> bool {
    let reactor = &worker_loop.shared.reactor;
    if !reactor.has_sources() {
        return false;
    }
    let mut batch = worker_loop.batch.take();
    let found = reactor.poll(&mut batch);
    if found && !worker_loop.searching.get() {
        // This worker counts as a searcher from here on: it takes the first job that the events wake, so that job must
        // wake no other worker.
        worker_loop
            .searching
            .set(worker_loop.shared.sleepers.start_search());
    }
    handle_ready(worker_loop.shared, &mut batch);
    worker_loop.batch.set(batch);
    found
}

/// Handles what was taken from the reactor: notes the readiness, and wakes. Any thread, outside every worker's lock.
pub(crate) fn handle_ready(shared: &Shared, batch: &mut ReadyBatch) {
    shared.reactor.handle(batch);
    waker::wake_ready(shared, batch.wakers());
}

#[cfg(all(test, not(loom)))]
mod tests;
