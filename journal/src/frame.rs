//! A frame: what a segment is made of. `docs/journal.md` has the bytes.
//!
//! - The header has a check of its own, so a damaged length is told from a damaged body.
//! - Both checks begin with the place (epoch, segment, offset), so a frame is valid where it was written and nowhere
//!   else.

use crc32c::{crc32c, crc32c_append};
use weald_forest::journal::Position;

use crate::place::Place;

/// The length of a frame's header.
pub(crate) const HEADER: usize = 12;

/// The longest body.
pub(crate) const MAX_BODY: usize = 1 << 20;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A record.
    Whole = 1,
    /// The beginning of a record that has several frames.
    First = 2,
    /// More of it.
    Middle = 3,
    /// Its end.
    Last = 4,
    /// A position that was durable when this was written.
    Mark = 5,
    /// Sealed erasable bytes, or a part of them.
    Blob = 6,
    /// Erasable bytes that the next record erases.
    Erasure = 7,
}

impl Kind {
    fn of(code: u32) -> Option<Self> {
        [
            Self::Whole,
            Self::First,
            Self::Middle,
            Self::Last,
            Self::Mark,
            Self::Blob,
            Self::Erasure,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == code)
    }
}

/// A valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) len: usize,
    check: u32,
}

/// The check of a place and the first word of a header.
fn seed(place: Place, word: [u8; 4]) -> u32 {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&place.segment.epoch.to_le_bytes());
    bytes[8..12].copy_from_slice(&place.segment.index.to_le_bytes());
    bytes[12..16].copy_from_slice(&place.offset.to_le_bytes());
    bytes[16..].copy_from_slice(&word);
    crc32c(&bytes)
}

/// The header of a frame whose body is in pieces.
pub(crate) fn header<'a>(
    place: Place,
    kind: Kind,
    body: impl Iterator<Item = &'a [u8]> + Clone,
) -> [u8; HEADER] {
    let len: usize = body.clone().map(<[u8]>::len).sum();
    debug_assert!(len <= MAX_BODY, "a body of {len} bytes");
    let len = u32::try_from(len).expect("a body has at most a mebibyte");
    let word = (len | (kind as u32) << 28).to_le_bytes();
    let seed = seed(place, word);
    let check = body.fold(seed, crc32c_append);
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&word);
    bytes[4..8].copy_from_slice(&check.to_le_bytes());
    let own = crc32c_append(seed, &bytes[4..8]);
    bytes[8..].copy_from_slice(&own.to_le_bytes());
    bytes
}

impl Header {
    /// The header at the beginning of these bytes, if it is valid.
    pub(crate) fn read(place: Place, bytes: &[u8]) -> Option<Self> {
        let (word, rest) = bytes.split_first_chunk::<4>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let own = u32::from_le_bytes(*rest.first_chunk::<4>()?);
        let number = u32::from_le_bytes(*word);
        let kind = Kind::of(number >> 28)?;
        let len = usize::try_from(number & 0x0FFF_FFFF).ok()?;
        let is_valid = len <= MAX_BODY && crc32c_append(seed(place, *word), check) == own;
        let check = u32::from_le_bytes(*check);
        is_valid.then_some(Self { kind, len, check })
    }

    /// Whether this is the body.
    pub(crate) fn fits(&self, place: Place, body: &[u8]) -> bool {
        let len = u32::try_from(self.len).expect("a valid length");
        let word = (len | (self.kind as u32) << 28).to_le_bytes();
        body.len() == self.len && crc32c_append(seed(place, word), body) == self.check
    }
}

/// The length of a whole mark.
pub(crate) const MARK: usize = HEADER + 16;

/// A frame that says that everything up to a position is durable.
pub(crate) fn mark(place: Place, durable: Position) -> [u8; MARK] {
    let body = durable.0.to_le_bytes();
    let mut bytes = [0; MARK];
    bytes[..HEADER].copy_from_slice(&header(place, Kind::Mark, std::iter::once(&body[..])));
    bytes[HEADER..].copy_from_slice(&body);
    bytes
}

/// What a mark says.
pub(crate) fn marked(body: &[u8]) -> Option<Position> {
    Some(Position(u128::from_le_bytes(body.try_into().ok()?)))
}

/// The valid mark at the beginning of these bytes.
pub(crate) fn mark_at(place: Place, bytes: &[u8]) -> Option<Position> {
    let bytes = bytes.get(..MARK)?;
    // A mark begins at few positions, so the cheapest test comes first.
    let word: u32 = 16 | (Kind::Mark as u32) << 28;
    if bytes[..4] != word.to_le_bytes() {
        return None;
    }
    let header = Header::read(place, bytes)?;
    let body = &bytes[HEADER..];
    header.fits(place, body).then(|| marked(body)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::SegmentId;

    fn place(offset: u32) -> Place {
        Place {
            segment: SegmentId { epoch: 7, index: 2 },
            offset,
        }
    }

    #[test]
    fn a_frame_is_valid_at_its_place_only_and_no_bit_of_it_may_change() {
        let body = b"a body";
        let mut bytes = header(
            place(300),
            Kind::Whole,
            [&body[..2], &body[2..]].into_iter(),
        )
        .to_vec();
        bytes.extend_from_slice(body);
        let is_valid = |place: Place, bytes: &[u8]| {
            Header::read(place, bytes).is_some_and(|header| header.fits(place, &bytes[HEADER..]))
        };
        assert!(is_valid(place(300), &bytes));
        assert!(!is_valid(place(301), &bytes));
        let other = SegmentId { epoch: 8, index: 2 };
        let elsewhere = Place {
            segment: other,
            offset: 300,
        };
        assert!(!is_valid(elsewhere, &bytes));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_valid(place(300), &bytes), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Header::read(place(0), &[0; HEADER]).is_none());
    }

    #[test]
    fn a_mark_says_its_position() {
        let bytes = mark(place(128), Position(77 << 64 | 5));
        assert_eq!(mark_at(place(128), &bytes), Some(Position(77 << 64 | 5)));
        assert_eq!(mark_at(place(129), &bytes), None);
        assert_eq!(mark_at(place(128), &bytes[..MARK - 1]), None);
    }
}
