//! `join`: runs two halves of a computation; another thread may take the second.
//!
//! The fast path, which is nearly always taken and costs a few instructions:
//! 1. push the second half as a [`StackJob`], run the first;
//! 2. pop the stack job, and run it here.
//!
//! The slow paths, in the cold functions below:
//! - the owner must respond after its push: a worker sleeps, the job is cancelled, or the deque is full;
//! - a thief has the stack job: wait for the stolen job ([`StolenJob::wait`]);
//! - the first half unwinds: the second is run nevertheless, or dropped if the unwinding is for a cancel, before the
//!   unwinding resumes;
//! - the stack nears its end: continue on a new segment ([`depth`]).

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use crate::{
    fork::{
        cancel, depth,
        deque::Verdict,
        fork_deque::{self, ForkDeque},
        fork_deques, forked_wait, root_fork,
        stack_job::StackJob,
        stolen_job::{Returned, StolenJob},
    },
    report::payload::{self, Payload},
    scheduler::workers::context,
};

/// Runs `f` and `g`, perhaps at the same time, and returns what both return.
///
/// `f` runs on the calling thread. An idle worker may take `g`; otherwise `g` runs on the calling thread after
/// `f`. A join costs a few nanoseconds more than two calls and allocates nothing, so even small halves may be
/// forked.
///
/// It can be called from anywhere: in a job, in a process, or on a foreign thread, which then computes along
/// with the workers of its current runtime.
///
/// While another thread runs `g`, the calling thread waits and runs only parts of `g`. So nothing but `f` and `g`
/// runs on the caller's stack, and nothing else there can want a lock that the caller holds. If `f` or `g` itself
/// waits (`wait()`, a thread's `join`), its stack is suspended as in any job, and other jobs run meanwhile; while `g`
/// does so in another thread, and the caller has nothing else to do, also jobs that only the caller's thread can run.
///
/// `g` may run as another job, on another OS thread: it sees neither the caller's thread-locals nor the caller's name.
/// Reports call it a part of the fork at the line of the outermost call.
///
/// # Panics
/// With the panic of `f`, else with that of `g`, after both have ended; `g` runs even if `f` panics. It also
/// panics if the recursion needs more stack than [`Builder::fork_stack`](crate::Builder::fork_stack) allows.
///
/// # Cancelling
/// A cancel of the calling job unwinds each half at its next `wait()` or fork, whichever thread runs it. If `f` unwinds
/// for the cancel, a `g` that has not started is dropped; if `f` catches the cancel, such a `g` runs after it. The
/// unwinding resumes when both have ended.
///
/// No cancel unwinds what a destructor forks while its job unwinds. There is one exception: if an ordinary panic runs
/// the destructor inside of another fork, and the cancel comes while `f` still runs, it may end a `g` that waits, which
/// aborts the program.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     match numbers {
///         [] => 0,
///         [one] => *one,
///         _ => {
///             let (left, right) = numbers.split_at(numbers.len() / 2);
///             let (left, right) = weald::fork::join(|| sum(left), || sum(right));
///             left + right
///         }
///     }
/// }
/// assert_eq!(sum(&[1, 2, 3, 4]), 10);
/// ```
///
/// The deque follows Cilk ("The implementation of the Cilk-5 multithreaded language", 1998); what runs while a
/// join waits follows "Leapfrogging" (Wagner and Calder, 1993).
#[inline]
#[track_caller]
pub fn join<A, B, F, G>(f: F, g: G) -> (A, B)
where
    F: FnOnce() -> A + Send,
    G: FnOnce() -> B + Send,
    A: Send,
    B: Send,
{
    match fork_deque::of(context::here()) {
        Some(fork_deque) => join_on(fork_deque, f, g),
        None => outermost(Location::caller(), f, g),
    }
}

#[cold]
#[inline(never)]
fn outermost<A, B>(
    site: &'static Location<'static>,
    f: impl FnOnce() -> A,
    g: impl FnOnce() -> B,
) -> (A, B) {
    root_fork::with_fork_deque(site, |fork_deque| join_on(fork_deque, f, g))
}

#[inline(always)]
fn join_on<A, B, G: FnOnce() -> B>(fork_deque: &ForkDeque, f: impl FnOnce() -> A, g: G) -> (A, B) {
    let stack_job = StackJob::new(g);
    if (&raw const stack_job).addr() < fork_deque.stack_end.get() {
        // SAFETY: owner: no other thread has seen the stack job.
        let g = unsafe { stack_job.take() };
        return depth::segment(fork_deque, || join_on_segment(fork_deque, f, g));
    }
    // SAFETY: the fork deque is that of the calling thread's root fork.
    let (place, must_respond) = unsafe { fork_deque.deque.push(stack_job.as_entry()) };
    // Caught, and not left to a destructor: a thread that waits for the second half must not be unwinding. It could
    // not suspend its stack then, and what it waits for may be pinned to this thread.
    let first = || {
        if must_respond {
            respond(fork_deque, place);
        }
        f()
    };
    let a = match catch_unwind(AssertUnwindSafe(first)) {
        Ok(a) => a,
        Err(payload) => {
            settle_unwinding(fork_deque, &stack_job, place, &payload);
            raise_again(payload)
        }
    };
    // SAFETY: as above; entries that were pushed later have been popped.
    if unsafe { fork_deque.deque.pop(place) } {
        // SAFETY: owner: the stack job was popped.
        let g = unsafe { stack_job.take() };
        return (a, g());
    }
    (a, settle(fork_deque, &stack_job, place))
}

#[inline(never)]
fn join_on_segment<A, B>(
    fork_deque: &ForkDeque,
    f: impl FnOnce() -> A,
    g: impl FnOnce() -> B,
) -> (A, B) {
    join_on(fork_deque, f, g)
}

/// The result of the stack job at `place`, whose pop failed.
#[cold]
#[inline(never)]
fn settle<G: FnOnce() -> B, B>(
    fork_deque: &ForkDeque,
    stack_job: &StackJob<G, B>,
    place: usize,
) -> B {
    let mut unwinding = None;
    if let Some(stolen_job) = judge(fork_deque, place) {
        let returned;
        (returned, unwinding) = wait(fork_deque, place, stolen_job);
        if returned == Returned::Ran {
            // SAFETY: after: the stolen job is done.
            let outcome = unsafe { stack_job.take_outcome() };
            match (unwinding, outcome) {
                (None, Ok(b)) => return b,
                (None, Err(payload)) => {
                    if cancel::is_own_cancel(&payload) {
                        cancel::begin_unwinding(fork_deque);
                    }
                    raise_again(payload)
                }
                (Some(payload), unused) => {
                    discard_outcome(unused);
                    raise_again(payload)
                }
            }
        }
    }
    // SAFETY: owner: the stack job was never stolen, or was given back.
    let g = unsafe { stack_job.take() };
    match unwinding {
        None => g(),
        Some(payload) => {
            // Not by the unwinding: a destructor that panicked then would end the program.
            forget_panics(|| drop(g));
            resume_unwind(payload)
        }
    }
}

/// Unwinds with the panic of a half, and notes the panic again. The half may have dropped replies, whose callers must
/// be told if the unit survives the panic; they were not told while the other half was awaited.
#[cold]
#[inline(never)]
fn raise_again(payload: Payload) -> ! {
    context::again().note_panic();
    resume_unwind(payload)
}

/// Ends the stack job at `place` after the first half unwound with `payload`.
#[cold]
#[inline(never)]
fn settle_unwinding<G: FnOnce() -> B, B>(
    fork_deque: &ForkDeque,
    stack_job: &StackJob<G, B>,
    place: usize,
    payload: &Payload,
) {
    // Not while the other half is waited for: the unit has not survived it.
    context::again().forget_panic();
    let cancelled = cancel::is_own_cancel(payload);
    let mut owed = None;
    // SAFETY: the fork deque is that of the calling thread's root fork; later entries have been popped.
    let popped = unsafe { fork_deque.deque.pop(place) };
    if !popped && let Some(stolen_job) = judge(fork_deque, place) {
        if cancelled {
            stolen_job.cancel();
        }
        let returned;
        (returned, owed) = wait(fork_deque, place, stolen_job);
        if returned == Returned::Ran {
            // SAFETY: after: the stolen job is done.
            let outcome = unsafe { stack_job.take_outcome() };
            discard_outcome(outcome);
            return give_way_unless(cancelled, owed);
        }
    }
    // SAFETY: owner: the stack job was popped, or was given back.
    let g = unsafe { stack_job.take() };
    if cancelled || owed.is_some() {
        forget_panics(|| drop(g));
        return give_way_unless(cancelled, owed);
    }
    // A cancel that unwinds the second half is hidden by the panic of the first.
    forked_wait::give_way(catch_unwind(AssertUnwindSafe(|| drop(g()))).err());
}

/// Drops the unwinding that a wait owes in favour of the first half's, unless both are for the same cancel.
fn give_way_unless(cancelled: bool, owed: Option<Payload>) {
    if !cancelled {
        forked_wait::give_way(owed);
    }
}

fn judge(fork_deque: &ForkDeque, place: usize) -> Option<StolenJob> {
    // SAFETY: the fork deque is that of the calling thread's root fork, and the pop has just failed.
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
    let unwinding = context::again().is_panicking();
    let destructors = &fork_deque.destructors;
    destructors.begin_wait(unwinding, place, stolen_job.number());
    let ended = stolen_job.wait(fork_deque);
    // SAFETY: the fork deque is that of the calling thread's root fork, and the entry was judged stolen.
    unsafe { fork_deque.deque.give_up(place) };
    destructors.end_wait();
    ended
}

/// Drops what the second half left before another unwinding resumes.
fn discard_outcome<B>(outcome: Result<B, Payload>) {
    forget_panics(move || outcome.map(drop).map_err(payload::discard));
}

/// Runs `act` before another unwinding resumes; forgets a panic of `act`.
fn forget_panics<R>(act: impl FnOnce() -> R) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(act()))) {
        payload::discard(payload);
    }
}

/// After a push, at `place`, that asked for it: makes room, obeys a cancel, wakes a sleeper.
#[cold]
#[inline(never)]
fn respond(fork_deque: &ForkDeque, place: usize) {
    let unwinding = context::here().is_panicking();
    fork_deque.destructors.note_push(unwinding, place);
    // SAFETY: the fork deque is that of the calling thread's root fork.
    unsafe { fork_deque.deque.reset_limit() };
    fork_deque.note_running();
    cancel::unwind_if_cancelled(fork_deque);
    if unwinding {
        // While it stays alerted, it learns of each push whether a destructor makes it.
        fork_deque.deque.alert();
    }
    let shared = fork_deque.shared();
    if shared.sleepers.sleeping() == 0 {
        return;
    }
    if !fork_deques::of(shared).admits(shared, fork_deque) {
        // The monitor checks when this thread no longer computes: if the thread is blocked, nobody else finds out.
        shared.monitor.begin_to_watch();
    } else {
        // The deque stays alerted while a worker sleeps, because the searcher that this thread relies on now may fall
        // asleep next.
        fork_deque.deque.alert();
        if let Some(sleeper) = shared.sleepers.take_one() {
            sleeper.wake_on_other_core(shared);
        }
    }
}
