//! A wait with the stack without a future, for units whose waits end when a word in their own frame says so: those of
//! the interface for C. Otherwise it is as any [first poll](super::first_poll), and the polls behind it.

use std::{
    future::poll_fn,
    mem::ManuallyDrop,
    panic::Location,
    pin::pin,
    task::{Poll, Waker},
};

use super::{first_poll, wait_on};
use crate::scheduler::workers::context;

/// Waits with the stack of the running job until `is_over` is true. It is called with the job's waker, at first and
/// again when the job was woken. False, before any call, where the job must wait in another way, and outside of jobs.
///
/// # Panics
/// Does not return to a job that is cancelled: its stack is unwound.
#[track_caller]
pub fn wait_until(mut is_over: impl FnMut(&Waker) -> bool) -> bool {
    let Some(first) = first_poll::begin() else {
        return false;
    };
    let (waker, mut begun) = (first.waker, Begun(first.notes));
    while !ask(&mut is_over, &waker) {
        if !first_poll::suspend(&mut begun.0, Location::caller()) {
            wait_in_general(is_over, begun);
            break;
        }
    }
    true
}

/// In a frame of its own, as a poll is: nothing that depends on the thread stays in a register over a switch.
#[inline(never)]
fn ask(is_over: &mut impl FnMut(&Waker) -> bool, waker: &Waker) -> bool {
    is_over(waker)
}

/// [`wait_until`] behind calls that have not ended it, where the stack was not suspended.
#[cold]
fn wait_in_general(mut is_over: impl FnMut(&Waker) -> bool, begun: Begun) {
    let Begun(notes) = *ManuallyDrop::new(begun);
    let Some(job) = context::again().job() else {
        unreachable!("only a job has a first poll")
    };
    let over = poll_fn(|cx| match is_over(cx.waker()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    });
    wait_on(job, pin!(over), Some(notes));
}

/// A wait that has begun, and ends with this. Its notes.
struct Begun(u8);

impl Drop for Begun {
    #[inline]
    fn drop(&mut self) {
        first_poll::end(self.0);
    }
}
