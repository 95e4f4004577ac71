//! A wait with the stack without a future, for units whose waits end when a word in their own frame says so: those of
//! the C face.
//!
//! The common wait of a fiber that migrates notes nothing: it asks beside the unit whether anything stands in its way
//! ([`Unit::waker_of_first_poll`]), and suspends its stack by a direct switch. What is not common goes on as behind a
//! [first poll](super::first_poll).
//!
//! The frame of such a wait goes on with another OS thread. So nothing in it reads a thread-local: each step that does
//! is a function that is not inlined.

#![allow(unsafe_code)]

use std::{
    future::poll_fn,
    mem::ManuallyDrop,
    panic::Location,
    pin::pin,
    task::{Poll, Waker},
};

use weald_sync::unit::{self, Unit};

use super::{first_poll, unwind_if_cancelled, wait_on};
use crate::scheduler::workers::context::{self, Left, PollNotes};

/// Calls `enqueue` with the running job's waker. If it returns true, waits with the stack of the job until `is_over`,
/// which is asked when the job was woken. `enqueue` does not wait. A copy of the waker needs no count for as long as
/// the calling code of the job has not ended. False, before any call, where the job must wait in another way, and
/// outside of jobs.
///
/// For fibers. Another job may find no stack for the loop that would run others meanwhile, and hold its thread: the
/// waker does not wake it then.
///
/// # Panics
/// Does not return to a job that is cancelled: its stack is unwound.
#[inline]
#[track_caller]
pub fn wait_until(mut enqueue: impl FnMut(&Waker) -> bool, is_over: impl Fn() -> bool) -> bool {
    match begin(&mut enqueue) {
        Begun::Refused => return false,
        Begun::Over => return true,
        Begun::Waits => {}
    }
    wait_from(Location::caller(), &is_over);
    true
}

/// A wait has begun: waits until it is over.
#[inline(always)]
fn wait_from(site: &'static Location<'static>, is_over: &impl Fn() -> bool) {
    loop {
        if !suspend(site, is_over) {
            return wait_in_general(is_over, site);
        }
        if is_over() {
            return;
        }
    }
}

/// The rest of a [wait at once](super::at_once::wait_at_once) that has begun: waits until `is_over`.
#[inline(never)]
#[track_caller]
pub fn wait_on_until(is_over: impl Fn() -> bool) {
    wait_from(Location::caller(), &is_over);
}

/// How a wait has begun.
enum Begun {
    /// The job must wait in another way.
    Refused,
    /// It need not wait.
    Over,
    /// It waits to be woken.
    Waits,
}

#[inline(never)]
fn begin(enqueue: &mut impl FnMut(&Waker) -> bool) -> Begun {
    match unit::with(Unit::waker_of_first_poll) {
        None => Begun::Refused,
        Some(waker) if enqueue(&waker) => Begun::Waits,
        Some(_) => Begun::Over,
    }
}

/// Suspends the stack until the job is woken, if that is a fiber that migrates and a direct switch is possible. False
/// elsewhere: nothing is suspended then. Nothing is suspended either if the wait is over before.
// Not inlined: it resumes on another thread.
#[inline(never)]
fn suspend(site: &'static Location<'static>, is_over: &dyn Fn() -> bool) -> bool {
    let mut cx = context::here();
    let Some(job) = cx.job() else {
        return false;
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    header.note_site(site);
    if header.extensions.tell_that_it_takes_long() {
        // What was told is user code, which may have waited. That wait may have used up the wake of this one, and a
        // fiber may have migrated meanwhile.
        if is_over() {
            return true;
        }
        cx = context::again();
    }
    if let Some(shared) = cx.shared() {
        shared.process.assert_here();
    }
    let Some(own) = cx.plain_migrating().filter(|_| cx.noted().leaves_nothing()) else {
        return false;
    };
    let left = Left {
        job,
        noted: PollNotes::NOTHING,
    };
    if !cx.switch_to_next_migrating(own, left, || {}) {
        return false;
    }
    if header.state.is_cancelled() {
        unwind_if_cancelled(header);
    }
    true
}

/// The rest of a wait of which no stack was suspended, or that goes on otherwise.
#[inline(never)]
fn wait_in_general(is_over: &impl Fn() -> bool, site: &'static Location<'static>) {
    let mut begun = None;
    if let Some(first) = first_poll::begin() {
        let mut notes = Notes(first.notes);
        while first_poll::suspend(&mut notes.0, site) {
            if is_over() {
                return;
            }
        }
        begun = Some(ManuallyDrop::new(notes).0);
    }
    let Some(job) = context::again().job() else {
        unreachable!("what has begun to wait is a job")
    };
    let over = poll_fn(|_| match is_over() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    });
    wait_on(job, pin!(over), begun);
}

/// A wait that has begun as a first poll, and ends with this. Its notes.
struct Notes(u8);

impl Drop for Notes {
    fn drop(&mut self) {
        first_poll::end(self.0);
    }
}
