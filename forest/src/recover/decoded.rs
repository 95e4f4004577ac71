//! A record that is decoded before it is applied, by a thread that does not have the forest.
//!
//! What needs the forest as it was at the record (its references to erasable bytes, the ids of a spliced subtree) is decoded
//! when the record is applied.

use std::cell::Cell;

use weald_tree::Bytes;

use crate::journal::{Change, Entry, Position, RecordError, Stored};

/// A record, decoded as far as that needs nothing but the record.
pub(super) struct Decoded {
    pub(super) position: Position,
    pub(super) stored: Result<Stored, RecordError>,
    /// Its changes, unless they are to be decoded when it is applied.
    pub(super) changes: Option<Vec<Change>>,
}

impl Decoded {
    /// Decodes a record.
    pub(super) fn new(entry: &Entry) -> Self {
        let stored = Stored::read(&entry.record);
        let has_references = Cell::new(false);
        let refer = |_| {
            has_references.set(true);
            Bytes::new(&[])
        };
        let read = |stored: &Stored| stored.changes_with(&mut |_| None, Some(&refer)).ok();
        let changes = stored.as_ref().ok().and_then(read);
        Self {
            position: entry.position,
            stored,
            changes: changes.filter(|_| !has_references.get()),
        }
    }
}
