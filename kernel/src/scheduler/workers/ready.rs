//! `ready`: where a job that becomes runnable is queued.
//!
//! Steps of a wake: the state says that the caller owes a schedule ([`crate::job::state`]); this file puts the
//! runnable where a worker finds it; [`crate::scheduler::workers::worker`] takes it, and
//! [`crate::scheduler::workers::run`] runs it.
//!
//! Where a job goes:
//! - woken by a running job: the next slot of the worker that runs that job;
//! - spawned, yielded, displaced from the next slot, or woken by a timer or the reactor: the end of the ring, in batch
//!   order; the overflow queue instead while the ring is full or older jobs wait in the injector. The first job that a
//!   look's timers wake, else the injector's oldest, runs at once, unless a pinned job is runnable
//!   ([`FirstOfLook`](crate::scheduler::workers::waker::FirstOfLook));
//! - woken by a thread that owns no worker of the job's runtime: the injector, for a pool thread by way of its outbox;
//! - pinned, or with its stack suspended on a thread: the pinned queue of that thread.
//!
//! A job in the ring wakes a sleeper only if the ring is [shared](crate::queue::sharing).
//!
//! Jobs that a foreign thread wakes, and jobs that only one thread may run, take [`ready_foreign`]. A pinned or
//! suspended job takes it even on its own thread, because the next slot and the ring belong to a worker, and the worker
//! may be retaken at any time. Its queues then go to another thread, which must not run the job; and thieves take from
//! the ring in any case. The pinned queue stays with the thread.

#![allow(unsafe_code)]

use std::thread;

use crate::{
    FEATURES,
    biased_lock::OwnerGuard,
    job::{Header, JobPtr, foreign_call::ForeignCalls, runnable::Runnable},
    queue::injector::JobBatch,
    scheduler::{
        threads::{
            leftovers::Leftovers,
            outbox::{Outbox, Outgoing},
            pool::is_in_pool_of,
        },
        workers::{
            context::{self, Context},
            shared::{self, Shared},
            worker_core::{Behind, WorkerCore},
        },
    },
    sys::Ordering,
    timer::entry_queue::EntryQueue,
};

/// Makes a woken job runnable. Any thread.
#[inline(always)]
pub(crate) fn ready(job: Runnable) {
    let _true = ready_and_true(job);
}

/// As [`ready`]. It always returns true: a caller that returns true, too, can end with a tail call, and so can each
/// rare case in here. So neither saves registers.
#[inline(always)]
pub(crate) fn ready_and_true(job: Runnable) -> bool {
    let cx = context::here();
    // In two steps and not by `worker_for`, which costs this path two instructions more.
    if !job.header().runs_anywhere() {
        return ready_foreign(job);
    }
    let Some((worker, lease)) = cx.worker_of(job.header().runtime()) else {
        return ready_foreign(job);
    };
    // No job runs, so the wake comes from a timer or the reactor. These come in batches, and keep their order at the
    // end of the ring.
    if cx.job().is_none() {
        return ready_in_batch(job);
    }
    // SAFETY: *owner*: the worker of this thread's context.
    let Some(mut core) = (unsafe { worker.core.enter_at_once(lease) }) else {
        return ready_contended(job);
    };
    match core.next.replace(job.into_ptr()) {
        Some(displaced) => displace(core, displaced),
        None => true,
    }
}

/// Moves the job that was in the next slot to the end of the ring, or to the overflow queue.
#[inline(never)]
fn displace(mut core: OwnerGuard<'_, WorkerCore>, displaced: JobPtr) -> bool {
    let cx = context::here();
    let Some(shared) = cx.shared() else {
        return true;
    };
    let full = core.push_last(displaced, Behind::of(&shared.injector));
    drop(core);
    publish(cx, shared, full);
    true
}

#[inline(never)]
fn ready_in_batch(job: Runnable) -> bool {
    ready_last(job);
    true
}

/// As [`ready_and_true`], for a worker whose core was not entered at once: a foreign thread is inside, or has revoked
/// the lease, or the owner needs a full fence.
#[cold]
#[inline(never)]
fn ready_contended(job: Runnable) -> bool {
    let cx = context::here();
    let Some((worker, lease)) = cx.worker_of(job.header().runtime()) else {
        return ready_foreign(job);
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        cx.clear_worker();
        return ready_foreign(job);
    };
    match core.next.replace(job.into_ptr()) {
        Some(displaced) => displace(core, displaced),
        None => true,
    }
}

/// Makes a job runnable behind all others. Any thread.
#[inline]
pub(crate) fn ready_last(job: Runnable) {
    let cx = context::here();
    let Some((worker, lease)) = cx.worker_for(job.header()) else {
        ready_foreign(job);
        return;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        cx.clear_worker();
        ready_foreign(job);
        return;
    };
    let Some(shared) = cx.shared() else { return };
    let full = core.push_last(job.into_ptr(), Behind::of(&shared.injector));
    drop(core);
    publish(cx, shared, full);
}

/// A job is in the ring, or a full overflow queue is on its way to the injector. If the ring is shared, wakes a
/// sleeper, unless a worker already searches.
#[inline(always)]
pub(super) fn publish(cx: &Context, shared: &Shared, full: Option<JobBatch<Header>>) {
    let is_shared = cx
        .worker()
        .is_some_and(|(worker, _)| worker.sharing.is_shared());
    match full {
        Some(overflow) => {
            inject_quietly(shared, overflow);
            if is_shared {
                shared.wake_one();
            }
        }
        None if is_shared => shared.wake_one_for_own_ring(),
        None => {}
    }
}

/// The path that avoids the core: for a job that only one thread may run, and for a thread without a worker of the
/// job's runtime. The reason is at the head of this file.
// Cold, so that the way into the core is laid out without a jump.
#[cold]
#[inline(never)]
fn ready_foreign(job: Runnable) -> bool {
    let cx = context::here();
    if job.header().is_suspended_at(cx.pinned_ptr())
        && let Some(pinned) = cx.pinned_here()
    {
        pinned.push_own(job);
    } else if let Some(pinned) = job.header().queue_of_its_thread() {
        pinned.push(job);
    } else {
        ready_elsewhere(cx, job);
    }
    true
}

/// For a job that any worker of its runtime may run, and none of them is the calling thread's.
fn ready_elsewhere(cx: &Context, job: Runnable) {
    let runtime = job.header().runtime();
    match cx.shared().filter(|shared| shared.id() == runtime) {
        // A thread of another runtime's pool, which is in this one by `block_on`, has an outbox for the other.
        Some(shared) => match cx.outbox().filter(|_| is_in_pool_of(runtime)) {
            Some(outbox) => gather(shared, outbox, job),
            None => inject(shared, job),
        },
        None => match shared::find(runtime) {
            Some(shared) => inject(&shared, job),
            // The runtime is gone, so the job will never run: dropping the runnable cancels it.
            None => drop(job),
        },
    }
}

/// Leaves a job to the outbox of the calling thread.
fn gather(shared: &Shared, outbox: &Outbox, job: Runnable) {
    match shared.pool.outboxes.push(outbox, job) {
        Outgoing::Due(batch) => inject_all(shared, batch),
        Outgoing::First => shared.monitor.outbox_begun(),
        Outgoing::Gathered => {}
    }
}

/// The running job has posted some thousand messages that did not wake their receivers. If its thread is one of a pool
/// and owns no worker, another thread that wants the core goes first.
#[cold]
pub(crate) fn give_way() {
    let cx = context::again();
    let Some(shared) = cx.shared().filter(|_| cx.outbox().is_some()) else {
        return;
    };
    if let Some((worker, lease)) = cx.worker() {
        // SAFETY: *owner*: the worker of this thread's context, and the thread is not inside.
        if lease.is_inside() || unsafe { worker.core.enter(lease) }.is_ok() {
            return;
        }
        cx.clear_worker();
    }
    shared.counters.gave_way.fetch_add(1, Ordering::Relaxed);
    thread::yield_now();
}

/// Puts a job into the injector of its runtime. Any thread.
pub(crate) fn inject(shared: &Shared, job: Runnable) {
    let mut batch = JobBatch::new();
    // SAFETY: the runnable's right goes into the batch.
    unsafe { batch.push(job.into_ptr().as_raw().as_ptr()) };
    inject_all(shared, batch);
}

/// Puts jobs into the injector of their runtime. Any thread.
pub(crate) fn inject_all(shared: &Shared, batch: JobBatch<Header>) {
    if batch.len() > 0 {
        inject_quietly(shared, batch);
        shared.wake_one();
    }
}

/// Puts jobs into the injector and wakes no worker. By a worker's owner, which takes from the injector at each look.
pub(crate) fn inject_quietly(shared: &Shared, batch: JobBatch<Header>) {
    shared.injector.push(batch);
    // After the push: a shutdown that drained the injector before it is seen here.
    if shared.is_stopped() {
        shared.cancel_injected();
    }
}

/// Queues each call as a job behind all others. If the runtime has stopped, they are
/// [leftovers](crate::scheduler::threads::leftovers). Any thread.
#[inline]
pub(crate) fn ready_calls(shared: &Shared, calls: ForeignCalls) {
    if !calls.is_empty() {
        ready_some_calls(shared, calls);
    }
}

#[cold]
#[inline(never)]
fn ready_some_calls(shared: &Shared, calls: ForeignCalls) {
    if shared.is_stopped() {
        return shared.leave(Leftovers::of_calls(calls));
    }
    let jobs = calls.into_jobs(shared.id());
    match context::here().worker_of(shared.id()) {
        Some(_) => jobs.for_each(ready_last),
        None => jobs.for_each(|job| inject(shared, job)),
    }
}

/// Runs callbacks that are in no worker's queue, on any worker. Any thread.
pub(crate) fn inject_callbacks(shared: &Shared, callbacks: EntryQueue) {
    if !callbacks.is_empty() {
        inject(shared, FEATURES.callbacks.runner(shared.id(), callbacks));
    }
}
