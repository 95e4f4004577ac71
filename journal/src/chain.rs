//! The segments that make the journal, oldest first, and where each of them ends.

use std::collections::BTreeMap;

use weald_forest::journal::Position;

use crate::head::HEAD;
use crate::place::{Place, SegmentId};
use crate::segment_list::SegmentList;

/// The end of the segment that is being written.
pub(crate) const OPEN: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    ends: BTreeMap<SegmentId, u32>,
    /// The end of the last segment that was removed.
    removed: Position,
    /// Everything up to here was trimmed.
    pub(crate) trimmed: Position,
}

impl Chain {
    /// The segments of a list that are still there: they begin behind those that were removed.
    pub(crate) fn of(list: SegmentList) -> Self {
        let SegmentList { removed, ends, .. } = list;
        let ends = ends.into_iter().map(|end| (end.segment, end.offset));
        Self {
            ends: ends.collect(),
            removed,
            trimmed: removed,
        }
    }

    /// Without a segment yet, behind what was removed.
    pub(crate) fn behind_removed(end: Place) -> Self {
        Self::of(SegmentList {
            removed: end.position(),
            ..SegmentList::default()
        })
    }

    /// The segments before one that begins behind them.
    pub(crate) fn before(&self, segment: SegmentId) -> SegmentList {
        let ends = self.ends.range(..segment);
        let ends = ends.map(|(&segment, &offset)| Place { segment, offset });
        SegmentList {
            keys: 0,
            removed: self.removed,
            ends: ends.collect(),
        }
    }

    /// Adds a segment behind the others.
    pub(crate) fn push(&mut self, segment: SegmentId) {
        self.ends.insert(segment, OPEN);
    }

    /// The segment ends here.
    pub(crate) fn end_at(&mut self, place: Place) {
        self.ends.insert(place.segment, place.offset);
    }

    /// The journal ends here, and what was behind is not part of it.
    pub(crate) fn cut(&mut self, place: Place) {
        self.ends.retain(|segment, _| *segment <= place.segment);
        self.end_at(place);
    }

    /// Where a segment ends; `None`, if it is not part of the journal.
    fn end(&self, segment: SegmentId) -> Option<u32> {
        self.ends.get(&segment).copied()
    }

    /// Where the journal continues, if the place is the end of its segment.
    pub(crate) fn go_on(&self, place: Place) -> Option<Place> {
        let end = self.end(place.segment)?;
        (place.offset >= end)
            .then(|| self.behind(place.segment))
            .flatten()
    }

    /// The first frame behind a segment.
    pub(crate) fn behind(&self, segment: SegmentId) -> Option<Place> {
        let behind = (
            std::ops::Bound::Excluded(segment),
            std::ops::Bound::Unbounded,
        );
        let segment = *self.ends.range(behind).next()?.0;
        Some(Place {
            segment,
            offset: HEAD,
        })
    }

    /// The first frame.
    pub(crate) fn first(&self) -> Option<Place> {
        let segment = *self.ends.keys().next()?;
        Some(Place {
            segment,
            offset: HEAD,
        })
    }

    /// Whether the frames from a place on may begin within a record, whose beginning was removed.
    pub(crate) fn may_begin_within(&self, place: Place) -> bool {
        self.removed > Position::default() && self.first() == Some(place)
    }

    /// Where the frames after a position begin; `None`, if some of them were trimmed.
    pub(crate) fn after(&self, position: Position) -> Option<Place> {
        let first = self.first()?;
        let place = Place::of(position);
        if position < self.trimmed {
            return None;
        }
        Some(place.max(first))
    }

    /// The ends of all segments that are complete, oldest first.
    pub(crate) fn known_ends(&self) -> impl Iterator<Item = Place> + '_ {
        let ends = self.ends.iter().filter(|(_, offset)| **offset != OPEN);
        ends.map(|(&segment, &offset)| Place { segment, offset })
    }

    pub(crate) fn has(&self, segment: SegmentId) -> bool {
        self.ends.contains_key(&segment)
    }

    /// The segment before one, of the same opening.
    pub(crate) fn in_front_of(&self, segment: SegmentId) -> Option<SegmentId> {
        let before = self.ends.range(..segment).next_back();
        before
            .map(|(before, _)| *before)
            .filter(|before| before.epoch == segment.epoch)
    }

    /// All segments, newest first.
    pub(crate) fn newest_first(&self) -> Vec<SegmentId> {
        self.ends.keys().rev().copied().collect()
    }

    /// The segments that end at a position or before, oldest first.
    pub(crate) fn upto(&self, upto: Position) -> Vec<SegmentId> {
        let is_old = |(segment, end): &(&SegmentId, &u32)| {
            let (segment, offset) = (**segment, **end);
            Place { segment, offset }.position() <= upto
        };
        let old = self.ends.iter().take_while(is_old);
        old.map(|(id, _)| *id).collect()
    }

    /// Segments that end at a position or before are no longer read.
    pub(crate) fn trim(&mut self, upto: Position) {
        self.trimmed = self.trimmed.max(upto);
    }

    /// Forgets the first segment, whose file is removed.
    pub(crate) fn remove(&mut self, segment: SegmentId) {
        if let Some(offset) = self.ends.remove(&segment) {
            self.removed = Place { segment, offset }.position();
        }
    }
}
