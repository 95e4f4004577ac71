//! A checkpoint in a file of its own: written beside the journal, synced, then named. `docs/journal.md` has the bytes.

use std::io;

use crc32c::crc32c_append;
use weald_forest::journal::{BlobId, Checkpoint, Position, ReadError, StoredCheckpoint};

use crate::error::{Damage, Unreadable};
use crate::medium::{Medium, MediumFile, for_room, write_whole};
use crate::names;
use crate::segment_list::SegmentList;
use crate::unfinished;

const MAGIC: [u8; 8] = *b"WEALDC\0\x01";

/// The length of what precedes the ids of the blobs: the magic bytes, the journal, the position, how many ids.
const HEAD: usize = 8 + 16 + 16 + 8;

/// The length that marks the end.
const END: u64 = u64::MAX;

/// Writes one part after the other, each with the check of everything up to it.
struct Writer {
    file: Box<dyn MediumFile>,
    offset: u64,
    check: u32,
}

impl Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_whole(&*self.file, bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        self.check = crc32c_append(self.check, bytes);
        Ok(())
    }

    fn write_check(&mut self) -> io::Result<()> {
        write_whole(&*self.file, &self.check.to_le_bytes(), self.offset)?;
        self.offset += 4;
        Ok(())
    }

    fn write_pieces(
        &mut self,
        head: &[u8],
        (pieces, list): (impl Iterator<Item = Vec<u8>>, &[u8]),
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.write(head)?;
        self.write_check()?;
        for piece in pieces {
            if !goes_on() {
                return Err(io::Error::other("the forest is closed"));
            }
            self.write(&(piece.len() as u64).to_le_bytes())?;
            self.write(&piece)?;
            self.write_check()?;
        }
        self.write(&END.to_le_bytes())?;
        self.write_check()?;
        // The list stands behind the end, where only a reader that looks for it finds it.
        self.write(list)?;
        self.file.sync()
    }
}

/// Writes a checkpoint with the list of the segments before its own, and makes it durable under its name.
///
/// Returns its length. `goes_on` is asked again and again, and stops it. `settle` comes before it counts.
pub(crate) fn put(
    medium: &dyn Medium,
    (journal, segments): (u128, &SegmentList),
    (checkpoint, goes_on): (Checkpoint, &dyn Fn() -> bool),
    settle: &dyn Fn() -> io::Result<()>,
) -> io::Result<u64> {
    let Checkpoint { at, blobs, pieces } = checkpoint;
    let name = names::checkpoint(at);
    let mut head = Vec::with_capacity(HEAD + blobs.len() * 16);
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&journal.to_le_bytes());
    head.extend_from_slice(&at.0.to_le_bytes());
    head.extend_from_slice(&(blobs.len() as u64).to_le_bytes());
    for id in blobs {
        head.extend_from_slice(&id.0.to_le_bytes());
    }
    let list = segments.write(journal, at);
    let len = unfinished::make(medium, &name, |unfinished| {
        let mut writer = Writer {
            file: medium.create(unfinished)?,
            offset: 0,
            check: 0,
        };
        let written = writer.write_pieces(&head, (pieces, &list), goes_on);
        written.map_err(for_room(&name, writer.offset))?;
        settle()?;
        Ok(writer.offset)
    })?;
    medium.sync_names()?;
    Ok(len)
}

/// Reads one part after the other; nothing is believed before its check is right.
struct Reader {
    name: String,
    file: Box<dyn MediumFile>,
    offset: u64,
    check: u32,
    is_over: bool,
}

impl Reader {
    fn damaged(&self) -> Unreadable {
        Unreadable::Damaged(Damage {
            file: self.name.clone(),
            offset: self.offset,
            what: "it is no checkpoint of this journal",
        })
    }

    fn read(&mut self, len: u64) -> Result<Vec<u8>, Unreadable> {
        let all = self.file.len()?;
        let is_there = self.offset.checked_add(len).is_some_and(|end| end <= all);
        let len = usize::try_from(len).ok().filter(|_| is_there);
        let mut bytes = vec![0; len.ok_or_else(|| self.damaged())?];
        let read = self.file.read_at(&mut bytes, self.offset)?;
        if read < bytes.len() {
            return Err(self.damaged());
        }
        self.offset += bytes.len() as u64;
        self.check = crc32c_append(self.check, &bytes);
        Ok(bytes)
    }

    fn read_check(&mut self) -> Result<(), Unreadable> {
        let check = self.check;
        let is_right = self.read(4)? == check.to_le_bytes();
        self.check = check;
        if is_right {
            Ok(())
        } else {
            Err(self.damaged())
        }
    }

    fn read_number(&mut self) -> Result<u64, Unreadable> {
        let bytes = self.read(8)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    fn piece(&mut self) -> Result<Option<Vec<u8>>, Unreadable> {
        let len = self.read_number()?;
        let piece = if len == END {
            None
        } else {
            Some(self.read(len)?)
        };
        self.read_check()?;
        Ok(piece)
    }
}

impl Iterator for Reader {
    type Item = Result<Vec<u8>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let piece = self.piece().map_err(ReadError::from).transpose();
        self.is_over = !matches!(piece, Some(Ok(_)));
        piece
    }
}

/// The beginning of the checkpoint of a position: the ids of its blobs. The pieces follow.
fn open(
    medium: &dyn Medium,
    journal: u128,
    at: Position,
) -> Result<(Vec<BlobId>, Reader), Unreadable> {
    let name = names::checkpoint(at);
    let mut reader = Reader {
        file: medium.open(&name)?,
        name,
        offset: 0,
        check: 0,
        is_over: false,
    };
    let head = reader.read(HEAD as u64)?;
    let is_it = head[..8] == MAGIC
        && head[8..24] == journal.to_le_bytes()
        && head[24..40] == at.0.to_le_bytes();
    if !is_it {
        return Err(reader.damaged());
    }
    let count = head[40..]
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let ids = reader.read(count.saturating_mul(16))?;
    reader.read_check()?;
    let (ids, _) = ids.as_chunks();
    let ids = ids.iter().map(|id| BlobId(u128::from_le_bytes(*id)));
    Ok((ids.collect(), reader))
}

/// Reads the checkpoint of a position.
pub(crate) fn get(
    medium: &dyn Medium,
    journal: u128,
    at: Position,
) -> Result<StoredCheckpoint, Unreadable> {
    let (_, reader) = open(medium, journal, at)?;
    let pieces = Box::new(reader);
    Ok(StoredCheckpoint { at, pieces })
}

/// Reads a checkpoint to its end, so that its damage is known.
pub(crate) fn check(medium: &dyn Medium, journal: u128, at: Position) -> Result<(), Unreadable> {
    let (_, mut reader) = open(medium, journal, at)?;
    while reader.piece()?.is_some() {}
    SegmentList::read(medium, journal, at).map(drop)
}

/// The blobs to which the checkpoint of a position refers.
pub(crate) fn blobs(
    medium: &dyn Medium,
    journal: u128,
    at: Position,
) -> Result<Vec<BlobId>, Unreadable> {
    Ok(open(medium, journal, at)?.0)
}
