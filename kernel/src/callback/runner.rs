//! The runner: a job that runs callbacks which are ready, of whichever worker runs it.
//!
//! - A worker that finds callbacks in its queue makes a runner, in turn with its other jobs. The runner
//!   takes one at a time, through the gate, and ends after a few.
//! - So no callback has others behind it that belong to its runner: if it waits, its stack stands and
//!   the worker makes another runner; if it blocks, whoever takes the worker's right over does.
//! - Each callback is a run of its own to the monitor, and gives the runner its name.
//! - A runner that brings callbacks first puts them into the queue of the worker that runs it.

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
        cell::{CallbackPtr, discard},
        group::{CallbackPanic, Group},
        start::{When, arm},
    },
    job::{self, JobPtr, Spec, runnable::Runnable, transition::Inbox},
    report::{self, panic_message},
    scheduler::workers::{context, ready, run::CancelUnwind},
    services::Callbacks,
    timer::entry_queue::EntryQueue,
};

/// How many callbacks a runner runs before other jobs have a turn.
const TURN: usize = 16;

/// The owner of a callback, as an address, and what the callback is called.
type Last = (*const Group, fn() -> &'static str);

/// The future of a runner.
struct Runner {
    /// What it brings.
    bring: EntryQueue,
    /// Whose callback ran last, and what it was called.
    last: Option<Last>,
}

// SAFETY: the group's address is only compared.
unsafe impl Send for Runner {}

/// What the scheduler asks of callbacks.
pub(crate) struct Runners;

impl Callbacks for Runners {
    #[track_caller]
    fn runner(&self, runtime: u16, bring: EntryQueue) -> Runnable {
        let spec = Spec {
            runtime,
            site: Location::caller(),
            inbox: Inbox::None,
            pinned: None,
            flags: 0,
            refs: 0,
        };
        job::new(spec, |_| Runner { bring, last: None })
    }

    fn discard(&self, callbacks: EntryQueue) {
        discard_all(callbacks);
    }
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
    /// A runner that never ran cancels what it was to bring.
    fn drop(&mut self) {
        discard_all(self.bring.take());
    }
}

impl Future for Runner {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let Some(job) = context::again().job() else {
            return Poll::Ready(());
        };
        if !self.bring.is_empty() && !self.hand_in() {
            return Poll::Ready(());
        }
        for _ in 0..TURN {
            let Some(callback) = next_here() else { break };
            // SAFETY: the queue held the scheduler's claim, and nobody else has the callback now.
            unsafe { self.run(job, callback) };
        }
        Poll::Ready(())
    }
}

impl Runner {
    /// Puts what it brings into the queue of the calling worker. False if the thread holds no right any more.
    fn hand_in(&mut self) -> bool {
        let cx = context::again();
        if let Some((worker, lease)) = cx.worker() {
            if let Ok(mut core) = worker.core.enter(lease) {
                while let Some(entry) = self.bring.pop() {
                    // SAFETY: claim: from the queue that was brought.
                    unsafe { entry.get() }.set_worker(worker.index);
                    core.callbacks.push(entry);
                }
                return true;
            }
            cx.clear_worker();
        }
        if let Some(shared) = cx.shared() {
            ready::inject_callbacks(shared, self.bring.take());
        }
        false
    }

    /// # Safety
    /// The caller gives up the scheduler's claim to a callback in no list.
    unsafe fn run(&mut self, job: JobPtr, callback: CallbackPtr) {
        // SAFETY: claim: the scheduler's.
        let head = unsafe { callback.head() };
        let is_unshared = !head.calls.has_owner && head.entry.phase.is_unshared();
        if !is_unshared && !head.entry.phase.begin() {
            count_uncancelled(callback);
            // SAFETY: the caller's promise; who took it drops its closure.
            return unsafe { callback.release() };
        }
        // SAFETY: claim: as above.
        self.take_name(
            job,
            head.calls.name,
            unsafe { callback.member() }.map(|m| &m.group),
        );
        // SAFETY: closure: it is alone, or the phase says `RUNNING`.
        let ran = catch_unwind(AssertUnwindSafe(|| unsafe { callback.run() }));
        let when = match &ran {
            Ok(Next::Ready) => Some(When::Ready),
            Ok(Next::At(deadline)) => Some(When::At(*deadline)),
            Ok(Next::Ended) | Err(_) => None,
        };
        // SAFETY: as above.
        unsafe { settle(callback, is_unshared, when) };
        if let Err(payload) = ran {
            self.tell(payload);
        }
    }

    /// The runner is named after its callback, and callbacks that this one starts have its owner.
    fn take_name(&mut self, job: JobPtr, name: fn() -> &'static str, owner: Option<&Arc<Group>>) {
        let group = owner.map_or(std::ptr::null(), Arc::as_ptr);
        let same = |last: Last| last.0 == group && std::ptr::fn_addr_eq(last.1, name);
        if !self.last.is_some_and(same) {
            // SAFETY: the thread that runs a job keeps it alive.
            let mut extensions = unsafe { job.header() }.extensions.lock();
            extensions.callback = Some(name);
            let owner = owner.map(|owner| owner.clone() as Arc<dyn Any + Send + Sync>);
            let before = std::mem::replace(&mut extensions.callbacks, owner);
            drop(extensions);
            drop(before);
            self.last = Some((group, name));
        }
        let cx = context::again();
        if let Some(shared) = cx.shared() {
            cx.refill(shared.config.poll_budget);
        }
    }

    #[cold]
    fn tell(&self, payload: Box<dyn Any + Send>) {
        if payload.is::<CancelUnwind>() {
            // The runner itself was cancelled, in a wait.
            resume_unwind(payload);
        }
        let Some((_, name)) = self.last else { return };
        let panic = CallbackPanic {
            callback: name(),
            message: panic_message(payload.as_ref()),
        };
        let owner = context::again().job_ref().and_then(|job| {
            let extensions = job.header().extensions.lock_existing()?;
            extensions.callbacks.clone()
        });
        let owner = owner.and_then(|owner| owner.downcast::<Group>().ok());
        match owner {
            Some(owner) => owner.tell(panic),
            None => report::callback_panicked(panic.callback, &panic.message),
        }
        // Its own destructor could panic again.
        std::mem::forget(payload);
    }
}

/// After a run: another round at its time, or the end.
///
/// # Safety
/// The caller has just run the callback, and gives up the scheduler's claim. `is_unshared`: the phase word was left
/// as it was, because nobody else has a claim.
unsafe fn settle(callback: CallbackPtr, is_unshared: bool, when: Option<When>) {
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
    if !head.calls.runs_once {
        // SAFETY: closure: as at the run, and there is no further one.
        unsafe { callback.drop_body() };
    }
    if is_unshared {
        // SAFETY: the only claim, and the closure is gone.
        return unsafe { callback.free() };
    }
    head.entry.phase.end();
    // SAFETY: the caller's promise.
    unsafe { callback.release() };
}

/// The first callback that is ready at the calling worker; it begins a run of its own.
fn next_here() -> Option<CallbackPtr> {
    let cx = context::again();
    let (worker, lease) = cx.worker()?;
    let Ok(mut core) = worker.core.enter(lease) else {
        cx.clear_worker();
        return None;
    };
    let entry = core.callbacks.pop()?;
    worker.renew_running();
    // SAFETY: only callbacks are queued.
    Some(unsafe { CallbackPtr::of(entry) })
}

/// A callback that was cancelled in a worker's list has left it.
#[cold]
fn count_uncancelled(callback: CallbackPtr) {
    // SAFETY: claim: the callers have the scheduler's.
    let worker = unsafe { callback.head() }.entry.place().worker;
    if let Some(shared) = context::again().shared() {
        shared.workers[usize::from(worker)].count_cancelled(-1);
    }
}
