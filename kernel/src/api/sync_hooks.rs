//! The hooks of `weald_sync`: how a job waits with its stack, the runtime's clock and timers, and the noted reason
//! of a wait.
//!
//! The hooks serve every thread. A thread that belongs to no runtime parks, and uses the system's clock, as if no
//! hooks were installed.

use std::{
    any::Any,
    future::poll_fn,
    panic::Location,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use weald_sync::{
    hooks::{self, Alarm, FirstPoll, Hooks},
    reason::Reason,
};

use crate::{
    api::time,
    job::foreign_waker,
    scheduler::{
        stackful::wait::{self, first_poll},
        workers::{context, shared::Shared, waker},
    },
};

/// Installs the hooks. Called when a runtime is created.
pub(crate) fn install() {
    hooks::install(&KernelHooks);
}

struct KernelHooks;

/// Whether the calling thread belongs to a runtime at this moment.
fn is_in_runtime() -> bool {
    context::with(|cx| cx.job().is_some() || cx.shared().is_some())
}

impl Hooks for KernelHooks {
    fn wait(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        if let Some(job) = context::again().job() {
            return wait::wait_in_job(job, pin!(poll_fn(poll)));
        }
        let shared = context::with(|cx| cx.shared().map(Shared::id))
            .and_then(crate::scheduler::workers::shared::find);
        match shared {
            Some(shared) => wait::block_on_in(&shared, poll_fn(poll)),
            None => hooks::park(poll),
        }
    }

    #[inline]
    fn begin_first_poll(&self) -> Option<FirstPoll> {
        first_poll::begin()
    }

    #[inline]
    fn end_first_poll(&self, notes: u8) {
        first_poll::end(notes);
    }

    fn suspend(&self, notes: &mut u8, site: &'static Location<'static>) -> bool {
        first_poll::suspend(notes, site)
    }

    fn wait_on(&self, notes: u8, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        match context::again().job() {
            Some(job) => wait::wait_on(job, pin!(poll_fn(poll)), Some(notes)),
            None => unreachable!("only a job has a first poll"),
        }
    }

    fn now(&self) -> Instant {
        match is_in_runtime() {
            true => time::now(),
            false => Instant::now(),
        }
    }

    fn alarm(&self, deadline: Instant) -> Alarm {
        match is_in_runtime() {
            true => Box::pin(time::sleep_until(deadline)),
            false => hooks::thread_alarm(deadline),
        }
    }

    fn note(&self, reason: Reason, waker: &Waker) {
        context::note_wait_of(reason, waker);
    }

    fn note_site(&self, site: &'static Location<'static>) {
        context::note_site(site);
    }

    fn waker_panicked(&self, payload: Box<dyn Any + Send>) {
        foreign_waker::report_panic(payload);
    }

    fn wake_own(&self, next: &mut dyn FnMut() -> Option<Waker>, foreign: &mut Vec<Waker>) {
        waker::wake_own(next, foreign);
    }

    fn give_way(&self, waker: &Waker) {
        context::here().yield_run(waker);
    }
}
