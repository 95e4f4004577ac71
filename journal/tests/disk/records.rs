//! Records for journals, and what a test knows of them.

#[path = "../../src/standing.rs"]
mod standing;

use std::sync::Arc;
use std::time::SystemTime;

use standing::Standing;
use weald_forest::journal::{
    AppendError, Appended, Checkpoint, CheckpointError, Entry, Journal, Level, Position, ReadError,
    Record,
};
use weald_forest::{CommitId, Version};
use weald_journal::{DiskJournal, OpenError, Settings, SimulatedDisk, Work};

/// Changes of this length. They have their number in them, and are not all the same.
pub(crate) fn changes(number: u64, len: usize) -> Vec<Arc<Vec<u8>>> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..len).map(|at| u8::try_from((at as u64 * 7 + number) % 251).unwrap()));
    bytes.truncate(len);
    let rest = bytes.split_off(len / 3);
    vec![Arc::new(bytes), Arc::new(rest)]
}

pub(crate) fn with<T>(number: u64, len: usize, use_it: impl FnOnce(&Record<'_>) -> T) -> T {
    use_it(&Record {
        version: Version {
            incarnation: 1,
            number,
        },
        id: CommitId(number.into()),
        time: SystemTime::UNIX_EPOCH,
        digest: None,
        bytes: b"by a test",
        changes: &changes(number, len),
        blobs: &[],
        erases: None,
    })
}

pub(crate) fn bytes(number: u64, len: usize) -> Vec<u8> {
    with(number, len, |record| {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        bytes
    })
}

pub(crate) fn append(
    journal: &DiskJournal,
    number: u64,
    len: usize,
) -> Result<Appended, AppendError> {
    with(number, len, |record| journal.append(record))
}

/// Appends a record for which there is room.
pub(crate) fn must_append(journal: &DiskJournal, number: u64, len: usize) -> Position {
    match append(journal, number, len) {
        Ok(Appended::Accepted(position)) => position,
        Ok(Appended::Sent(answer)) => {
            while journal.work(Work::Prepare) || journal.work(Work::Write) {}
            pollster::block_on(answer).unwrap()
        }
        Err(error) => panic!("it was refused: {error}"),
    }
}

pub(crate) fn small() -> Settings {
    let settings = Settings::new().segment(2048).by_hand();
    settings.clock(Arc::new(Standing))
}

pub(crate) fn open(disk: &SimulatedDisk) -> Result<DiskJournal, OpenError> {
    DiskJournal::open_on(disk.clone(), small())
}

/// Everything that is written.
pub(crate) fn all(journal: &DiskJournal) -> Vec<Entry> {
    while journal.work(Work::Write) {}
    pollster::block_on(journal.read(Position::default(), usize::MAX)).unwrap()
}

pub(crate) fn flush(journal: &DiskJournal) {
    while journal.work(Work::Prepare) || journal.work(Work::Write) || journal.work(Work::Sync) {}
}

pub(crate) fn is_durable(journal: &DiskJournal, position: Position) -> bool {
    journal.reached(Level::Durable) >= position
}

pub(crate) fn put_checkpoint(
    journal: &DiskJournal,
    at: Position,
    pieces: &[&[u8]],
) -> Result<(), CheckpointError> {
    let pieces: Vec<_> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let (pieces, blobs) = (Box::new(pieces.into_iter()), Vec::new());
    pollster::block_on(journal.put_checkpoint(Checkpoint { at, blobs, pieces }))
}

/// The newest checkpoint, if there is one.
pub(crate) fn read_checkpoint(
    journal: &DiskJournal,
) -> Result<Option<(Position, Vec<u8>)>, ReadError> {
    let Some(found) = pollster::block_on(journal.checkpoint())? else {
        return Ok(None);
    };
    let pieces: Result<Vec<_>, _> = found.pieces.collect();
    Ok(Some((found.at, pieces?.concat())))
}
