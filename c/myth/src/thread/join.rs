//! Joining a thread, with or without a time limit, and detaching it.
//!
//! # Safety
//! *One joiner*, *three holds*: at the head of [`super`].

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr, thread as os_thread,
    time::{Duration, Instant},
};

use weald_kernel::{JoinHandle, timeout, yield_with_stack};

use super::{DETACHED, ENDED, STORED, Thread, current, give_back};
use crate::{
    saved::{across, around},
    wait::wait,
};

/// How long a joiner waits.
#[derive(Clone, Copy)]
pub(crate) enum TimeLimit {
    /// Until the thread has ended.
    ToTheEnd,
    /// Until then. None: to the end.
    Until(Option<Instant>),
    /// Not at all.
    None,
}

/// Waits until `thread` has ended, writes its result, and frees it.
///
/// # Errors
/// `EINVAL` if nobody can join it, `EDEADLK` if it is the caller, `EBUSY` if it has not ended in time.
///
/// # Safety
/// The thread was created, and is not joined by others, before or meanwhile, or detached meanwhile.
pub(crate) unsafe fn join(
    thread: *const Thread,
    limit: TimeLimit,
    result: Option<&Cell<*mut c_void>>,
) -> Result<(), c_int> {
    // SAFETY: the caller's promise; null is nobody's.
    let this = unsafe { thread.as_ref() }.ok_or(libc::EINVAL)?;
    if ptr::eq(this, current()) {
        return Err(libc::EDEADLK);
    }
    if this.has(DETACHED) {
        return Err(libc::EINVAL);
    }
    wait_until_stored(this, limit)?;
    // SAFETY: *one joiner*.
    match unsafe { &mut *this.handle.get() } {
        Some(handle) if !handle.is_finished() => wait_for(handle, limit)?,
        Some(_) => {}
        // It has ended without a job.
        None if this.has(ENDED) => {}
        None => return Err(libc::EINVAL),
    }
    if let Some(place) = result {
        place.set(this.result.get());
    }
    // SAFETY: *three holds*: it has ended, and the caller is the one that joins it.
    unsafe { give_back(thread) };
    Ok(())
}

/// Its creator is about to store the handle, or has let it run first; so it need not have ended.
fn wait_until_stored(thread: &Thread, limit: TimeLimit) -> Result<(), c_int> {
    /// How long an OS thread of the program pauses, which cannot let others run. A timer might find no free worker.
    const PAUSE: Duration = Duration::from_micros(50);
    while !thread.has(STORED) {
        match limit {
            TimeLimit::None => return Err(libc::EBUSY),
            TimeLimit::Until(Some(deadline)) if Instant::now() >= deadline => {
                return Err(libc::EBUSY);
            }
            _ => across(|| {
                if !yield_with_stack() {
                    os_thread::park_timeout(PAUSE);
                }
            }),
        }
    }
    Ok(())
}

fn wait_for(handle: &mut JoinHandle<()>, limit: TimeLimit) -> Result<(), c_int> {
    match limit {
        TimeLimit::ToTheEnd | TimeLimit::Until(None) => {
            if around(|| handle.run_if_newest()).is_none() {
                // How its job ended is the runtime's affair.
                let _ended = wait(handle);
            }
        }
        TimeLimit::Until(Some(deadline)) => {
            let left = deadline.saturating_duration_since(Instant::now());
            let _ended = wait(timeout(left, handle)).map_err(|_elapsed| libc::EBUSY)?;
        }
        TimeLimit::None => return Err(libc::EBUSY),
    }
    Ok(())
}

/// Nobody will join `thread`.
///
/// # Errors
/// `EINVAL` if nobody could.
///
/// # Safety
/// The thread was created, and is not joined by anybody.
pub(crate) unsafe fn detach(thread: *const Thread) -> Result<(), c_int> {
    // SAFETY: the caller's promise; null is nobody's.
    let this = unsafe { thread.as_ref() }.ok_or(libc::EINVAL)?;
    if this.has(DETACHED) {
        return Err(libc::EINVAL);
    }
    if this.set(DETACHED) {
        // SAFETY: *three holds*.
        unsafe { give_back(thread) };
    }
    Ok(())
}
