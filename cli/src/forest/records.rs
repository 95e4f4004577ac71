//! The records of a journal, one after the other, and why they cannot be read.

use std::ops::ControlFlow;

use pollster::block_on;
use weald_forest::journal::{Entry, Journal, Position, Stored};
use weald_journal::{OpenForestError, ReadOnlyJournal};

use super::failure::Failure;

/// How many records are read at a time.
const MANY: usize = 256;

/// Calls `take` with each record that there is, the oldest first, until it breaks.
pub(crate) fn each(
    journal: &ReadOnlyJournal,
    take: impl FnMut(Entry, Stored) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    each_after(journal, journal.begin(), take)
}

/// The same, of the records after a position.
pub(crate) fn each_after(
    journal: &ReadOnlyJournal,
    mut after: Position,
    mut take: impl FnMut(Entry, Stored) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    loop {
        let entries = block_on(journal.read(after, MANY));
        let entries = entries.map_err(|error| match journal.is_whole() {
            true => Failure::Damaged(format!("{error}.")),
            false => removed(),
        })?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        after = last.position;
        for entry in entries {
            let position = entry.position;
            let stored = Stored::read(&entry.record).map_err(|error| {
                Failure::Damaged(format!("the record at {position:?} is damaged: {error}."))
            })?;
            if take(entry, stored)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Why a forest was not made from a journal.
pub(crate) fn failed(journal: &ReadOnlyJournal, error: OpenForestError) -> Failure {
    match journal.is_whole() {
        true => error.into(),
        false => removed(),
    }
}

pub(crate) fn removed() -> Failure {
    let text = "the program that has the forest open has removed records meanwhile; do it again.";
    Failure::Failed(text.to_owned())
}
