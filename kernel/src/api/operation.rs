//! [`offload_operation`]: a call of the system on a file or a host name, which may never return.
//!
//! Like [`offload`](crate::offload()), but in pools of its own (one for files, one for names), where a call that holds
//! its thread for long no longer counts against the limit; see `scheduler::threads::blocking_pool`. A call that lasts
//! for a second is reported by the future that waits for it, by its own timer; once that future was dropped, by the
//! monitor.

use std::{
    future::poll_fn, io, panic::resume_unwind, pin::pin, sync::Arc, task::Poll, time::Instant,
};

use crate::{
    FEATURES,
    api::sync_hooks::note_wait,
    api::{
        offload::{Output, Pending, ShutDown},
        time::sleep,
    },
    job::JobRef,
    report::{self, JobName, OperationName},
    scheduler::{
        threads::{
            blocking_call::{CallEnd, Caller},
            blocking_pool::LASTS,
        },
        workers::{
            context,
            shared::{self, Shared},
            waker::kept,
        },
    },
    sys::{Mutex, lock},
};

/// No thread was free for an operation on a file or a host name for a second, because others do not return
/// ([`Builder::held_operations`](crate::Builder::held_operations)), or the system refused one. Returned inside an
/// [`io::Error`] of the kind [`ResourceBusy`](io::ErrorKind::ResourceBusy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no thread is free for this operation: others that do not return hold all that there may be, or the system refuses \
     another; a report says which, and names them. Mend what they wait for: a name server, a device, the other end of a \
     FIFO (a deadline gives no thread back). Or raise Builder::held_operations; lookups of names have an eighth of it"
)]
#[non_exhaustive]
pub struct NoFreeThread;

impl From<NoFreeThread> for io::Error {
    fn from(error: NoFreeThread) -> io::Error {
        io::Error::new(io::ErrorKind::ResourceBusy, error)
    }
}

/// Runs `work`, a call of the system on a file or a host name, on a thread that serves no job. `operation` is how
/// reports name it.
///
/// Calls that do not return stop no other: one that has held its thread for 10 ms does not count against
/// [`Builder::blocking_threads`](crate::Builder::blocking_threads) while others wait, but against
/// [`Builder::held_operations`](crate::Builder::held_operations). `work` must not wait with Weald.
///
/// Cancel-safe as [`offload`](crate::offload()) is. On a test runtime `work` runs when the future is first polled, in
/// place.
///
/// # Errors
/// Those of `work`; [`NoFreeThread`] if all threads are held by calls that do not return; and an error if the runtime
/// shuts down first.
///
/// # Panics
/// If `work` panics.
///
/// ```
/// use std::{path::Path, sync::Arc};
/// use weald_kernel::{OperationName, offload_operation};
///
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let path: Arc<Path> = Path::new("/proc/version").into();
/// let name = OperationName::file("reading", path.clone());
/// let text = offload_operation(name, move || std::fs::read_to_string(path)).await?;
/// assert!(text.starts_with("Linux"));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub async fn offload_operation<R, F>(operation: OperationName, work: F) -> io::Result<R>
where
    F: FnOnce() -> io::Result<R> + Send + 'static,
    R: Send + 'static,
{
    let current = context::with(|cx| cx.shared().map(Shared::id)).and_then(shared::find);
    let shared = current.unwrap_or_else(|| (FEATURES.default_runtime)().clone());
    if shared.is_driven() {
        return work();
    }
    let asked_by = context::again().job_ref();
    let asked_by = asked_by.as_ref().map(JobRef::header).map(JobName::of);
    let caller = Caller::Operation(Arc::new(operation.asked_by(asked_by)));
    let output: Arc<Output<io::Result<R>>> = Arc::new(Mutex::new(None));
    let pending = Pending::new(shared, caller, work, &output);
    let end = ended(&pending).await;
    let ran = lock(&output).take();
    match ran {
        Some(Ok(output)) => output,
        Some(Err(payload)) => resume_unwind(payload),
        None if end == CallEnd::NoFreeThread => Err(NoFreeThread.into()),
        None => Err(ShutDown.into()),
    }
}

/// Waits for the end of the call, and reports it if it runs for long.
async fn ended(pending: &Pending) -> CallEnd {
    let since = Instant::now();
    let mut lasts = pin!(sleep(LASTS));
    let mut is_watched = true;
    poll_fn(|cx| {
        if let Poll::Ready(end) = pending.call.poll(|| kept(cx.waker()), note_wait) {
            return Poll::Ready(end);
        }
        if is_watched && lasts.as_mut().poll(cx).is_ready() {
            is_watched = false;
            if let Some(operation) = pending.call.begin_report() {
                report::held_operation(operation, since.elapsed());
            }
        }
        // Polled once more, because the timer has noted its own wait in place of the call's.
        pending.call.poll(|| kept(cx.waker()), note_wait)
    })
    .await
}
