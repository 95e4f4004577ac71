//! A record that a thread without the forest decodes before it is applied.
//!
//! Parts that need the forest as it was at the record (references to erasable bytes, the ids of a spliced subtree) are
//! decoded when the record is applied.

use crate::content::erasable::may_refer;
use crate::journal::{Change, Entry, Position, RecordError, Stored};

/// A record, decoded as far as the record alone suffices.
pub(super) struct Decoded {
    pub(super) position: Position,
    pub(super) stored: Result<Stored, RecordError>,
    /// Its changes, unless they are to be decoded when it is applied.
    pub(super) changes: Option<Vec<Change>>,
}

impl Decoded {
    /// Decodes a record. Its bytes are not kept, if everything in them could be decoded.
    pub(super) fn new(entry: &Entry) -> Self {
        let mut stored = Stored::read(&entry.record);
        let mut changes = None;
        if let Ok(stored) = &mut stored
            && !may_refer(&stored.changes)
        {
            changes = stored.changes(&mut |_| None).ok();
            if changes.is_some() {
                stored.changes = Vec::new();
            }
        }
        Self {
            position: entry.position,
            stored,
            changes,
        }
    }
}
