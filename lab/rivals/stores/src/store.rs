//! What a store must do to be measured.

use std::path::Path;

/// What is written: a key and a hundred bytes.
pub(crate) type Record = ([u8; 12], [u8; 100]);

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The end of the program.
    Buffered,
    /// The loss of power.
    Durable,
}

/// A store of records. A failure ends the program with a sentence.
pub(crate) trait Store: Sized + Sync {
    /// What a thread that writes has of its own, such as a connection.
    type Writer<'store>
    where
        Self: 'store;

    /// A new store in this directory, or nothing if it has no such level.
    fn open(directory: &Path, level: Level) -> Option<Self>;

    /// What a thread that writes needs.
    fn writer(&self) -> Self::Writer<'_>;

    /// Commits these records in one transaction, at the level of the store.
    fn commit(writer: &mut Self::Writer<'_>, records: &[Record]);

    /// How many records are stored.
    fn count(&self) -> usize;
}
