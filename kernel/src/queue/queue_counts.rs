//! How much has gone through a queue since it was made. The monitor compares two readings.

/// The jobs that were ever taken from a queue, and that were ever put into it; `taken` is never above `put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) taken: u64,
    pub(crate) put: u64,
}
