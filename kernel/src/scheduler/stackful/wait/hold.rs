//! A fork that waits for forked work, and holds its OS thread meanwhile: another job that ran there could want a lock
//! of `std` that the forking code holds, and would block the thread for ever.
//!
//! Two things run there nevertheless:
//! - A part of that work which the thread had taken, here or in its loop, and which was suspended here. No other thread
//!   can go on with it, and the work may block until it ends. It runs on top of the caller's stack.
//! - Once all of the work itself waits, any job that is pinned to the thread: the work may wait for it. The caller must
//!   then suspend its stack. If the work holds a thread while it waits, only after a while ([`HoldLimit`]).
//!
//! Both are looked for from time to time only. Called by the fork.

use std::{cell::Cell, pin::Pin, sync::Arc, time::Instant};

use crate::{
    job::runnable::Runnable,
    scheduler::{
        stackful::{
            duties,
            pinned::PinnedQueue,
            wait::{
                Meanwhile,
                block::{self, HeldFor},
                foreign_thread,
                hold_limit::HoldLimit,
            },
        },
        workers::{context, shared::Shared},
    },
};

/// The forked work that a thread waits for.
pub(crate) trait Awaited {
    /// Whether all of it that is left waits.
    fn waits(&self) -> bool;

    /// Whether all of it that waits is suspended, and holds no thread.
    fn is_suspended(&self) -> bool;

    /// For how long the calling thread holds out.
    fn hold_limit(&self) -> &HoldLimit;

    /// Takes a part of it out of the calling thread's pinned queue, if one is runnable there.
    fn take_pinned(&self) -> Option<Runnable>;
}

/// [`block_on_in`](super::block_on_in) for a fork that waits for `awaited`, whose end `future` is. `None`: the caller
/// must wait by suspending its stack, because another job must run on the thread. A foreign thread runs that job
/// itself.
pub(crate) fn hold_in<F: Future>(
    shared: &Arc<Shared>,
    mut future: Pin<&mut F>,
    awaited: &dyn Awaited,
) -> Option<F::Output> {
    let Some(job) = context::again().job() else {
        let meanwhile = Meanwhile::Holds(awaited);
        return Some(foreign_thread::wait_on_foreign_thread(
            shared, future, meanwhile,
        ));
    };
    // SAFETY: the caller runs the job.
    let header = unsafe { job.header() };
    let part = PinnedPart::of(awaited);
    loop {
        let gives_way = || {
            let waits = awaited.waits();
            block::note_holding(header, waits);
            is_hold_limit_over(awaited, waits) && has_pinned_runnable() || part.is_runnable()
        };
        let ended = block::hold_in_job(future.as_mut(), HeldFor::Join, &gives_way);
        block::note_holding(header, false);
        if ended.is_some() || !part.run(shared) {
            return ended;
        }
    }
}

/// Whether other jobs may run on the thread, which waits for `awaited`.
pub(super) fn is_hold_limit_over(awaited: &dyn Awaited, waits: bool) -> bool {
    let is_suspended = awaited.is_suspended();
    awaited
        .hold_limit()
        .is_over(waits, is_suspended, Instant::now())
}

fn has_pinned_runnable() -> bool {
    context::again()
        .pinned_here()
        .is_some_and(PinnedQueue::has_runnable)
}

/// A part that was taken out of the pinned queue, to run on top of the stack that waits for it. It goes back there if
/// the wait ends before it runs.
pub(super) struct PinnedPart<'a> {
    awaited: &'a dyn Awaited,
    taken: Cell<Option<Runnable>>,
}

impl<'a> PinnedPart<'a> {
    pub(super) fn of(awaited: &'a dyn Awaited) -> PinnedPart<'a> {
        PinnedPart {
            awaited,
            taken: Cell::new(None),
        }
    }

    /// Whether a part is runnable, which was taken then. Not while the thread owns a worker: beneath a part that a
    /// worker's loop began is that loop, which would go on to serve the worker on top of the stack that waits.
    pub(super) fn is_runnable(&self) -> bool {
        if context::again().worker().is_some() {
            return false;
        }
        let part = self.taken.take().or_else(|| self.awaited.take_pinned());
        let is_runnable = part.is_some();
        self.taken.set(part);
        is_runnable
    }

    /// Runs the part that was taken, if there is one, until it ends or waits.
    pub(super) fn run(&self, shared: &Shared) -> bool {
        let Some(part) = self.taken.take() else {
            return false;
        };
        duties::run_nested(context::again(), shared.stack_class(), part);
        true
    }
}

impl Drop for PinnedPart<'_> {
    fn drop(&mut self) {
        let (part, here) = (self.taken.take(), context::again());
        if let (Some(part), Some(pinned)) = (part, here.pinned_here()) {
            pinned.push(part);
        }
    }
}
