//! The list of segments at the end of a checkpoint: all segments before the checkpoint's own, and where each of them
//! ends. So an opening looks at no segment before the newest checkpoint, however many there are. The list also has the
//! number of the key file, because an opening does not see which records before the checkpoint needed keys.
//! `docs/journal.md` has the bytes.
//!
//! - It is read from the end of the file, so nobody need read the checkpoint for it.
//! - It has a check of its own, over the journal's number and the checkpoint's position as well.
//! - A checkpoint that was written before there were lists has none: then the heads of all segments tell the same.

use crc32c::{crc32c, crc32c_append};
use weald_forest::journal::Position;

use crate::error::{Damage, Unreadable};
use crate::medium::{Medium, MediumFile, read_some};
use crate::names;
use crate::place::Place;

const MAGIC: [u8; 8] = *b"WEALDS\0\x01";

/// The length of a position.
const EACH: usize = 16;

/// What follows the ends: the end of the last segment that was removed, the key file, how many segments there are, the
/// check, the magic bytes.
const REST: usize = EACH + 8 + 8 + 4 + 8;

/// The segments before one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentList {
    /// The least number that the newest key file has.
    pub(crate) keys: u64,
    /// The end of the last segment that was removed; the default, if none was.
    pub(crate) removed: Position,
    /// Where each segment ends, oldest first.
    pub(crate) ends: Vec<Place>,
}

impl SegmentList {
    /// Where the journal before the checkpoint's own segment ends, as the head of that segment says it.
    pub(crate) fn end(&self) -> Place {
        let last = self.ends.last().copied();
        last.unwrap_or_else(|| Place::of(self.removed))
    }

    pub(crate) fn write(&self, journal: u128, at: Position) -> Vec<u8> {
        let ends = self.ends.iter().map(|end| end.position());
        let positions = ends.chain(std::iter::once(self.removed));
        let mut bytes: Vec<u8> = positions.flat_map(|it| it.0.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.keys.to_le_bytes());
        bytes.extend_from_slice(&(self.ends.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&check(journal, at, &bytes).to_le_bytes());
        bytes.extend_from_slice(&MAGIC);
        bytes
    }

    /// The list of the checkpoint of a position; `None`, if it has none.
    pub(crate) fn read(
        medium: &dyn Medium,
        journal: u128,
        at: Position,
    ) -> Result<Option<Self>, Unreadable> {
        let name = names::checkpoint(at);
        let file = medium.open(&name)?;
        let len = file.len()?;
        let Some(bytes) = list_in(&*file, len)? else {
            return Ok(None);
        };
        let list = bytes.and_then(|bytes| Self::of(&bytes, journal, at));
        let damage = Damage {
            file: name,
            offset: len,
            what: "the list of segments before its end is not valid",
        };
        list.map(Some).ok_or_else(|| damage.into())
    }

    fn of(bytes: &[u8], journal: u128, at: Position) -> Option<Self> {
        let (checked, rest) = bytes.split_at_checked(bytes.len().checked_sub(4 + 8)?)?;
        if rest[..4] != check(journal, at, checked).to_le_bytes() {
            return None;
        }
        // The last sixteen bytes are the key file and the count.
        let (positions, _) = checked.as_chunks::<EACH>();
        let (last, positions) = positions.split_last()?;
        let keys = u64::from_le_bytes(*last.first_chunk()?);
        let mut positions = positions
            .iter()
            .map(|it| Position(u128::from_le_bytes(*it)));
        let removed = positions.next_back()?;
        let ends: Vec<_> = positions.map(Place::of).collect();
        // A list with a right check is as it was written; this holds whoever wrote it.
        let own = Place::of(at).segment;
        let segments = ends.iter().map(|end| end.segment);
        let is_before_own = ends.last().is_none_or(|last| last.segment < own);
        let first = ends.first().map_or(own, |first| first.segment);
        let is_ordered = segments.is_sorted_by(|one, next| one < next);
        let is_behind_removed = Place::of(removed).segment < first;
        (is_before_own && is_ordered && is_behind_removed).then_some(Self {
            keys,
            removed,
            ends,
        })
    }
}

fn check(journal: u128, at: Position, bytes: &[u8]) -> u32 {
    let check = crc32c(&journal.to_le_bytes());
    crc32c_append(crc32c_append(check, &at.0.to_le_bytes()), bytes)
}

/// The bytes of the list at the end of a file; none in them, if the file is too short for its list.
fn list_in(file: &dyn MediumFile, len: u64) -> std::io::Result<Option<Option<Vec<u8>>>> {
    let Some(begin) = len.checked_sub(REST as u64) else {
        return Ok(None);
    };
    let rest = read_some(file, begin, REST)?;
    // A checkpoint without a list ends with four bytes of 255 and a check.
    if !rest.ends_with(&MAGIC) || rest.len() < REST {
        return Ok(None);
    }
    let count = rest[EACH + 8..].first_chunk();
    let count = count.map_or(0, |count| u64::from_le_bytes(*count));
    let long = count
        .saturating_mul(EACH as u64)
        .saturating_add(REST as u64);
    let begin = len.checked_sub(long).zip(usize::try_from(long).ok());
    let bytes = begin.map(|(begin, long)| read_some(file, begin, long));
    bytes.transpose().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::SegmentId;
    use crate::simulated::SimulatedDisk;

    fn end(epoch: u64, index: u32, offset: u32) -> Place {
        let segment = SegmentId { epoch, index };
        Place { segment, offset }
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_no_bit_of_it_may_change() {
        let at = end(9, 3, 777).position();
        let lists = [
            Vec::new(),
            vec![end(7, 1, 128), end(7, 2, 500), end(9, 2, 4000)],
        ];
        for ends in lists {
            let removed = end(5, 6, 99).position();
            let keys = 3;
            let list = SegmentList {
                keys,
                removed,
                ends,
            };
            let disk = SimulatedDisk::new();
            // As behind the end of a checkpoint.
            let mut bytes = [&[255; 8][..], &[1, 2, 3, 4]].concat();
            let put = |bytes: &[u8]| disk.set_file(&names::checkpoint(at), Some(bytes));
            put(&bytes);
            assert_eq!(SegmentList::read(&disk, 5, at).unwrap(), None);
            let begin = bytes.len();
            bytes.extend(list.write(5, at));
            put(&bytes);
            assert_eq!(SegmentList::read(&disk, 5, at).unwrap(), Some(list));
            assert!(SegmentList::read(&disk, 6, at).is_err(), "another journal");
            for bit in begin * 8..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                put(&bytes);
                let read = SegmentList::read(&disk, 5, at);
                // Without the magic bytes it is no list.
                let is_in_magic = bit / 8 >= bytes.len() - MAGIC.len();
                assert!(
                    matches!(read, Ok(None)) == is_in_magic,
                    "bit {bit}: {read:?}"
                );
                assert!(read.is_err() != is_in_magic, "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_list_that_is_in_no_order_is_damage() {
        let at = end(9, 3, 777).position();
        let disk = SimulatedDisk::new();
        let wrong = [
            (end(0, 0, 0), vec![end(9, 2, 128), end(9, 1, 128)]),
            (end(0, 0, 0), vec![end(9, 3, 128)]),
            (end(8, 1, 128), vec![end(7, 1, 128)]),
            (end(9, 3, 128), Vec::new()),
        ];
        for (removed, ends) in wrong {
            let removed = removed.position();
            let list = SegmentList {
                keys: 0,
                removed,
                ends,
            };
            let bytes = list.write(5, at);
            disk.set_file(&names::checkpoint(at), Some(&bytes));
            assert!(SegmentList::read(&disk, 5, at).is_err());
        }
    }
}
