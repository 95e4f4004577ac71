//! A place in the journal: a segment and an offset in it; and how it becomes a position of the contract.
//!
//! The epoch is the opening that wrote the segment. It is never used twice, so neither is a position.

use weald_forest::journal::Position;

/// A segment: the nth file of an opening, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId {
    pub(crate) epoch: u64,
    pub(crate) index: u32,
}

impl SegmentId {
    /// No segment has the last index (see `names.rs`), so there is always a next one.
    pub(crate) fn next(self) -> Self {
        Self {
            index: self.index.saturating_add(1),
            ..self
        }
    }
}

/// A byte of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: SegmentId,
    pub(crate) offset: u32,
}

impl Place {
    pub(crate) fn position(self) -> Position {
        let SegmentId { epoch, index } = self.segment;
        Position(u128::from(epoch) << 64 | u128::from(index) << 32 | u128::from(self.offset))
    }

    pub(crate) fn of(position: Position) -> Self {
        let half = |at: u32| u32::try_from(position.0 >> at & 0xFFFF_FFFF).unwrap_or(u32::MAX);
        Self {
            segment: SegmentId {
                epoch: u64::try_from(position.0 >> 64).unwrap_or(u64::MAX),
                index: half(32),
            },
            offset: half(0),
        }
    }

    /// The first byte of a segment's file.
    pub(crate) fn begin_of(segment: SegmentId) -> Self {
        Self { segment, offset: 0 }
    }

    pub(crate) fn plus(self, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).expect("a frame is shorter than a segment");
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_position_and_back() {
        let segment = SegmentId {
            epoch: u64::MAX - 3,
            index: 0xFEDC_BA98,
        };
        let place = Place {
            segment,
            offset: 0x8000_0001,
        };
        assert_eq!(Place::of(place.position()), place);
        let next = Place {
            segment: segment.next(),
            offset: 0,
        };
        assert!(place.position() < next.position());
    }
}
