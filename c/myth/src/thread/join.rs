//! Joining a thread, with or without a time limit, and detaching it.
//!
//! # Safety
//! *One joiner*, *three holds*: at the head of [`super`]; *lent*: at that of [`crate::queue`].

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    mem, ptr, thread as os_thread,
    time::{Duration, Instant},
};

use weald_kernel::{JoinHandle, timeout, yield_with_stack};

use super::{
    Thread, current, give_back,
    state::{DETACHED, ENDED, STORED},
};
use crate::{
    queue::Node,
    saved::{across, around},
    wait::{sleep, wait, wait_lent},
};

const ENDED_AND_STORED: u32 = STORED | ENDED;

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
    let has_ended = match this.state.bits() & (STORED | ENDED | DETACHED) {
        ENDED_AND_STORED => true,
        // SAFETY: *one joiner*.
        0 if matches!(limit, TimeLimit::ToTheEnd) => unsafe { Thread::run_lazy(thread) },
        _ => false,
    };
    if has_ended {
        // SAFETY: the caller's promise; *three holds*.
        unsafe { take_result(thread, result) };
        return Ok(());
    }
    if ptr::eq(this, current()) {
        return Err(libc::EDEADLK);
    }
    // Not taken back: at worst the block is lost when the runtime ends.
    if !this.state.note_joiner() {
        return Err(libc::EINVAL);
    }
    wait_until_stored(this, limit)?;
    // SAFETY: *one joiner*.
    match unsafe { &mut *this.handle.get() } {
        // Its code may have ended before its job.
        Some(_) if this.state.has(ENDED) => {}
        Some(handle) => wait_for(this, handle, limit)?,
        // It has ended without a job.
        None if this.state.has(ENDED) => {}
        None => return Err(libc::EINVAL),
    }
    // SAFETY: the caller's promise; *three holds*.
    unsafe { take_result(thread, result) };
    Ok(())
}

/// Takes the result of a thread that has ended, and frees it.
///
/// # Safety
/// *Three holds*: the caller is the one that joins it.
#[inline(always)]
unsafe fn take_result(thread: *const Thread, result: Option<&Cell<*mut c_void>>) {
    if let Some(place) = result {
        // SAFETY: the caller's promise.
        place.set(unsafe { &*thread }.result.get());
    }
    // SAFETY: the caller's promise.
    unsafe { give_back(thread) };
}

/// Its creator is about to store the handle, or has let it run first; so it need not have ended. Or it has not begun,
/// because the system refuses it a stack.
fn wait_until_stored(thread: &Thread, limit: TimeLimit) -> Result<(), c_int> {
    /// How long an OS thread of the program pauses, which cannot let others run. A timer might find no free worker.
    const PAUSE: Duration = Duration::from_micros(50);
    /// How long a joiner with a limit sleeps before it looks for a thread that has no stack. Workers try again after 1
    /// to 16 ms.
    const SLEEP: Duration = Duration::from_millis(1);
    while !is_stored(thread) {
        match limit {
            // It may be long before there is a stack. The handle is stored when the thread has begun.
            TimeLimit::ToTheEnd | TimeLimit::Until(None)
                if thread.lazy.is_refused() && wait_for_end(thread) => {}
            TimeLimit::None => return Err(libc::EBUSY),
            TimeLimit::Until(Some(deadline)) => {
                let left = deadline.saturating_duration_since(Instant::now());
                match thread.lazy.is_refused() {
                    _ if left.is_zero() => return Err(libc::EBUSY),
                    true => sleep(left.min(SLEEP)),
                    false => let_others_run(PAUSE),
                }
            }
            TimeLimit::ToTheEnd | TimeLimit::Until(None) => let_others_run(PAUSE),
        }
    }
    Ok(())
}

/// Yields; an OS thread of the program pauses.
fn let_others_run(pause: Duration) {
    across(|| {
        if !yield_with_stack() {
            os_thread::park_timeout(pause);
        }
    });
}

/// Whether the handle of a thread is stored. If it was left to its joiner, a job is made of it first: a joiner with a
/// limit cannot run it as a call, and its creator may compute for long.
fn is_stored(thread: &Thread) -> bool {
    if !thread.state.has(STORED) {
        thread.make_job_if_left();
    }
    thread.state.has(STORED)
}

fn wait_for(thread: &Thread, handle: &mut JoinHandle<()>, limit: TimeLimit) -> Result<(), c_int> {
    match limit {
        TimeLimit::ToTheEnd | TimeLimit::Until(None) => {
            if around(|| handle.run_if_newest()).is_none() && !wait_for_end(thread) {
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

/// Waits until the code of the thread has ended, which wakes a node in this frame. False outside of jobs: these wait by
/// the handle, which the end of a runtime wakes, too.
fn wait_for_end(thread: &Thread) -> bool {
    let node = Node::new(0);
    let mut joining = Joining {
        thread,
        node: &node,
        waits: false,
    };
    let has_waited = wait_lent(&node, |node| {
        joining.waits = thread.state.begin_join(node);
        joining.waits
    });
    mem::forget(joining);
    has_waited
}

/// Dropped if a wait for the end of a thread unwinds, because the runtime ends.
struct Joining<'a> {
    thread: &'a Thread,
    node: &'a Node,
    waits: bool,
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if self.waits && self.thread.state.give_join_up(self.node) {
            // SAFETY: *three holds*: nobody joins it any longer.
            unsafe { give_back(self.thread) };
        }
    }
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
    if this.state.has(DETACHED) {
        return Err(libc::EINVAL);
    }
    if this.state.set(DETACHED) {
        // SAFETY: *three holds*.
        unsafe { give_back(thread) };
    }
    Ok(())
}
