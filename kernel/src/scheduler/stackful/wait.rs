//! Waiting with the stack: `block_on` and `wait()`, from any context.
//!
//! - Inside a job the job's stack is left standing, and the thread goes on with other jobs on a further one
//!   ([`crate::scheduler::stackful::stack_context`]). The job is woken, cancelled and reported as one that awaits.
//! - On a foreign thread the thread parks, and meanwhile runs the jobs that are bound to it.
//! - A wait in a destructor, while the thread unwinds, blocks the OS thread: what is unwound is counted by
//!   thread, and another job's lock guards would be poisoned by it. The worker's right goes to a stand-in
//!   first. Only when others are to run on that very thread, for one of which it may wait, it leaves its
//!   stack standing nevertheless. The thread is blocked, too, where no stack can be had, and while a join waits for a half that computes
//!   elsewhere ([`hold_in`]): its caller may hold a lock of `std`.
//!
//! Cancelling a job that is in `wait()` unwinds its stack, once, with a private payload; never while it
//! is already unwinding.

#![allow(unsafe_code)]

pub(crate) mod block;
mod foreign_thread;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    thread,
    time::Instant,
};

use crate::{
    FEATURES,
    job::{Header, JobPtr, JobRef},
    report,
    scheduler::{
        stackful::{pinned::PinnedQueue, stack_context, wait::block::blocking},
        workers::{context, run, shared::Shared, waker},
    },
};

/// Whether a job runs the caller.
#[inline]
pub fn is_in_job() -> bool {
    context::again().job().is_some()
}

/// Runs `future` on the calling thread until it is done, with the current runtime: the one that runs
/// the caller, else the default one. See [`Runtime::block_on`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    match context::with(|cx| cx.shared().map(Shared::id))
        .and_then(crate::scheduler::workers::shared::find)
    {
        Some(shared) => block_on_in(&shared, future),
        None => block_on_in((FEATURES.default_runtime)(), future),
    }
}

/// As [`Runtime::block_on`].
pub(crate) fn block_on_in<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let future = pin!(future);
    match context::again().job() {
        Some(job) => wait_in_job(job, future),
        None => crate::scheduler::stackful::wait::foreign_thread::wait_on_foreign_thread(
            shared,
            future,
            Meanwhile::RunsPinned,
        ),
    }
}

/// As [`block_on_in`], for a fork that waits for its parts: the OS thread is held, because a job that ran there
/// meanwhile could want a lock of `std` that who forked holds, and would hold the thread for good. But if the parts
/// themselves wait, as `parts_wait` says, what they wait for may be bound to this thread: when something is to run
/// here then, nothing comes back, and the caller is to wait in the other way. A foreign thread runs that itself.
pub(crate) fn hold_in<F: Future>(
    shared: &Arc<Shared>,
    future: Pin<&mut F>,
    parts_wait: &dyn Fn() -> bool,
) -> Option<F::Output> {
    match context::again().job() {
        Some(job) => {
            // SAFETY: the caller runs the job.
            let header = unsafe { job.header() };
            let gives_way = || {
                let waits = parts_wait();
                header.set_joins_waiting(waits);
                context::again().outer_runs.set_joins_waiting(waits);
                waits
                    && context::again()
                        .pinned_here()
                        .is_some_and(PinnedQueue::has_runnable)
            };
            let ended = block::hold_in_job(future, &gives_way);
            header.set_joins_waiting(false);
            context::again().outer_runs.set_joins_waiting(false);
            ended
        }
        None => {
            let meanwhile = Meanwhile::Holds(parts_wait);
            Some(
                crate::scheduler::stackful::wait::foreign_thread::wait_on_foreign_thread(
                    shared, future, meanwhile,
                ),
            )
        }
    }
}

/// What a foreign thread does while it waits.
#[derive(Clone, Copy)]
enum Meanwhile<'a> {
    /// It runs the jobs that are bound to it.
    RunsPinned,
    /// It parks, unless the parts that it waits for wait themselves: as in [`hold_in`].
    Holds(&'a dyn Fn() -> bool),
}

/// As [`Wait::wait`](crate::Wait::wait), but a cancel of the running job does not end it: that is told, once, to
/// `cancelled`, and the wait goes on to the end of its future. For who must not leave before others have ended.
pub fn wait_to_the_end<F: Future>(future: F, cancelled: impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    // Who is being unwound already was cancelled for other reasons than this wait.
    let unwinds = context::again().job().is_some_and(|job| {
        // SAFETY: the caller runs the job.
        is_unwinding(unsafe { job.header() })
    });
    let mut cancelled = CalledOnce(Some(cancelled));
    let shield = Shield::begin();
    let mut unwinding = None;
    let output = loop {
        // A test runtime in which nothing can run any more panics. Whoever calls this relies on the end all the
        // same, so what is waited for is cancelled first; if it does not end even then, nobody may go on.
        let told = poll_fn(|cx| {
            if !unwinds && context::again().job().is_some_and(is_cancelled) {
                cancelled.tell();
            }
            future.as_mut().poll(cx)
        });
        match catch_unwind(AssertUnwindSafe(|| block_on(told))) {
            Ok(output) => break output,
            Err(payload) if unwinding.is_none() => {
                cancelled.tell();
                unwinding = Some(payload);
            }
            Err(_) => {
                eprintln!("weald: a scope cannot end, and what it lent out is still in use");
                std::process::abort();
            }
        }
    };
    drop(shield);
    match unwinding {
        Some(payload) => resume_unwind(payload),
        None => output,
    }
}

/// Unwinds the running job if it was cancelled, as a [`wait()`](crate::Wait::wait) would; for code that has none.
/// Outside of jobs, and while the stack unwinds already, it does nothing.
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

/// Something that is told once.
struct CalledOnce<F>(Option<F>);

impl<F: FnMut()> CalledOnce<F> {
    fn tell(&mut self) {
        if let Some(mut tell) = self.0.take() {
            tell();
        }
    }
}

/// While it lives, no wait of the running job is unwound for a cancel.
struct Shield(Option<JobRef>);

impl Shield {
    fn begin() -> Shield {
        // Of two shields the outer one counts.
        let job = context::again().job_ref();
        Shield(
            job.filter(|job| !std::mem::replace(&mut job.header().extensions.lock().unwound, true)),
        )
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.header().extensions.lock().unwound = false;
        }
    }
}

/// Gives way with the stack: the running job goes behind all others, and goes on when they had their turn. Where
/// its stack may not be left (while it unwinds) it gives its worker to another thread instead. Outside
/// of jobs it does nothing.
///
/// # Panics
/// Does not return to a job that is cancelled: its stack is unwound.
pub fn yield_with_stack() {
    let cx = context::again();
    let Some(job) = cx.job() else { return };
    let root = match stack_context::root(cx) {
        Some(root) if may_suspend(cx) => root,
        _ => return blocking(thread::yield_now),
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it stands.
    unwind_if_cancelled(unsafe { job.header() });
    let mut noted = SavedFlags::begin(cx);
    cx.yield_job();
    // Without a stack for a loop nobody can have a turn.
    noted.suspended = stack_context::suspend(cx, root, job).is_ok();
    drop(noted);
    // SAFETY: as above.
    unwind_if_cancelled(unsafe { job.header() });
}

/// Runs `future` to its end in the running job.
pub(crate) fn wait_in_job<F: Future>(job: JobPtr, mut future: Pin<&mut F>) -> F::Output {
    let cx = context::here();
    let root = match stack_context::root(cx) {
        Some(root) if may_suspend(cx) => root,
        Some(root) if may_suspend_unwinding(cx, root) => {
            let begun = Instant::now();
            let others_wait = || {
                begun.elapsed() >= block::LOOK
                    && context::again()
                        .pinned_here()
                        .is_some_and(PinnedQueue::has_runnable)
            };
            match block::hold_in_job(future.as_mut(), &others_wait) {
                Some(output) => return output,
                None => root,
            }
        }
        _ => return block::block_in_job(future),
    };
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it stands.
    let header = unsafe { job.header() };
    let unwinds = cx.is_panicking();
    // SAFETY: as above; the waker leaves this frame only as clones with counts of their own.
    let waker = unsafe { waker::borrowed(job) };
    let mut noted = SavedFlags::begin(cx);
    loop {
        unwind_if_cancelled(header);
        if let Poll::Ready(output) =
            poll_in_own_frame(future.as_mut(), &mut Context::from_waker(&waker))
        {
            // The job goes on, and its next wait may be one that notes nothing.
            header.set_waits_for(0);
            return output;
        }
        let cx = context::again();
        let parked = cx.fork_wait();
        let suspended = match unwinds {
            true => cx.suspend_unwinding(|| stack_context::suspend(cx, root, job)),
            false => stack_context::suspend(cx, root, job),
        };
        drop(parked);
        if let Err(error) = suspended {
            report::no_stack(&error);
            return block::block_in_job(future);
        }
        noted.suspended = true;
    }
}

/// Polls in a frame of its own: what a poll keeps in registers of its thread must not be kept over a switch.
#[inline(never)]
fn poll_in_own_frame<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(cx)
}

/// What the poll in which a wait happens has noted before it; comes back with the end of the wait.
struct SavedFlags {
    before: (bool, bool),
    suspended: bool,
}

impl SavedFlags {
    fn begin(cx: &context::Context) -> SavedFlags {
        SavedFlags {
            before: cx.begin_wait(),
            suspended: false,
        }
    }
}

impl Drop for SavedFlags {
    #[inline]
    fn drop(&mut self) {
        // Asked for anew: a fiber that moves may be on another thread.
        context::again().end_wait(self.before, self.suspended);
    }
}

/// Whether a stack of the calling thread may be left standing: not while it unwinds or ends a job from elsewhere,
/// and only if the thread has a home to which its job can be woken.
fn may_suspend(cx: &context::Context) -> bool {
    !cx.pinned_ptr().is_null() && !cx.is_ending() && !cx.is_panicking()
}

/// Whether the stack may be left standing although it unwinds, when others are to run on its thread: what it waits
/// for may be one of them. The others then find `std::thread::panicking` true. Not a stack
/// that moves: unwindings are counted by thread.
fn may_suspend_unwinding(cx: &context::Context, root: &stack_context::StackContext) -> bool {
    !cx.pinned_ptr().is_null() && !cx.is_ending() && !root.migrates.get()
}

/// Whether a cancel may not unwind the running job (again).
fn is_unwinding(job: &Header) -> bool {
    context::again().is_panicking()
        || context::again().is_dropping()
        || job
            .extensions
            .lock_existing()
            .is_some_and(|extensions| extensions.unwound)
}

fn unwind_if_cancelled(job: &Header) {
    if job.state.is_cancelled() && !is_unwinding(job) {
        job.extensions.lock().unwound = true;
        run::unwind_cancelled();
    }
}
