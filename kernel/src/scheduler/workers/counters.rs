//! Counters of rare events, one for all workers.

use crate::sys::AtomicU64;

/// How often each happened since the runtime started. [`Metrics`](crate::Metrics) says what those of the same names
/// mean.
#[derive(Default)]
pub(crate) struct Counters {
    /// Ends of jobs on threads that serve no worker.
    pub(crate) ended: AtomicU64,
    pub(crate) detached: AtomicU64,
    pub(crate) announced: AtomicU64,
    pub(crate) overdue: AtomicU64,
    pub(crate) moved_callbacks: AtomicU64,
    /// How often a sender without a worker gave way.
    pub(crate) gave_way: AtomicU64,
}
