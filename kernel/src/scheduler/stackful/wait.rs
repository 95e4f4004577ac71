//! Waiting with the stack: `block_on` and `wait()`, from any context.
//!
//! - Inside a job ([`wait_in_job`]), the job's stack is suspended, and the thread runs other jobs on another stack
//!   ([`crate::scheduler::stackful::stack_context`]). The job is woken, cancelled and reported as one that awaits.
//! - A foreign thread parks, and meanwhile runs the jobs that are pinned to it.
//! - A wait in a destructor, while the thread unwinds, blocks the OS thread. The standard library counts unwindings by
//!   thread, so another job's lock guards would be poisoned there. The worker is handed to a spare thread first. But if
//!   jobs that are pinned to this thread are runnable, the stack is suspended nevertheless, because the wait may be for
//!   one of them.
//! - A wait in a panic hook blocks the OS thread to its end: if a job that panics ran there meanwhile, the standard
//!   library would end the program ([`panic_hook`]).
//! - The thread is also blocked when no stack is available, and while a join waits for a stolen job that computes
//!   elsewhere ([`hold_in`]): the caller of the join may hold a lock of `std`.
//!
//! Cancelling a job that is in `wait()` unwinds its stack, once, with a private payload; never while the stack is
//! already unwinding.

#![allow(unsafe_code)]

pub mod at_once;
pub(crate) mod block;
pub(crate) mod first_poll;
mod foreign_thread;
mod hold;
mod hold_limit;
mod in_place;
mod panic_hook;
mod shield;
mod yields;

use std::{
    cell::OnceCell,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

pub(crate) use hold::{Awaited, hold_in};
pub(crate) use hold_limit::HoldLimit;
pub use in_place::wait_until;
pub use shield::CancelShield;
pub(crate) use shield::{Shield, shield_if_cancelled};
pub use yields::{yield_to_next_fiber, yield_with_stack};

use crate::{
    FEATURES,
    job::{Header, JobPtr},
    report,
    scheduler::{
        stackful::{
            foreign_runtime::ForeignRuntime,
            pinned::PinnedQueue,
            stack_context,
            wait::{block::HeldFor, panic_hook::is_in_panic_hook},
        },
        threads::blocking_call,
        workers::{
            context::{self, PollNotes},
            current, run,
            shared::Shared,
            waker,
        },
    },
};

/// Whether the caller holds up the job that `waker` wakes, so that it must not wait for that job: a wait of the job
/// with its stack polls the caller, or the caller is in a closure of [`blocking`](crate::blocking()) that the job
/// called.
pub fn holds_up(waker: &Waker) -> bool {
    let cx = context::again();
    match cx.job() {
        Some(job) => cx.noted().waits() && waker::is_of(waker, job),
        None => blocking_call::running_here()
            .is_some_and(|call| call.job().is_some_and(|job| waker::is_of(waker, job.ptr()))),
    }
}

/// Whether the caller runs in a job.
#[inline]
pub fn is_in_job() -> bool {
    context::again().job().is_some()
}

/// Runs `future` on the calling thread until it is done, with the current runtime: the one whose `block_on` the caller
/// is in, else the one that runs the caller, or else the default one. See
/// [`Runtime::block_on`](crate::Runtime::block_on).
///
/// ```
/// let answer = weald::block_on(async { weald::spawn(async { 42 }).await });
/// assert_eq!(answer.unwrap(), 42);
/// ```
#[track_caller]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let future = future.into_future();
    match context::with(|cx| current::of_thread(cx).map(Shared::id))
        .and_then(crate::scheduler::workers::shared::find)
    {
        Some(shared) => block_on_in(&shared, future),
        None => block_on_in((FEATURES.default_runtime)(), future),
    }
}

/// As [`Runtime::block_on`](crate::Runtime::block_on).
#[track_caller]
pub(crate) fn block_on_in<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let mut future = pin!(future);
    match context::again().job() {
        Some(job) if is_current(shared) => wait_in_job(job, future),
        Some(job) => {
            let entering = poll_fn(|cx| {
                let _entered = ForeignRuntime::enter(shared);
                future.as_mut().poll(cx)
            });
            wait_in_job(job, pin!(entering))
        }
        None => crate::scheduler::stackful::wait::foreign_thread::wait_on_foreign_thread(
            shared,
            future,
            Meanwhile::RunsPinned,
        ),
    }
}

fn is_current(shared: &Shared) -> bool {
    context::with(|cx| current::of_thread(cx).is_some_and(|current| current.id() == shared.id()))
}

/// What a foreign thread does while it waits.
#[derive(Clone, Copy)]
enum Meanwhile<'a> {
    /// It runs the jobs that are pinned to it.
    RunsPinned,
    /// It parks, unless a job must run there while it waits for forked work, as in [`hold_in`].
    Holds(&'a dyn Awaited),
}

/// Like [`Wait::wait`](crate::Wait::wait), but a cancel of the running job does not end it: the cancel calls
/// `cancelled` once, and the wait continues until its future is done. For callers that must outlive what they lent out.
pub fn wait_to_the_end<F: Future>(future: F, cancelled: impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    // A cancel of a job that unwinds already was not meant for this wait.
    let unwinds = context::again().job().is_some_and(|job| {
        // SAFETY: the caller runs the job.
        is_unwinding(unsafe { job.header() })
    });
    let mut cancelled = CalledOnce(Some(cancelled));
    let shield = Shield::begin();
    let mut unwinding = None;
    let output = loop {
        // A test runtime in which nothing can run panics. The caller relies on the end of the wait all the same, so
        // what it waits for is cancelled first. If that does not end the wait either, nothing may continue.
        let notifying = poll_fn(|cx| {
            if !unwinds && context::again().job().is_some_and(is_cancelled) {
                cancelled.call();
            }
            future.as_mut().poll(cx)
        });
        match catch_unwind(AssertUnwindSafe(|| block_on(notifying))) {
            Ok(output) => break output,
            Err(payload) if unwinding.is_none() => {
                cancelled.call();
                unwinding = Some(payload);
            }
            Err(_) => {
                report::abort(format_args!(
                    "weald: a scope cannot end while what it lent out is in use; aborting\n"
                ));
            }
        }
    };
    drop(shield);
    match unwinding {
        Some(payload) => resume_unwind(payload),
        None => output,
    }
}

/// Unwinds the running job if it was cancelled, as a [`wait()`](crate::Wait::wait) would. For code that does not wait.
/// Does nothing outside of jobs and while the stack unwinds already.
pub fn cancel_point() {
    if let Some(job) = context::again().job() {
        // SAFETY: the caller runs the job.
        unwind_if_cancelled(unsafe { job.header() });
    }
}

fn is_cancelled(job: JobPtr) -> bool {
    // SAFETY: the caller runs the job.
    unsafe { job.header() }.state.is_cancelled()
}

/// A closure that is called once, at the first of several occasions.
struct CalledOnce<F>(Option<F>);

impl<F: FnMut()> CalledOnce<F> {
    fn call(&mut self) {
        if let Some(mut code) = self.0.take() {
            code();
        }
    }
}

/// A cancel has unwound the running job, and that went no further. The job's next wait unwinds for the cancel again.
pub(crate) fn deliver_cancel_again() {
    if let Some(job) = context::again().job_ref() {
        job.header().extensions.lock().unwound = false;
    }
}

/// As [`deliver_cancel_again`]. Nothing happens while the job unwinds: no wait may unwind it then, so what was caught
/// was another job's.
pub(crate) fn deliver_cancel_again_unless_unwinding() {
    if !context::again().is_panicking() {
        deliver_cancel_again();
    }
}

/// Runs `future` to its end in the running job.
pub(crate) fn wait_in_job<F: Future>(job: JobPtr, future: Pin<&mut F>) -> F::Output {
    wait_on(job, future, None)
}

/// [`wait_in_job`]. `begun`: the notes of a [first poll](first_poll), which has not ended the wait.
pub(crate) fn wait_on<F: Future>(
    job: JobPtr,
    mut future: Pin<&mut F>,
    begun: Option<u8>,
) -> F::Output {
    let cx = context::here();
    // Every way out restores what a first poll has saved.
    let after_first = begun
        .map(PollNotes::of_bits)
        .map(SavedFlags::after_first_poll);
    let root = match stack_context::root(cx) {
        Some(root) if may_suspend(cx) => root,
        Some(root) if may_suspend_unwinding(cx, root) => {
            let (begun, in_hook) = (Instant::now(), OnceCell::new());
            let others_wait = || {
                begun.elapsed() >= block::RECHECK
                    && context::again()
                        .pinned_here()
                        .is_some_and(PinnedQueue::has_runnable)
                    && !in_hook.get_or_init(is_in_panic_hook)
            };
            match block::hold_in_job(future.as_mut(), HeldFor::Wait, &others_wait) {
                Some(output) => return output,
                None => root,
            }
        }
        _ => return block::block_in_job(future),
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it is suspended.
    let header = unsafe { job.header() };
    let unwinds = cx.is_panicking();
    // SAFETY: as above; the waker leaves this frame only as clones with counts of their own.
    let waker = unsafe { waker::borrowed(job) };
    let mut is_polled = after_first.is_some();
    let mut saved = after_first.unwrap_or_else(|| SavedFlags::begin(cx));
    if !is_polled {
        cx.begin_poll_of_wait();
    }
    loop {
        if !std::mem::take(&mut is_polled) {
            unwind_if_cancelled(header);
            if let Poll::Ready(output) =
                poll_in_own_frame(future.as_mut(), &mut Context::from_waker(&waker))
            {
                // The job continues, and its next wait may be one that notes nothing.
                header.set_waits_for(0);
                return output;
            }
        }
        header.extensions.tell_that_it_takes_long();
        // Only now: what was told is user code, which may have waited, and a fiber may have migrated meanwhile.
        let cx = context::again();
        if let Some(shared) = cx.shared() {
            shared.process.assert_here();
        }
        cx.end_poll_of_wait();
        let fork_wait = cx.fork_wait();
        let suspend = || stack_context::suspend(cx, root, (job, saved.before));
        let suspended = match unwinds {
            true => cx.suspend_unwinding(suspend),
            false => suspend(),
        };
        drop(fork_wait);
        if let Err(error) = suspended {
            report::no_stack(&error);
            return block::block_in_job(future);
        }
        saved.suspended = true;
        context::again().begin_poll_of_wait();
    }
}

/// Polls in a frame of its own, so that nothing that depends on the thread stays in a register over a switch.
#[inline(never)]
fn poll_in_own_frame<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(cx)
}

/// A wait begins, so the unit has survived what it has noted: not while it unwinds, since a destructor may wait; and
/// not if the wait will end it.
fn tell_if_survived(cx: &context::Context) {
    if !cx.noted().has_panicked() || cx.is_panicking() {
        return;
    }
    let Some(unit) = cx.unit_job() else { return };
    // SAFETY: the caller runs the job, or a part of its fork, for which it waits.
    let header = unsafe { unit.header() };
    if !header.state.is_cancelled() {
        run::tell_survived(cx, header);
    }
}

/// What the poll had noted in the context when a wait began in it; restored when the wait ends.
struct SavedFlags {
    before: PollNotes,
    wanted_until: Option<Instant>,
    suspended: bool,
}

impl SavedFlags {
    fn begin(cx: &context::Context) -> SavedFlags {
        tell_if_survived(cx);
        SavedFlags {
            before: cx.begin_wait(),
            wanted_until: cx.set_wanted_until(None),
            suspended: false,
        }
    }

    /// `before`: what the poll had noted when the wait began with a [first poll](first_poll).
    fn after_first_poll(before: PollNotes) -> SavedFlags {
        SavedFlags {
            before,
            wanted_until: None,
            suspended: false,
        }
    }
}

impl Drop for SavedFlags {
    #[inline]
    fn drop(&mut self) {
        // Read again: a fiber that migrates may be on another thread.
        let cx = context::again();
        cx.end_wait(self.before, self.suspended);
        cx.set_wanted_until(self.wanted_until);
    }
}

/// Whether the running stack may be suspended: not while it unwinds or ends a job that it does not run, and only if the
/// thread has a pinned queue to which its job can be woken.
fn may_suspend(cx: &context::Context) -> bool {
    !cx.pinned_ptr().is_null() && !cx.is_ending() && !cx.is_panicking()
}

/// Whether the stack may be suspended although it unwinds, when other jobs must run on its thread: it may wait for one
/// of them. Those jobs then find `std::thread::panicking` true. Not a stack that migrates: unwindings are counted by
/// thread. The caller must check that it is not in a panic hook.
fn may_suspend_unwinding(cx: &context::Context, root: &stack_context::StackContext) -> bool {
    !cx.pinned_ptr().is_null() && !cx.is_ending() && !root.migrates.get()
}

/// Whether a cancel must not unwind the running job, because it unwinds or has unwound already, or is shielded.
fn is_unwinding(job: &Header) -> bool {
    context::again().is_panicking() || context::again().is_dropping() || job.waits_to_the_end()
}

fn unwind_if_cancelled(job: &Header) {
    if job.state.is_cancelled() && !is_unwinding(job) {
        if let Some(fork) = context::again().thread_fork() {
            if fork.is_of_destructor() {
                // To its end, as the destructor's own waits last.
                job.extensions.lock().shields += 1;
                return;
            }
            // First: from now on a cancel does not reach what is stolen from the job's forks.
            fork.begin_unwinding();
        }
        job.extensions.lock().unwound = true;
        run::unwind_cancelled();
    }
}
