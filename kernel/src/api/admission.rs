//! Admission: whether something may be spawned, and why not.

#![allow(unsafe_code)]

use crate::{
    job::{NoMemory, Room},
    scheduler::workers::{context, limit, shared::Shared},
    stack::StackError,
};

/// Why nothing was spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The process limit is reached.
    #[error(
        "the runtime's limit of {limit} processes is reached; raise Builder::process_limit, or let \
         some end first"
    )]
    TooManyProcesses {
        /// The limit.
        limit: usize,
    },
    /// The runtime is shutting down.
    #[error("the runtime is shutting down and takes no new jobs")]
    ShuttingDown,
    /// The calling thread runs no jobs, so no job can be pinned to it.
    #[error(
        "this thread runs no jobs, so no job can be pinned to it; call this inside a job or inside \
         block_on"
    )]
    NoLocalThread,
    /// No stack can be had for a fiber.
    #[error(transparent)]
    NoStack(StackError),
    /// The system has no memory left for the job. The future or closure of the job was dropped; everything else
    /// continues.
    #[error(
        "the system refused memory for a job of {bytes} bytes; let some jobs end first, or give back what is free \
         with Runtime::trim"
    )]
    NoMemory {
        /// The size of the job.
        bytes: usize,
    },
}

impl From<NoMemory> for SpawnError {
    fn from(refused: NoMemory) -> SpawnError {
        SpawnError::NoMemory {
            bytes: refused.bytes,
        }
    }
}

/// Takes a place under the process limit, unless the runtime is shutting down.
#[inline]
pub(crate) fn admit(shared: &Shared) -> Result<(), SpawnError> {
    if shared.is_closing() {
        return Err(SpawnError::ShuttingDown);
    }
    let limit = shared.limit.limit();
    count(shared).map_err(|limit::Reached| SpawnError::TooManyProcesses { limit })
}

/// Takes a place for one process that is about to be spawned.
#[inline]
fn count(shared: &Shared) -> Result<(), limit::Reached> {
    context::with(|cx| {
        if let Some((worker, lease)) = cx.worker_of(shared.id()) {
            // SAFETY: *owner*: the worker of this thread's context.
            if let Ok(mut core) = unsafe { worker.core.enter(lease) } {
                return shared.limit.take_one(&mut core.spare_admissions);
            }
            cx.clear_worker();
        }
        shared.limit.take(1).map(|_| ())
    })
}

/// Room for a job, for a spawn that has no error: without memory its caller panics.
#[inline]
pub(crate) fn room_or_panic<F: Future>() -> Room<F> {
    Room::new().unwrap_or_else(|refused| give_up(refused))
}

#[cold]
fn give_up(refused: NoMemory) -> ! {
    panic!("{}", SpawnError::from(refused))
}
