//! The hooks of `weald_sync`: how a job waits with its stack, the runtime's clock and timers, and the noted reason
//! of a wait.
//!
//! The hooks serve every thread. A thread that belongs to no runtime parks, and uses the system's clock, as if no
//! hooks were installed.

#![allow(unsafe_code)]

use std::{
    any::Any,
    future::poll_fn,
    mem,
    panic::Location,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

use weald_sync::{
    hooks::{self, Alarm, FirstPoll, HeldWaker, Hooks, Wakers},
    reason::{self, Reason},
};

use crate::{
    api::time,
    job::{Header, foreign_call::FiredBy, foreign_waker},
    report::{self, LateName, LateNames, Retake, StuckRun},
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

    fn wakers(&self) -> Option<Wakers> {
        const { assert!(mem::offset_of!(Header, state) == 0) };
        // SAFETY: the numbers of units are those of `Context::begin_run`, and the kernel's are the only ones; a header
        // begins with the state, which is also the data of the job's wakers. `stack_context::suspend` pins what waits.
        Some(unsafe { Wakers::new(waker::table()) })
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
        note_wait_of(reason, waker);
    }

    fn note_site(&self, site: &'static Location<'static>) {
        note_site(site);
    }

    fn waker_panicked(&self, payload: Box<dyn Any + Send>) {
        foreign_waker::report_panic(payload);
    }

    fn waker_blocks(&self, waker: HeldWaker) {
        let run = StuckRun {
            held: waker.held,
            retake: Retake::OfTimeLimit {
                threads_left: waker.threads_left,
            },
            killed: None,
            is_fork: false,
        };
        let name = LateName::new(FiredBy::Timer.named(None), None);
        report::stuck(name, run, LateNames::none());
    }

    fn wake_own(&self, next: &mut dyn FnMut() -> Option<Waker>, foreign: &mut Vec<Waker>) {
        waker::wake_own(next, foreign);
    }

    fn give_way(&self, waker: &Waker) {
        context::here().yield_run(waker);
    }
}

/// Notes what the running job waits for, for reports.
#[inline(always)]
pub fn note_wait(what: Reason) {
    context::with(|cx| {
        if let Some(job) = cx.job() {
            let word = reason::beside_others(what.to_word_with_site());
            // SAFETY: the thread that runs a job keeps it alive.
            unsafe { job.header() }.set_waits_for(word);
            cx.note_reason();
        }
    });
}

/// As [`note_wait`], of a wait that was polled with `waker`. It is known to be the job's only one if the waker is the
/// job's, and the job has noted no other one before in this poll.
#[inline(always)]
pub fn note_wait_of(what: Reason, waker: &Waker) {
    let Some(word) = what.to_word_with_known_site() else {
        return note_in_general(&what, waker);
    };
    let is_noted = context::with(|cx| {
        cx.job().is_some_and(|job| {
            // SAFETY: as above.
            let header = unsafe { job.header() };
            let is_common = waker::is_of(waker, job) && !header.has_noted_wait();
            if is_common {
                header.set_waits_for(word);
                cx.note_reason_here();
            }
            is_common
        })
    });
    if !is_noted {
        note_in_general(&what, waker);
    }
}

/// [`note_wait_of`], whatever was noted before, and for a line that is not in the table of lines yet.
#[inline(never)]
fn note_in_general(what: &Reason, waker: &Waker) {
    let what = *what;
    context::with(|cx| {
        if let Some(job) = cx.job() {
            // SAFETY: as above.
            let header = unsafe { job.header() };
            let word = what.to_word_with_site();
            let is_only = || !header.has_noted_wait() || has_noted_only(header, what);
            header.set_waits_for(match waker::is_of(waker, job) && is_only() {
                true => word,
                false => reason::beside_others(word),
            });
            cx.note_reason();
        }
    });
}

/// Whether the job has noted this wait in this poll, and no other: as the end of a job and as the event for which it
/// waits.
#[inline(never)]
fn has_noted_only(header: &Header, what: Reason) -> bool {
    let noted = header.waits_only_for();
    noted.is_some_and(|noted| (noted.kind, noted.object) == (what.kind, what.object))
}

/// Adds the line of the wait to what the running job waits for, unless it has one.
fn note_site(site: &'static Location<'static>) {
    context::with(|cx| {
        if let Some(job) = cx.job() {
            // SAFETY: as above.
            unsafe { job.header() }.note_site(site);
        }
    });
}
