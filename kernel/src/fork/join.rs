//! `join`: two halves of a computation, of which another thread may take the second.
//!
//! Steps, on the way that is taken nearly always and costs a few instructions:
//! 1. push the second half, run the first;
//! 2. pop the second half, and run it here.
//!
//! Else, in the cold parts below:
//! - the owner looks around after its push: somebody sleeps, or the job is cancelled, or the deque is full;
//! - a thief has the second half: wait for it ([`StolenJob::wait`]);
//! - the first half unwinds: the second one is run nevertheless, or dropped in a cancel, before the
//!   unwinding goes on;
//! - the stack nears its end: go on on a further one ([`depth`]).

#![allow(unsafe_code)]

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::{
    fork::{
        cancel, depth,
        deque::Verdict,
        fork_deque::{self, ForkDeque},
        fork_deques,
        forked_wait::{self, Payload},
        root_fork,
        stack_job::StackJob,
        stolen_job::{Returned, StolenJob},
    },
    scheduler::workers::{context, run::CancelUnwind},
};

/// Runs `f` and `g`, perhaps at the same time, and returns what both return.
///
/// `f` runs on the calling thread. `g` can be taken by a worker that has nothing to do; else it runs on the
/// calling thread after `f`. That costs a few nanoseconds more than two calls, so that it need not be
/// avoided for small halves, and takes no memory.
///
/// It can be called from anywhere: in a job, in a process, or on a thread that is none of Weald's, which then
/// takes part itself beside the workers of its current runtime.
///
/// While it waits for `g` elsewhere, the calling thread runs parts of `g` only. So a lock that the caller
/// holds is never wanted on top of it by anything but `f` and `g`. If `f` or `g` itself waits (`wait()`, a
/// thread's `join`), its stack is left standing as in any job, and others run meanwhile.
///
/// `g` may run as another job, on another OS thread: it sees neither the caller's thread-locals nor its name.
///
/// # Panics
/// With the panic of `f`, else that of `g`, after both have ended: `g` runs also if `f` panics. Also if the
/// recursion needs more stack than [`Builder::fork_stack`](crate::Builder::fork_stack) allows.
///
/// # Cancelling
/// A cancel of the calling job unwinds it at its next `wait()` or fork, in either half and wherever that
/// runs; a half that has not begun is dropped. The unwinding goes on when both have ended.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     match numbers {
///         [] => 0,
///         [one] => *one,
///         _ => {
///             let (left, right) = numbers.split_at(numbers.len() / 2);
///             let (left, right) = weald_kernel::fork::join(|| sum(left), || sum(right));
///             left + right
///         }
///     }
/// }
/// assert_eq!(sum(&[1, 2, 3, 4]), 10);
/// ```
///
/// The deque follows Cilk ("The implementation of the Cilk-5 multithreaded language", 1998), and what runs
/// while a join waits "Leapfrogging" (Wagner and Calder, 1993).
#[inline]
pub fn join<A, B, F, G>(f: F, g: G) -> (A, B)
where
    F: FnOnce() -> A + Send,
    G: FnOnce() -> B + Send,
    A: Send,
    B: Send,
{
    match fork_deque::of(context::here()) {
        Some(fork_deque) => join_on(fork_deque, f, g),
        None => outermost(f, g),
    }
}

#[cold]
#[inline(never)]
fn outermost<A, B>(f: impl FnOnce() -> A, g: impl FnOnce() -> B) -> (A, B) {
    root_fork::with_fork_deque(|fork_deque| join_on(fork_deque, f, g))
}

#[inline(always)]
fn join_on<A, B, G: FnOnce() -> B>(fork_deque: &ForkDeque, f: impl FnOnce() -> A, g: G) -> (A, B) {
    let half = StackJob::new(g);
    if (&raw const half).addr() < fork_deque.stack_end.get() {
        // SAFETY: owner: nobody else has seen the half.
        let g = unsafe { half.take() };
        return depth::segment(fork_deque, || join_on_segment(fork_deque, f, g));
    }
    // SAFETY: the lane is that of the calling thread's region.
    let (place, look) = unsafe { fork_deque.deque.push(half.as_entry()) };
    // Caught, and not left to a destructor: who waits for the second half must not be unwinding, because then
    // its stack could not be left, and what it waits for may be bound to this thread.
    let first = || {
        if look {
            look_around(fork_deque);
        }
        f()
    };
    let a = match catch_unwind(AssertUnwindSafe(first)) {
        Ok(a) => a,
        Err(payload) => {
            settle_unwinding(fork_deque, &half, place, &payload);
            resume_unwind(payload)
        }
    };
    // SAFETY: as above; the halves that were pushed later have been popped.
    if unsafe { fork_deque.deque.pop(place) } {
        // SAFETY: owner: the half was popped.
        let g = unsafe { half.take() };
        return (a, g());
    }
    (a, settle(fork_deque, &half, place))
}

#[inline(never)]
fn join_on_segment<A, B>(
    fork_deque: &ForkDeque,
    f: impl FnOnce() -> A,
    g: impl FnOnce() -> B,
) -> (A, B) {
    join_on(fork_deque, f, g)
}

/// The result of the half at `place`, whose pop failed.
#[cold]
#[inline(never)]
fn settle<G: FnOnce() -> B, B>(fork_deque: &ForkDeque, half: &StackJob<G, B>, place: usize) -> B {
    let mut unwinding = None;
    if let Some(stolen_job) = judge(fork_deque, place) {
        let returned;
        (returned, unwinding) = wait(fork_deque, place, stolen_job);
        if returned == Returned::Ran {
            // SAFETY: after: the thief's job is done.
            let outcome = unsafe { half.take_outcome() };
            match (unwinding, outcome) {
                (None, Ok(b)) => return b,
                (Some(payload), _) | (None, Err(payload)) => resume_unwind(payload),
            }
        }
    }
    // SAFETY: owner: the half was never stolen, or was given back.
    let g = unsafe { half.take() };
    match unwinding {
        None => g(),
        Some(payload) => resume_unwind(payload),
    }
}

/// What the first half, which unwound with `payload`, owes to the second, at `place`.
#[cold]
#[inline(never)]
fn settle_unwinding<G: FnOnce() -> B, B>(
    fork_deque: &ForkDeque,
    half: &StackJob<G, B>,
    place: usize,
    payload: &Payload,
) {
    let cancelled = payload.is::<CancelUnwind>();
    let mut owed = None;
    // SAFETY: the lane is that of the calling thread's region; later halves have been popped.
    let popped = unsafe { fork_deque.deque.pop(place) };
    if !popped && let Some(stolen_job) = judge(fork_deque, place) {
        if cancelled {
            stolen_job.cancel();
        }
        let returned;
        (returned, owed) = wait(fork_deque, place, stolen_job);
        if returned == Returned::Ran {
            // SAFETY: after: the thief's job is done.
            let outcome = unsafe { half.take_outcome() };
            forget_panics(move || outcome.map(drop).map_err(mem::forget));
            return give_way_unless(cancelled, owed);
        }
    }
    // SAFETY: owner: the half was popped, or was given back.
    let g = unsafe { half.take() };
    match cancelled {
        true => forget_panics(|| drop(g)),
        false => forget_panics(g),
    }
    give_way_unless(cancelled, owed);
}

/// The unwinding that a wait owes gives way to that of the first half, unless that is for the same cancel.
fn give_way_unless(cancelled: bool, owed: Option<Payload>) {
    if !cancelled {
        forked_wait::give_way(owed);
    }
}

fn judge(fork_deque: &ForkDeque, place: usize) -> Option<StolenJob> {
    // SAFETY: the lane is that of the calling thread's region, and the pop has just failed.
    match unsafe { fork_deque.deque.judge(place) } {
        Verdict::Kept => None,
        Verdict::Stolen(stolen_job) => Some(stolen_job),
    }
}

fn wait(
    fork_deque: &ForkDeque,
    place: usize,
    stolen_job: StolenJob,
) -> (Returned, Option<Payload>) {
    let ended = stolen_job.wait(fork_deque);
    // SAFETY: the lane is that of the calling thread's region, and the half was judged stolen.
    unsafe { fork_deque.deque.give_up(place) };
    ended
}

/// Runs `act` while another unwinding is to go on.
fn forget_panics<R>(act: impl FnOnce() -> R) {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(act())));
    if let Err(payload) = ended {
        // A payload's destructor could panic too.
        mem::forget(payload);
    }
}

/// After a push that was told to: makes room, obeys a cancel, wakes whoever sleeps.
#[cold]
#[inline(never)]
fn look_around(fork_deque: &ForkDeque) {
    // SAFETY: the lane is that of the calling thread's region.
    unsafe { fork_deque.deque.reset_limit() };
    cancel::unwind_if_cancelled(fork_deque);
    let shared = fork_deque.shared();
    if shared.sleepers.sleeping() > 0 && fork_deques::may_steal(shared) {
        // The bell stays rung while somebody sleeps: a searcher that is relied on now may sleep next.
        fork_deque.deque.ring();
        shared.wake_one();
    }
}
