//! Why a thread stops serving its worker.

use crate::biased_lock::Revoked;

/// Why a thread no longer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServeEnd {
    /// The lease was revoked while the thread was in a job.
    Revoked,
    /// Another thread needs a worker, for a job that is pinned to it; this worker goes to that thread.
    Wanted,
    /// The runtime stops.
    Stopped,
}

impl From<Revoked> for ServeEnd {
    fn from(_: Revoked) -> ServeEnd {
        ServeEnd::Revoked
    }
}
