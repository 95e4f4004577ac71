//! The runner: a job that runs the ready callbacks of the worker on which it runs.
//!
//! - A worker that finds callbacks in its queue creates a runner, in turn with its other jobs. The runner takes
//!   one callback at a time, through the worker's biased lock, and ends after a few; or after some more, while there is
//!   no job that could run.
//! - So no callback is stuck behind another in its runner. If a callback waits, the runner's stack is suspended, and
//!   the worker creates another runner; a wake resumes the first one like any job. If a callback blocks, the spare
//!   thread that gets the worker creates the other runner.
//! - To the monitor, each callback is a run of its own. The runner is named after the callback that it runs.
//! - A runner may be created with callbacks from elsewhere. It first queues them at the worker that runs it.
//! - A callback of a [suspect](crate::scheduler::threads::suspects) kind goes to the quarantine: in a runner of its
//!   own, which runs this one only. So one that blocks there holds up no other, and as many begin at once as the
//!   quarantine runs. There the one that waits longest begins first. But workers run other callbacks meanwhile: those
//!   of other kinds; those beyond [`MOST_QUARANTINED`]; and new ones of the kind once it is no longer suspect. These
//!   overtake the callbacks that wait.

#![allow(unsafe_code)]

use std::{
    any::Any,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    callback::{
        Next,
        cell::{CallbackKind, CallbackPtr, Calls, Head, discard},
        group::{CallbackPanic, Group},
        start::{When, arm},
    },
    job::{self, JobPtr, Room, Spec, body, body_bit, runnable::Runnable, transition::Inbox},
    report::{
        JobName,
        payload::{self, Payload},
    },
    scheduler::{
        services::Callbacks,
        threads::suspects::KnownSuspects,
        workers::{context, ready, run, shared::Shared, worker_core::turns::DueLook},
    },
    timer::{entry::EntryPtr, entry_queue::EntryQueue},
};

/// How many callbacks a runner runs before other jobs have a turn.
const CALLBACKS_PER_TURN: usize = 16;
/// How many turns a runner has in a row, at most. Each runner costs as much as some ten callbacks.
const MOST_TURNS: usize = 8;

/// The most jobs that may wait in the quarantine when a callback follows: each takes more memory than a callback that
/// is ready, and runs for a hundred times the cost. Those beyond run on the worker, which is then retaken if one
/// blocks.
const MOST_QUARANTINED: usize = 4096;

/// A callback's owner, as an address, and its type and site.
type Last = (*const Group, CallbackKind);

/// The future of a runner.
struct Runner {
    /// Callbacks from elsewhere, which are in no worker's list yet.
    incoming: EntryQueue,
    /// The callback that ran last.
    last: Option<Last>,
    /// Whether it runs the only incoming callback and no other.
    is_of_one: bool,
    /// The suspect kinds, once there were any.
    suspects: Option<Box<KnownSuspects>>,
}

// SAFETY: the group's address is only compared.
unsafe impl Send for Runner {}

/// What the scheduler asks of callbacks.
pub(crate) struct Runners;

impl Callbacks for Runners {
    #[track_caller]
    fn runner(&self, runtime: u16, incoming: EntryQueue) -> Runnable {
        new_runner(runtime, incoming, false)
    }

    fn discard(&self, callbacks: EntryQueue) {
        discard_all(callbacks);
    }

    fn name_of(&self, callback: EntryPtr) -> JobName {
        // SAFETY: only callbacks are named here.
        let callback = unsafe { CallbackPtr::of(callback) };
        // SAFETY: the caller's claim.
        JobName::of_unit(unsafe { callback.head() }.kind.name())
    }
}

#[track_caller]
fn new_runner(runtime: u16, incoming: EntryQueue, is_of_one: bool) -> Runnable {
    let spec = Spec {
        runtime,
        site: Location::caller(),
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs: 0,
    };
    let job = job::new(Room::needed(), spec, |_| Runner {
        incoming,
        last: None,
        is_of_one,
        suspects: None,
    });
    job.header().set_body_bit(body_bit::SHARED_BY_UNITS);
    job
}

/// Puts a callback into quarantine, in a runner of its own that has its name already.
///
/// # Safety
/// The callback is in no list, and the caller gives up the scheduler's claim.
#[cold]
unsafe fn quarantine(shared: &Shared, callback: CallbackPtr) {
    // SAFETY: claim: the scheduler's.
    let name = unsafe { callback.head() }.kind.name();
    let mut only = EntryQueue::new();
    only.push_unlisted(callback.entry());
    let job = new_runner(shared.id(), only, true);
    job.header().set_body_bit(body_bit::OF_ONE_UNIT);
    job.header().extensions.lock().running_unit = Some(name);
    shared.quarantine.push(job, &shared.suspects);
}

fn discard_all(mut callbacks: EntryQueue) {
    while let Some(entry) = callbacks.pop() {
        // SAFETY: only callbacks are queued.
        let callback = unsafe { CallbackPtr::of(entry) };
        // SAFETY: the queue held the scheduler's claim.
        unsafe { discard(callback) };
    }
}

impl Drop for Runner {
    /// A runner that never ran cancels its incoming callbacks.
    fn drop(&mut self) {
        discard_all(self.incoming.take());
    }
}

impl Future for Runner {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let Some(job) = context::again().job() else {
            return Poll::Ready(());
        };
        if self.is_of_one {
            self.run_only(job);
            return Poll::Ready(());
        }
        if !self.incoming.is_empty() && !self.queue_incoming() {
            return Poll::Ready(());
        }
        for _ in 0..MOST_TURNS {
            for _ in 0..CALLBACKS_PER_TURN {
                let Some(callback) = next_ready() else {
                    return Poll::Ready(());
                };
                // SAFETY: the queue held the scheduler's claim, and the callback is in no list now.
                unsafe { self.run_or_quarantine(job, callback) };
            }
            if !has_another_turn() {
                break;
            }
        }
        Poll::Ready(())
    }
}

impl Runner {
    /// Queues the incoming callbacks at the calling worker. False if the thread no longer has a worker.
    fn queue_incoming(&mut self) -> bool {
        let cx = context::again();
        if let Some((worker, lease)) = cx.worker() {
            // SAFETY: *owner*: the worker of this thread's context.
            if let Ok(mut core) = unsafe { worker.core.enter(lease) } {
                while let Some(entry) = self.incoming.pop() {
                    // SAFETY: claim: the incoming queue held the scheduler's.
                    unsafe { entry.get() }.set_worker(worker.index);
                    core.callbacks.push(entry);
                }
                return true;
            }
            cx.clear_worker();
        }
        if let Some(shared) = cx.shared() {
            ready::inject_callbacks(shared, self.incoming.take());
        }
        false
    }

    /// Runs the only callback of this runner, on a thread of the quarantine, or on a worker if the kind is no longer
    /// suspect.
    #[cold]
    fn run_only(&mut self, job: JobPtr) {
        if let Some(entry) = self.incoming.pop() {
            // SAFETY: only callbacks are queued.
            let callback = unsafe { CallbackPtr::of(entry) };
            // SAFETY: the queue held the scheduler's claim, and the callback is in no list now.
            unsafe { self.run(job, callback) };
        }
    }

    /// # Safety
    /// The callback is in no list, and the caller gives up the scheduler's claim.
    #[inline(always)]
    unsafe fn run_or_quarantine(&mut self, job: JobPtr, callback: CallbackPtr) {
        let shared = context::again().shared();
        if let Some(shared) = shared.filter(|shared| shared.suspects.is_any())
            // SAFETY: claim: the scheduler's.
            && self.is_kept(shared, unsafe { callback.head() })
        {
            // SAFETY: the caller's promise.
            return unsafe { quarantine(shared, callback) };
        }
        // SAFETY: as above.
        unsafe { self.run(job, callback) };
    }

    /// Whether a callback must not run on a worker, because its kind is suspect.
    #[cold]
    fn is_kept(&mut self, shared: &Shared, callback: &Head) -> bool {
        let suspects = self.suspects.get_or_insert_default();
        suspects.refresh(&shared.suspects);
        let runs_once = callback.calls().runs_once;
        suspects.is_any()
            && suspects.include_callback(callback.kind.name(), runs_once)
            && shared.quarantine.len() < MOST_QUARANTINED
    }

    /// # Safety
    /// The callback is in no list, and the caller gives up the scheduler's claim.
    unsafe fn run(&mut self, job: JobPtr, callback: CallbackPtr) {
        // SAFETY: claim: the scheduler's.
        let head = unsafe { callback.head() };
        let calls = head.calls();
        let is_unshared = !calls.has_owner && head.entry.phase.is_unshared();
        if !is_unshared && !head.entry.phase.begin() {
            uncount_cancelled(callback);
            // SAFETY: the caller's promise; the thread that took the callback drops its closure.
            return unsafe { callback.release() };
        }
        // SAFETY: claim: as above.
        self.take_name(
            job,
            head.kind,
            unsafe { callback.link_by(calls) }.map(|link| &link.group),
        );
        // SAFETY: closure: the callback is unshared, or this thread set its phase to `RUNNING`.
        let ran = catch_unwind(AssertUnwindSafe(|| unsafe { callback.run(calls) }));
        let when = match &ran {
            Ok(Next::Ready) => Some(When::Ready),
            Ok(Next::At(deadline)) => Some(When::At(*deadline)),
            Ok(Next::Ended) | Err(_) => None,
        };
        // SAFETY: as above.
        unsafe { finish_run((callback, calls), is_unshared, when) };
        if let Err(payload) = ran {
            self.report_panic(payload);
        }
    }

    /// Names the runner after its callback, and gives the callback's owner to callbacks that it starts.
    fn take_name(&mut self, job: JobPtr, kind: CallbackKind, owner: Option<&Arc<Group>>) {
        let group = owner.map_or(std::ptr::null(), Arc::as_ptr);
        if self.last != Some((group, kind)) {
            // SAFETY: the thread that runs a job keeps it alive.
            let word = unsafe { &job.header().extensions };
            let mut extensions = word.lock();
            extensions.running_unit = Some(kind.name());
            let owner = owner.map(|owner| owner.clone() as Arc<dyn Any + Send + Sync>);
            let previous = word.set_owner(&mut extensions, owner);
            drop(extensions);
            drop(previous);
            self.last = Some((group, kind));
        }
        let cx = context::again();
        if let Some(shared) = cx.shared() {
            cx.refill(shared.config.poll_budget);
        }
    }

    #[cold]
    fn report_panic(&self, payload: Payload) {
        if run::is_own_cancel(&payload) {
            // The runner itself was cancelled, in a wait.
            resume_unwind(payload);
        }
        let Some((_, kind)) = self.last else { return };
        let name = kind.name();
        let panic = CallbackPanic {
            callback: (name.code.type_name)(),
            site: name.site,
            message: body::message_of(&payload),
        };
        let owner = context::again().job_ref().and_then(|job| {
            let extensions = job.header().extensions.lock_existing()?;
            extensions.owner.clone()
        });
        let owner = owner.and_then(|owner| owner.downcast::<Group>().ok());
        match owner {
            Some(owner) => owner.report_panic(panic),
            None => panic.report(),
        }
        payload::discard(payload);
    }
}

/// Finishes a run: arms the callback for another round, or ends it.
///
/// # Safety
/// The caller has just run `callback`, whose table is `calls`, and gives up the scheduler's claim. `is_unshared`: the
/// run left the phase word alone, because nobody else has a claim.
#[inline(always)]
unsafe fn finish_run(
    (callback, calls): (CallbackPtr, &Calls),
    is_unshared: bool,
    when: Option<When>,
) {
    // SAFETY: claim: the scheduler's.
    let head = unsafe { callback.head() };
    if let Some(when) = when
        && (is_unshared || head.entry.phase.again())
    {
        match context::again()
            .shared()
            .filter(|shared| !shared.is_stopped())
        {
            // SAFETY: the caller's promise.
            Some(shared) => unsafe { arm(shared, callback, when) },
            // SAFETY: as above.
            None => unsafe { discard(callback) },
        }
        return;
    }
    if !calls.runs_once {
        // SAFETY: closure: as for the run, and there is no further run.
        unsafe { callback.drop_body() };
    }
    if is_unshared {
        // SAFETY: the caller's claim was the only one, and the closure is gone.
        return unsafe { callback.free_by(calls) };
    }
    if head.entry.phase.end_and_release() {
        // SAFETY: the caller's claim was the last one, and the closure is gone.
        unsafe { callback.free_by(calls) };
    }
}

/// The first ready callback of the calling worker; the monitor counts it as a new run.
fn next_ready() -> Option<CallbackPtr> {
    let cx = context::again();
    let (worker, lease) = cx.worker()?;
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        cx.clear_worker();
        return None;
    };
    let entry = core.callbacks.pop()?;
    worker.renew_running();
    // SAFETY: only callbacks are queued.
    Some(unsafe { CallbackPtr::of(entry) })
}

/// Whether the runner, whose turn is over, goes on.
fn has_another_turn() -> bool {
    let cx = context::again();
    let (Some((worker, lease)), Some(pinned)) = (cx.worker(), cx.pinned_here()) else {
        return false;
    };
    let due = match cx.shared().is_some_and(Shared::is_driven) {
        true => DueLook::MayWait,
        false => DueLook::First,
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let entered = unsafe { worker.core.enter(lease) };
    entered.is_ok_and(|mut core| core.give_callbacks_another_turn(pinned, due))
}

/// Notes that a cancelled callback has left its list: if it counts, it became ready at the moment of its cancel.
#[cold]
fn uncount_cancelled(callback: CallbackPtr) {
    // SAFETY: claim: the callers have the scheduler's.
    let entry = unsafe { &callback.head().entry };
    if entry.phase.is_counted()
        && let Some(shared) = context::again().shared()
    {
        shared.workers[usize::from(entry.place().worker)]
            .cancelled
            .count(-1);
    }
}
