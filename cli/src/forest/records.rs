//! The records of a journal, one after the other, and why they cannot be read.

use std::ops::ControlFlow;

use pollster::block_on;
use weald_forest::journal::{Entry, Journal, Position, Stored};
use weald_journal::{OpenForestError, ReadOnlyForest, ReadOnlyJournal};

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

/// A forest, unless it lacks values only because the program that has it open has trimmed their records meanwhile.
pub(crate) fn unless_removed(forest: ReadOnlyForest) -> Result<ReadOnlyForest, Failure> {
    let lacks = forest.stats().unreadable_blobs > 0;
    match lacks && !forest.journal().is_whole() {
        true => Err(removed()),
        false => Ok(forest),
    }
}

pub(crate) fn removed() -> Failure {
    let text = "the program that has the forest open has removed records meanwhile; do it again.";
    Failure::Failed(text.to_owned())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]
mod tests {
    use std::fs;

    use weald_forest::Forest;
    use weald_journal::{DiskForest, Settings};

    use super::*;

    #[test]
    fn a_value_whose_segment_a_trim_has_removed_is_no_damaged_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let forest = block_on(DiskForest::open(path)).unwrap();
        let tree = block_on(forest.create("t")).unwrap();
        let mut edit = tree.edit();
        edit.put_erasable(edit.root(), "value", "erasable").unwrap();
        block_on(edit.commit()).unwrap();
        block_on(forest.checkpoint()).unwrap();
        drop((tree, forest));
        // What the last opening has written is always read.
        let forest = block_on(DiskForest::open(path)).unwrap();
        block_on(forest.checkpoint()).unwrap();
        drop(forest);
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let segments = files.map(|entry| entry.path());
        let segments = segments.filter(|path| path.extension().is_some_and(|it| it == "segment"));
        let oldest = segments.min().unwrap();
        let whole = fs::read(&oldest).unwrap();
        // The frame with the bytes, by its length and kind.
        let mut words = whole.windows(4);
        let at = words.position(|word| word == [24 + 8 + 16, 0, 0, 0x60]);
        let mut damaged = whole.clone();
        damaged[at.unwrap() + 40] ^= 1;
        fs::write(&oldest, damaged).unwrap();
        let settings = Settings::new().skip_damaged_values();
        let open = || ReadOnlyForest::open_sealed(path, &settings, Forest::builder);
        let forest = block_on(open()).unwrap();
        assert_eq!(forest.stats().unreadable_blobs, 1);
        assert!(unless_removed(forest).is_ok());
        let forest = block_on(open()).unwrap();
        fs::remove_file(oldest).unwrap();
        let told = unless_removed(forest);
        assert!(matches!(told, Err(Failure::Failed(text)) if text.contains("removed records")));
    }
}
