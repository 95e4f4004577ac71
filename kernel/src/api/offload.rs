//! [`offload()`]: blocking work as a future, on the same threads as [`blocking`](crate::blocking).

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
};

use crate::{
    FEATURES,
    api::sync_hooks::note_wait,
    report::{self, panic_message},
    scheduler::{
        threads::{
            blocking_call::{BlockingCall, Caller, Purpose},
            blocking_threads,
        },
        workers::{
            context,
            shared::{self, Shared},
            waker::kept,
        },
    },
    sys::{Mutex, lock},
};

/// Runs `work` on a thread that serves no job. At most [`Builder::blocking_threads`](crate::Builder::blocking_threads)
/// such calls and calls of [`blocking`](crate::blocking) run at once in a runtime; the others wait for a thread, in
/// order. If a call waits for a second, the calls that hold the threads are reported.
///
/// `work` may block its thread: it can call blocking functions directly, for example those of `std::fs`. It may also
/// wait with Weald, even for other offloaded work: it does not count against the limit meanwhile. On a test runtime it
/// runs when the future is first polled, in place.
///
/// Cancel-safe as far as the system allows: if it is dropped before `work` starts, `work` never runs; if it is
/// dropped later, `work` continues on its own and its output is dropped.
///
/// # Errors
/// [`ShutDown`] if the runtime shuts down first.
///
/// # Panics
/// If `work` panics.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let text = weald::net::offload(|| std::fs::read_to_string("/proc/version")).await??;
/// assert!(text.starts_with("Linux"));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn offload<R, F>(work: F) -> impl Future<Output = Result<R, ShutDown>> + Send
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let site = Location::caller();
    async move {
        let current = context::with(|cx| cx.shared().map(Shared::id)).and_then(shared::find);
        let shared = current.unwrap_or_else(|| (FEATURES.default_runtime)().clone());
        if shared.is_driven() {
            return Ok(work());
        }
        let output: Arc<Output<R>> = Arc::new(Mutex::new(None));
        let caller = Caller::Future {
            site,
            type_name: std::any::type_name::<F>(),
        };
        let pending = Pending::new(shared, caller, work, &output);
        poll_fn(|cx| pending.call.poll(|| kept(cx.waker()), note_wait)).await;
        let ran = lock(&output).take();
        match ran {
            Some(Ok(output)) => Ok(output),
            Some(Err(payload)) => resume_unwind(payload),
            None => Err(ShutDown),
        }
    }
}

/// Where the closure leaves what it returned.
pub(super) type Output<R> = Mutex<Option<thread::Result<R>>>;

/// While it lives, a future waits for its work.
pub(super) struct Pending {
    pub(super) call: Arc<BlockingCall>,
    shared: Arc<Shared>,
    purpose: Purpose,
}

impl Pending {
    /// Submits `work`.
    pub(super) fn new<R, F>(
        shared: Arc<Shared>,
        caller: Caller,
        work: F,
        output: &Arc<Output<R>>,
    ) -> Pending
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let (named, purpose) = (caller.clone(), caller.purpose());
        let span = tracing::Span::current();
        let output = output.clone();
        let work = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)));
            // Nobody takes the output if the future is gone.
            if let Err(payload) = &ran
                && Arc::strong_count(&output) == 1
            {
                report::unobserved_panic(&named.name().now(), &panic_message(payload.as_ref()));
            }
            *lock(&output) = Some(ran);
        };
        Pending {
            call: blocking_threads::submit(&shared, caller, Box::new(work)),
            shared,
            purpose,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let pool = self.shared.blocking.of(self.purpose);
        pool.retract(&self.call);
        if pool.abandon(&self.call) {
            self.shared.monitor.wake();
        }
    }
}

/// The runtime shut down before the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime shut down before the work was done; start it in a runtime that is running")]
pub struct ShutDown;

impl From<ShutDown> for std::io::Error {
    fn from(error: ShutDown) -> std::io::Error {
        std::io::Error::other(error)
    }
}
