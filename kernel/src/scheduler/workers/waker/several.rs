//! Waking several jobs at once, such as all that wait for a barrier: they go behind all others, in one passage of the
//! core, and not each to the next slot, from which the next one would displace it.

#![allow(unsafe_code)]

use std::task::Waker;

use super::{is_of_job, ptr_of, queue_woken};
use crate::{
    job::{runnable::Runnable, transition::Owes},
    scheduler::workers::{context, ready::publish, worker_core::Behind},
};

/// What ends a passage of the core.
enum PassageEnd<'a> {
    /// There are no more wakers.
    NoMore,
    /// The overflow queue is full, and went on its way.
    Full,
    /// A waker that wakes no job of the kernel.
    Foreign(&'a Waker),
    /// A woken job that the worker may not run.
    Elsewhere(Runnable),
    /// The core was not entered.
    Refused,
}

/// Wakes by each waker that `next` returns. The jobs that any worker may run go behind all others, in this order. The
/// wakers are lent, and need no counts: a call of `next` says that the former waker has been used.
///
/// # Safety
/// - Each waker is valid until the next call of `next`. The last call is the one that returns `None`.
/// - `next` runs no user code, calls nothing of the runtime (it neither calls, clones nor drops a waker), and does not
///   block: the core of the calling thread's worker is entered meanwhile, and must not be entered a second time.
pub unsafe fn wake_all<'a>(mut next: impl FnMut() -> Option<&'a Waker>) {
    // This frame is left for user code, in which a fiber migrates: nothing in it reads the thread's context.
    loop {
        // SAFETY: the caller's promise.
        match unsafe { pass(&mut next) } {
            PassageEnd::NoMore => return,
            PassageEnd::Full => {}
            PassageEnd::Foreign(waker) => waker.wake_by_ref(),
            PassageEnd::Elsewhere(woken) => queue_woken(woken),
            PassageEnd::Refused => match next() {
                Some(waker) => waker.wake_by_ref(),
                None => return,
            },
        }
    }
}

/// Wakes until there is something that must not be done with the core entered.
///
/// # Safety
/// As [`wake_all`].
// In a frame of its own: behind it there may be user code, in which a fiber migrates.
#[inline(never)]
unsafe fn pass<'a>(next: &mut impl FnMut() -> Option<&'a Waker>) -> PassageEnd<'a> {
    let cx = context::here();
    let (Some((worker, lease)), Some(shared)) = (cx.worker(), cx.shared()) else {
        return PassageEnd::Refused;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Some(mut core) = (unsafe { worker.core.enter_at_once(lease) }) else {
        return PassageEnd::Refused;
    };
    let behind = Behind::of(&shared.injector);
    let (mut has_pushed, mut full) = (false, None);
    let end = loop {
        if full.is_some() {
            break PassageEnd::Full;
        }
        let Some(waker) = next() else {
            break PassageEnd::NoMore;
        };
        if !is_of_job(waker) {
            break PassageEnd::Foreign(waker);
        }
        let job = ptr_of(waker.data());
        // SAFETY: the waker is valid, so its job is alive.
        if unsafe { job.header() }.state.wake() == Owes::Schedule {
            // SAFETY: the state just granted it.
            let woken = unsafe { Runnable::new(job) };
            if !woken.header().runs_anywhere() || woken.header().runtime() != shared.id() {
                break PassageEnd::Elsewhere(woken);
            }
            has_pushed = true;
            full = core.push_last(woken.into_ptr(), behind);
        }
    };
    drop(core);
    if has_pushed {
        publish(cx, shared, full);
    }
    end
}
