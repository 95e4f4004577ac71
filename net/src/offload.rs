//! Runs blocking work without blocking a worker.
//!
//! The work is a job that announces that it blocks, so that a spare thread takes over its worker in the
//! meantime. At most [`MAX_RUNNING`] such jobs run at once; the others wait for a permit, without a thread.

use std::sync::LazyLock;

use weald_kernel::{JoinError, Panic, blocking, spawn};
use weald_sync::Semaphore;

/// Far fewer than the spare threads of a runtime, because jobs that block need some too.
const MAX_RUNNING: u32 = 64;

static PERMITS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(MAX_RUNNING));

/// Runs `work` on a thread that serves no worker. At most 64 such calls run at once in a program; the others
/// wait.
///
/// So `work` must not wait for anything that is offloaded: another `offload`, a file of [`fs`](crate::fs), a
/// name ([`lookup_host`](crate::lookup_host())), or a job that needs one of these. If 64 of them hold a permit
/// and each waits for another, none of them ever continues. `work` may block its thread: it can call blocking
/// functions directly, for example those of `std::fs`.
///
/// Cancel-safe as far as the system allows: if it is dropped before `work` starts, `work` never runs; if it is
/// dropped later, `work` continues on its own and its output is dropped.
///
/// # Errors
/// [`ShutDown`] if the runtime shuts down first.
///
/// # Panics
/// If `work` panics.
pub async fn offload<R, F>(work: F) -> Result<R, ShutDown>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let permit = PERMITS.acquire().await;
    let job = spawn(async move {
        let _permit = permit;
        blocking(work)
    });
    match job.await {
        Ok(output) => Ok(output),
        Err(JoinError::Panicked(panic)) => std::panic::resume_unwind(Panic::into_payload(panic)),
        Err(_) => Err(ShutDown),
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
