//! The memory that this operating-system process holds, and its growth.

use crate::error::Error;
use crate::programs::memory;

/// Resident bytes without pages of files.
pub(crate) fn resident() -> Result<u64, Error> {
    memory::resident().map_err(Error::workload)
}

/// The growth from `before` to `after` per item of `count`.
pub(crate) fn growth_per(before: u64, after: u64, count: usize) -> f64 {
    (after as f64 - before as f64) / count as f64
}
