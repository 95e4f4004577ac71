//! What a combiner begins with, in an empty forest or in one that was read back.

use std::time::SystemTime;

use super::commit_ids::CommitIds;
use crate::journal::Position;

/// What a combiner begins with: the newest commit, and what is known about those before it.
pub(crate) struct Start {
    pub(crate) number: u64,
    pub(crate) time: SystemTime,
    pub(crate) position: Option<Position>,
    pub(crate) ids: CommitIds,
    /// Whether the journal has the record of the opening, if it needs one.
    pub(crate) is_noted: bool,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            number: 0,
            time: SystemTime::UNIX_EPOCH,
            position: None,
            ids: CommitIds::default(),
            is_noted: true,
        }
    }
}
