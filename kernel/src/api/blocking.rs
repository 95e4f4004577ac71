//! Announced blocking: [`blocking`], whose closure runs on a blocking thread and may borrow from its caller.
//!
//! [`block_in_place`] is for a closure that must stay on its OS thread.
//!
//! # Safety
//! **lent**: the closure borrows from the frame of [`blocking`], but a blocking thread runs it. [`lend`] returns, in
//! whatever way, only after the closure is gone: [`BlockingCall::poll`] is ready only then, and `wait_to_the_end`
//! neither returns nor unwinds before its future is ready; where it cannot wait, it aborts the program. The frame
//! itself stays: a suspended stack with live frames is unwound on its own thread or leaked, never reused.
//!
//! [`BlockingCall::poll`]: crate::scheduler::threads::blocking_call::BlockingCall::poll

#![allow(unsafe_code)]

use std::{
    future::poll_fn,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use crate::api::sync_hooks::note_wait;
use crate::scheduler::{
    stackful::wait::{self, block::block_in_place},
    threads::{
        blocking_call::{Caller, Purpose},
        blocking_threads,
    },
    workers::{
        context,
        shared::{self, Shared},
        waker::kept,
    },
};

/// A closure for a blocking thread, which may borrow.
type Work<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs `f`, which may block its OS thread or compute for long, on a thread that serves no job. The caller waits, and
/// other jobs run meanwhile, even those that are pinned to the caller's OS thread. `f` may borrow from the caller. It
/// runs in the caller's current `tracing` span.
///
/// At most [`Builder::blocking_threads`](crate::Builder::blocking_threads) closures run at once; beyond that they wait
/// for a free one, in order. A closure that waits with Weald ([`wait()`](crate::Wait::wait)) does not count. If
/// a closure waits for a thread for a second, the jobs that hold the threads are reported.
///
/// In async code prefer [`offload`](crate::offload()) where `f` need not borrow: it holds nothing but its own thread,
/// while the stack of a job that waits here stays on its OS thread.
///
/// Outside of a job, and so inside another `blocking`, it just calls `f`. It does so on a [test
/// runtime](crate::Runtime::test), too, so that a run is a function of the program and the seed.
///
/// # Cancellation
/// If the caller is cancelled before `f` begins, `f` never runs. Later, `f` runs to its end, and only then is the
/// caller unwound: what `f` borrows stays valid. So a cancel waits for `f`, and so does a shutdown, up to its deadline;
/// then it names the caller. Where the caller unwinds already, a cancel does nothing.
///
/// # Panics
/// If `f` does: the panic continues in the caller.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(weald::spawn(async {
/// let mut text = String::from("Linux: ");
/// weald::blocking(|| {
///     text.extend(std::fs::read_to_string("/proc/version"));
/// });
/// assert!(text.len() > 7);
/// # })).unwrap();
/// ```
pub fn blocking<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let Some(job) = context::again().job_ref() else {
        return f();
    };
    let Some(shared) = shared::find(job.header().runtime()).filter(|shared| !shared.is_driven())
    else {
        return f();
    };
    wait::cancel_point();
    let span = tracing::Span::current();
    let mut code = Some(f);
    let mut output = None;
    lend(
        &shared,
        Caller::Job(job),
        Box::new(|| {
            if let Some(f) = code.take() {
                output = Some(catch_unwind(AssertUnwindSafe(|| span.in_scope(f))));
            }
        }),
    );
    match output {
        Some(Ok(output)) => {
            wait::cancel_point();
            output
        }
        Some(Err(payload)) => resume_unwind(payload),
        None => {
            wait::cancel_point();
            // The runtime has stopped, or the system refuses a thread.
            let f = code.take().expect("a closure that has not run is here");
            block_in_place(f)
        }
    }
}

/// Has a blocking thread run `work`, and waits until it has run or never will.
fn lend(shared: &Arc<Shared>, caller: Caller, work: Work<'_>) {
    // SAFETY: lent.
    let work = unsafe { mem::transmute::<Work<'_>, Work<'static>>(work) };
    let call = blocking_threads::submit(shared, caller, work);
    wait::wait_to_the_end(
        poll_fn(|cx| call.poll(|| kept(cx.waker()), note_wait)),
        || {
            shared.blocking.of(Purpose::Closures).retract(&call);
        },
    );
}
