//! Starting and cancelling a callback: into a worker's list, and out of it.

#![allow(unsafe_code)]

use std::{fmt, panic::Location, time::Instant};

use crate::{
    callback::{
        cell::{self, CallbackPtr, Closure, discard},
        group::Owner,
    },
    scheduler::workers::{
        context, current,
        shared::{self, Shared},
    },
    timer::{
        arrivals::Pushed,
        entry::{EntryPlace, READY_NOW},
        phase::{PhaseWord, Take},
    },
};

/// When a callback is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In its turn, behind the callbacks that are ready.
    Ready,
    /// Not before this instant; instants more than a hundred years away count as a hundred years.
    At(Instant),
}

/// A handle to a started callback, which can cancel it. Dropping the handle does not cancel the callback.
#[must_use = "dropping a handle does not cancel its callback; call detach() to make that explicit"]
pub struct Handle {
    callback: Option<CallbackPtr>,
    runtime: u16,
}

#[inline]
pub(super) fn start<B: Closure>(
    owner: Owner,
    when: When,
    site: &'static Location<'static>,
    body: B,
) -> Handle {
    let runtime = owner.0.as_ref().map(|group| group.runtime);
    in_runtime(runtime, move |shared| {
        let Some(shared) = shared else {
            return Handle::refused(context::NO_RUNTIME);
        };
        let runtime = shared.id();
        if shared.is_closing() {
            return Handle::refused(runtime);
        }
        let callback = cell::new(owner.0, site, body);
        // SAFETY: claim: only this function knows the callback.
        let link = unsafe { callback.link() };
        if link.is_some_and(|link| !link.group.join(callback)) {
            // SAFETY: as above: this function has the closure and the only claims.
            unsafe { drop_unstarted(callback) };
            return Handle::refused(runtime);
        }
        // SAFETY: the callback is in no list, and the scheduler's claim passes to the list here.
        unsafe { arm(shared, callback, when) };
        Handle {
            callback: Some(callback),
            runtime,
        }
    })
}

/// Calls `act` with the runtime of this number, if that still exists; with the current runtime, if no number is
/// given.
#[inline]
fn in_runtime<R>(runtime: Option<u16>, act: impl FnOnce(Option<&Shared>) -> R) -> R {
    let Some(runtime) = runtime else {
        return current::with_current(|shared| act(Some(shared)));
    };
    match context::again().shared() {
        Some(shared) if shared.id() == runtime => act(Some(shared)),
        _ => act(shared::find(runtime).as_deref()),
    }
}

/// # Safety
/// Only the caller knows the callback.
#[cold]
unsafe fn drop_unstarted(callback: CallbackPtr) {
    // SAFETY: the caller's promise.
    unsafe { callback.drop_body() };
    // SAFETY: as above.
    unsafe { callback.free() };
}

/// Puts a pending callback into a list: the calling worker's, else some other worker's.
///
/// # Safety
/// The callback is in no list, and the caller gives up the scheduler's claim.
#[inline]
pub(super) unsafe fn arm(shared: &Shared, callback: CallbackPtr, when: When) {
    let step = match when {
        When::Ready => READY_NOW,
        When::At(deadline) => shared.clock.step_after(deadline).min(READY_NOW - 1),
    };
    // SAFETY: the caller's promise.
    let entry = unsafe { &callback.head().entry };
    // SAFETY: the links of a callback that is in no list are the caller's.
    unsafe { (*entry.links.get()).deadline = step };
    let cx = context::again();
    if let Some((worker, lease)) = cx.worker_of(shared.id()) {
        // SAFETY: *owner*: the worker of this thread's context.
        if let Ok(mut core) = unsafe { worker.core.enter(lease) } {
            entry.set_worker(worker.index);
            if !worker.arrivals.is_closed() {
                // SAFETY: the caller's promise; under the worker's lock.
                return unsafe { core.link(callback.entry()) };
            }
            drop(core);
            // SAFETY: the caller's promise.
            return unsafe { discard(callback) };
        }
        cx.clear_worker();
    }
    // SAFETY: the caller's promise.
    unsafe { arm_remotely(shared, callback) };
}

/// # Safety
/// As [`arm`].
#[cold]
unsafe fn arm_remotely(shared: &Shared, callback: CallbackPtr) {
    // The same worker for all callbacks that a thread starts, so that they keep their order.
    let index = shared.thread_number() as usize % shared.workers.len();
    // SAFETY: the caller's promise.
    unsafe { callback.head() }.entry.set_worker(index);
    match shared.workers[index].arrivals.push(callback.entry()) {
        Pushed::Arrived => wake(shared, index),
        // SAFETY: the caller's promise.
        Pushed::Closed => unsafe { discard(callback) },
    }
}

/// Wakes this worker and no other, because no other takes its arrivals at once. It may be asleep until a later timer,
/// or for ever.
#[cold]
fn wake(shared: &Shared, worker: usize) {
    if let Some(sleeper) = shared.sleepers.take_sleeper_of(worker) {
        sleeper.wake(shared);
    }
}

/// Takes a callback out of the calling worker's own lists, if `may_leave`. False if it is in none of them.
#[inline]
fn leave_here(
    callback: CallbackPtr,
    runtime: u16,
    may_leave: impl FnOnce(&PhaseWord) -> bool,
) -> bool {
    let cx = context::again();
    let Some((worker, lease)) = cx.worker_of(runtime) else {
        return false;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        return false;
    };
    // SAFETY: claim: the callers have one.
    let entry = unsafe { &callback.head().entry };
    let place = entry.place();
    let is_listed = !matches!(place.slot, EntryPlace::OUT | EntryPlace::UNLISTED);
    if usize::from(place.worker) != worker.index || !is_listed || !may_leave(&entry.phase) {
        return false;
    }
    match place.slot {
        EntryPlace::READY => core.callbacks.remove(callback.entry()),
        _ => core.wheel.remove(callback.entry()),
    }
    true
}

/// Takes a callback from the scheduler and drops its closure. It leaves its list with the list's claim, or is left
/// there for the worker to find.
///
/// # Safety
/// The caller has a claim, and `runtime` runs the callback.
unsafe fn cancel(callback: CallbackPtr, runtime: u16) -> Take {
    let take = match leave_here(callback, runtime, PhaseWord::take_from_list) {
        true => Take::Won,
        // SAFETY: the caller's promise.
        false => unsafe { callback.head() }.entry.take(),
    };
    if take == Take::Won {
        // SAFETY: the caller's claim, and it has won.
        unsafe { count_left(callback, runtime) };
        // SAFETY: closure: the callback was just taken.
        unsafe { callback.drop_body() };
    }
    take
}

/// Ends a callback after the caller tried to take it, and gives up the caller's claim.
///
/// # Safety
/// The caller has a claim, `take` is what the phase word returned to the caller, and `runtime` runs the callback.
pub(super) unsafe fn end_taken(callback: CallbackPtr, take: Take, runtime: u16) {
    if take == Take::Won {
        // SAFETY: closure: the callback was just taken.
        unsafe { callback.drop_body() };
        if leave_here(callback, runtime, |_| true) {
            // SAFETY: the list held the scheduler's claim.
            unsafe { callback.release() };
        } else {
            // SAFETY: the caller's promise.
            unsafe { count_left(callback, runtime) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { callback.release() };
}

/// After how many cancelled callbacks a worker is woken, to free their blocks.
const SWEEP_EVERY: isize = 4096;

/// Counts a callback that was taken with its list's claim left behind, if it counts.
///
/// # Safety
/// The caller has a claim and has won the callback.
#[inline]
unsafe fn count_left(callback: CallbackPtr, runtime: u16) {
    // SAFETY: the caller's promise.
    let entry = unsafe { &callback.head().entry };
    if entry.phase.is_counted() {
        count_cancelled(usize::from(entry.place().worker), runtime);
    }
}

/// Counts a cancelled callback of this worker. The worker finds cancelled callbacks when it looks around, but not while
/// it sleeps.
#[cold]
fn count_cancelled(worker: usize, runtime: u16) {
    if let Some(shared) = shared::find(runtime)
        && let Some(worker) = shared.workers.get(worker)
        && worker.cancelled.count(1) % SWEEP_EVERY == 0
    {
        wake(&shared, worker.index);
    }
}

impl Handle {
    fn refused(runtime: u16) -> Handle {
        Handle {
            callback: None,
            runtime,
        }
    }

    /// Cancels the callback. If its closure is not running at this moment, it is dropped at once; otherwise a
    /// callback that runs in rounds ends with the present round. True if this prevents a run. Any thread; O(1).
    pub fn cancel(&self) -> bool {
        let Some(callback) = self.callback else {
            return false;
        };
        // SAFETY: claim: the handle's.
        match unsafe { cancel(callback, self.runtime) } {
            Take::Won => true,
            // SAFETY: as above.
            Take::Runs => !unsafe { callback.head() }.calls().runs_once,
            Take::Over => false,
        }
    }

    /// Whether there will be no further run: the callback has ended, was cancelled, or was never started because
    /// its owner or its runtime had ended.
    pub fn is_over(&self) -> bool {
        self.callback.is_none_or(|callback| {
            // SAFETY: claim: the handle's.
            unsafe { callback.head() }.entry.phase.is_over()
        })
    }

    /// Drops the handle without cancelling the callback.
    pub fn detach(self) {}
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if let Some(callback) = self.callback {
            // SAFETY: the handle's claim. While the closure exists, the scheduler has a claim, too.
            unsafe { callback.release() };
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("is_over", &self.is_over())
            .finish_non_exhaustive()
    }
}
