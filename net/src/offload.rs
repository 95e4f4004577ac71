//! Work that blocks an OS thread, done where no worker is blocked by it.
//!
//! It is a job that announces that it blocks, so that a stand-in serves its worker meanwhile. At most
//! [`AT_ONCE`] run at once; the others wait for their turn, without a thread.

use std::sync::LazyLock;

use weald_kernel::{JoinError, Panic, blocking, spawn};
use weald_sync::Semaphore;

/// Far fewer than a runtime's stand-ins, of which blocked jobs need some too.
const AT_ONCE: u32 = 64;

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(AT_ONCE));

/// Runs `work` on a thread that serves no worker. At most 64 run at once in a program, the others
/// wait.
///
/// So `work` must not wait for what is offloaded itself: another `offload`, a file of [`fs`](crate::fs), a
/// name ([`lookup_host`](crate::lookup_host())), or a job that needs one. Once 64 of them hold their turns and
/// each waits for one more, none ever goes on. It is on a thread that may block: call what blocks directly,
/// `std::fs` say.
///
/// Cancel-safe as far as the system allows: dropped before its turn it does nothing; after that the work
/// goes on by itself, and its output is dropped.
///
/// # Errors
/// If the runtime shuts down first.
///
/// # Panics
/// If `work` panics.
pub async fn offload<R, F>(work: F) -> Result<R, ShutDown>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let turn = TURNS.acquire().await;
    let job = spawn(async move {
        let _turn = turn;
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
#[error("the runtime shut down before the work was done; begin it in one that runs")]
pub struct ShutDown;

impl From<ShutDown> for std::io::Error {
    fn from(error: ShutDown) -> std::io::Error {
        std::io::Error::other(error)
    }
}
