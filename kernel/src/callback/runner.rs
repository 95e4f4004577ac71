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
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    Next,
    cell::CallbackPtr,
    fifo::{Fifo, discard},
    group::{CallbackPanic, Group},
    start::{When, arm},
};
use crate::{
    context,
    job::{self, JobPtr, Spec},
    ready, report,
    run::{self, CancelUnwind},
    runnable::Runnable,
    shared::Shared,
    state::Inbox,
    timer::entry::{EntryPtr, Kind},
};

/// How many callbacks a runner runs before other jobs have a turn.
const TURN: usize = 16;

/// The owner of a callback, as an address, and what the callback is called.
type Last = (*const Group, fn() -> &'static str);

/// The future of a runner.
struct Runner {
    /// What it brings.
    bring: Fifo,
    /// Whose callback ran last, and what it was called.
    last: Option<Last>,
}

// SAFETY: the group's address is only compared.
unsafe impl Send for Runner {}

/// What came out of a wheel, but for callbacks that are ready. Dropped outside the gate, because what a callback
/// leaves behind may be foreign code.
#[must_use]
#[derive(Default)]
pub(crate) struct Due {
    pub(crate) sleeps: Vec<EntryPtr>,
    /// Callbacks that were cancelled.
    cancelled: Fifo,
}

impl Due {
    /// Takes a timer; a callback goes to `ready`, the queue of the worker inside whose gate the caller is.
    #[inline]
    pub(crate) fn add(&mut self, entry: EntryPtr, ready: &mut Fifo) {
        // SAFETY: what was in the wheel is alive until the wheel's claim is given up.
        let timer = unsafe { entry.get() };
        if timer.kind == Kind::Sleep {
            return self.sleeps.push(entry);
        }
        // SAFETY: as the kind says.
        let callback = unsafe { CallbackPtr::of(entry) };
        match timer.phase.is_taken() {
            true => self.cancelled.push_apart(callback),
            false => ready.push(callback),
        }
    }

    /// How many callbacks were cancelled.
    pub(crate) fn cancelled(&self) -> isize {
        isize::try_from(self.cancelled.len()).expect("there are not so many in memory")
    }
}

/// A runner for the queue of the calling worker.
pub(crate) fn runner(shared: &Shared) -> Runnable {
    bringing(shared, Fifo::new())
}

/// Runs callbacks that are in no worker's queue, on any worker.
pub(crate) fn bring(shared: &Shared, callbacks: Fifo) {
    if !callbacks.is_empty() {
        ready::inject(shared, bringing(shared, callbacks));
    }
}

#[track_caller]
fn bringing(shared: &Shared, bring: Fifo) -> Runnable {
    let spec = Spec {
        runtime: shared.id(),
        site: Location::caller(),
        inbox: Inbox::None,
        home: None,
        flags: 0,
        refs: 0,
    };
    job::new(spec, |_| Runner { bring, last: None })
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
        if let Some((worker, epoch)) = cx.worker() {
            if let Ok(mut inside) = worker.gate.enter(epoch) {
                while let Some(callback) = self.bring.pop() {
                    // SAFETY: claim: from the queue that was brought.
                    unsafe { callback.head() }.entry.set_worker(worker.index);
                    inside.callbacks.push(callback);
                }
                return true;
            }
            cx.lose();
        }
        if let Some(shared) = cx.shared() {
            bring(shared, self.bring.take());
        }
        false
    }

    /// # Safety
    /// The caller gives up the scheduler's claim to a callback in no list.
    unsafe fn run(&mut self, job: JobPtr, callback: CallbackPtr) {
        // SAFETY: claim: the scheduler's.
        let head = unsafe { callback.head() };
        let is_alone = !head.calls.has_owner && head.entry.phase.is_alone();
        if !is_alone && !head.entry.phase.begin() {
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
        unsafe { settle(callback, is_alone, when) };
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
            let mut parts = unsafe { job.header() }.extras.parts();
            parts.callback = Some(name);
            let before = std::mem::replace(&mut parts.callbacks, owner.cloned());
            drop(parts);
            drop(before);
            self.last = Some((group, name));
        }
        let cx = context::again();
        if let Some(shared) = cx.shared() {
            cx.refill(shared.config.poll_budget);
        }
    }

    #[cold]
    fn tell(&self, payload: Box<dyn std::any::Any + Send>) {
        if payload.is::<CancelUnwind>() {
            // The runner itself was cancelled, in a wait.
            resume_unwind(payload);
        }
        let Some((_, name)) = self.last else { return };
        let panic = CallbackPanic {
            callback: name(),
            message: run::panic_message(payload.as_ref()),
        };
        let owner = context::again().job_ref().and_then(|job| {
            let parts = job.header().extras.existing()?;
            parts.callbacks.clone()
        });
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
/// The caller has just run the callback, and gives up the scheduler's claim. `is_alone`: the phase word was left
/// as it was, because nobody else has a claim.
unsafe fn settle(callback: CallbackPtr, is_alone: bool, when: Option<When>) {
    // SAFETY: claim: the scheduler's.
    let head = unsafe { callback.head() };
    if let Some(when) = when
        && (is_alone || head.entry.phase.again())
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
    if is_alone {
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
    let (worker, epoch) = cx.worker()?;
    let Ok(mut inside) = worker.gate.enter(epoch) else {
        cx.lose();
        return None;
    };
    let callback = inside.callbacks.pop()?;
    worker.renew_running();
    Some(callback)
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
