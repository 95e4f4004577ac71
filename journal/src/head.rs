//! The head of a segment: 128 bytes that say which segment it is, and where the journal before it ends.
//!
//! The head of an opening's first segment is the cut: whatever lies behind that end in older segments does not count.

use crc32c::crc32c;
use weald_forest::CommitId;
use weald_forest::journal::Position;

use crate::place::{Place, SegmentId};

/// The length of a head; frames begin behind it.
pub(crate) const HEAD: u32 = 128;

const MAGIC: [u8; 8] = *b"WEALDJ\0\x01";

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) segment: SegmentId,
    /// The length of the file.
    pub(crate) capacity: u32,
    /// A random number, chosen when the journal was created.
    pub(crate) journal: u128,
    /// Where the segments before end; the default, if there is none.
    pub(crate) before: Place,
    /// The last record before this segment.
    pub(crate) last: Option<(Position, CommitId)>,
    /// The number of the key file when this opening began; 0, if there was none.
    pub(crate) keys: u64,
}

impl Head {
    pub(crate) fn write(&self) -> [u8; HEAD as usize] {
        let mut bytes = [0; HEAD as usize];
        let (position, id) = self.last.unwrap_or((Position::default(), CommitId(0)));
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.segment.epoch.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.segment.index.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.capacity.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.journal.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.before.position().0.to_le_bytes());
        bytes[56..72].copy_from_slice(&position.0.to_le_bytes());
        bytes[72..88].copy_from_slice(&id.0.to_le_bytes());
        bytes[88..96].copy_from_slice(&self.keys.to_le_bytes());
        let check = crc32c(&bytes[..124]);
        bytes[124..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The number of the format, if these bytes begin with a head of a later one: all formats have it in the same
    /// place, and the check, too.
    pub(crate) fn unknown_format(bytes: &[u8]) -> Option<u8> {
        let bytes: &[u8; HEAD as usize] = bytes.first_chunk()?;
        let check = u32::from_le_bytes(*bytes[124..].first_chunk()?);
        let (magic, format) = (&bytes[..7], bytes[7]);
        let is_later = magic == &MAGIC[..7] && format > MAGIC[7];
        (is_later && crc32c(&bytes[..124]) == check).then_some(format)
    }

    /// The head with which these bytes begin.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD as usize] = bytes.first_chunk()?;
        let check = u32::from_le_bytes(*bytes[124..].first_chunk()?);
        if bytes[..8] != MAGIC || crc32c(&bytes[..124]) != check {
            return None;
        }
        let long = |at: usize| bytes[at..].first_chunk().map(|it| u128::from_le_bytes(*it));
        let short = |at: usize| bytes[at..].first_chunk().map(|it| u32::from_le_bytes(*it));
        let segment = SegmentId {
            epoch: u64::from_le_bytes(*bytes[8..].first_chunk()?),
            index: short(16)?,
        };
        let last = Position(long(56)?);
        Some(Self {
            segment,
            capacity: short(20)?,
            journal: long(24)?,
            before: Place::of(Position(long(40)?)),
            last: (last != Position::default()).then_some((last, CommitId(long(72)?))),
            keys: u64::from_le_bytes(*bytes[88..].first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_no_bit_of_it_may_change() {
        let segment = SegmentId { epoch: 9, index: 4 };
        let head = Head {
            segment,
            capacity: 1 << 20,
            journal: 77 << 70,
            before: Place {
                segment: SegmentId { epoch: 8, index: 1 },
                offset: 500,
            },
            last: Some((Position(3 << 64), CommitId(5))),
            keys: 6,
        };
        let mut bytes = head.write();
        assert_eq!(Head::read(&bytes), Some(head));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::read(&bytes), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
