//! The places of what is written ahead, and of its record once that is appended. `ahead.rs` says how.

use std::sync::Arc;

use weald_forest::journal::{Position, Record};

use crate::ahead::{Asked, WrittenAhead};
use crate::body::Share;
use crate::frame::{HEADER, Kind};
use crate::head::HEAD;
use crate::item::Item;
use crate::log::Log;
use crate::place::{Place, SegmentId};

/// Others keep the rest of the current segment. If that is less than one part in so many of a segment, they have the
/// next one as well.
const IN_FRONT: u32 = 4;

impl Log {
    /// What an author asks for whose record changes this; `None`, if that is too short to be written ahead: it is
    /// written as quickly as others can wait for.
    pub(crate) fn ask_ahead(&self, number: u64, changes: &[Arc<Vec<u8>>]) -> Option<Asked> {
        let bytes = changes.iter().map(|piece| piece.len()).sum();
        let begin = Place {
            // Not the first one, which may be shorter.
            segment: SegmentId {
                index: 2,
                ..self.cursor.segment
            },
            offset: HEAD,
        };
        if bytes < self.head.capacity as usize {
            return None;
        }
        let frames = self.places_for((begin, Share::Most), (bytes, u32::MAX))?;
        let (last, ..) = frames.last()?;
        Some(Asked {
            number,
            changes: Arc::new(changes.to_vec()),
            bytes,
            // One more for those who go on in front of it, and one because of what is left to records that erase.
            segments: last.segment.index + 1,
        })
    }

    /// Whether there are enough segments for what an author asks for.
    pub(crate) fn has_segments(&self, asked: &Asked) -> bool {
        self.ahead.is_none() && self.prepared - self.cursor.segment.index >= asked.segments
    }

    /// Takes places for what is to be written ahead.
    pub(crate) fn begin_ahead(&mut self, asked: Asked) -> Option<()> {
        let next = self.next_segment(self.cursor, self.prepared)?;
        let is_much = self.space(self.cursor) >= (self.head.capacity / IN_FRONT) as usize;
        let front = if is_much { self.cursor } else { next };
        let begin = self.next_segment(front, self.prepared)?;
        let frames = self.places_for((begin, Share::Most), (asked.bytes, self.prepared))?;
        let mut ends: Vec<Place> = Vec::new();
        let mut items = Vec::new();
        for (place, kind, part) in frames {
            let end = place.plus(HEADER + part.1);
            match ends.last_mut() {
                Some(last) if last.segment == end.segment => *last = end,
                _ => ends.push(end),
            }
            let kind = match kind {
                Kind::First => Kind::Middle,
                Kind::Whole => Kind::Last,
                kind => kind,
            };
            items.push(Item::Frame(place, kind, Arc::clone(&asked.changes), part));
        }
        let ahead = WrittenAhead::begin(asked, begin.segment, (items, ends));
        self.ahead = Some(ahead);
        Some(())
    }

    /// Gives up what is written ahead, whose segments count as prepared no longer. They are to be removed.
    pub(crate) fn give_up_ahead(&mut self) -> Option<WrittenAhead> {
        let ahead = self.ahead.take()?;
        self.prepared = ahead.in_front();
        Some(ahead)
    }

    /// Gives a record its place that was written ahead; with how many bytes.
    pub(crate) fn put_ahead(&mut self, record: &Record<'_>) -> Option<(Position, usize)> {
        let ahead = self.ahead.as_ref()?;
        if !ahead.is_what_changes_in(record) {
            return None;
        }
        let bytes = ahead.asked.bytes;
        let head = record.len() - bytes;
        if head > self.limits().0 {
            return None;
        }
        if self.batch.items.is_empty() {
            self.put_mark();
        }
        // It is in the segment in front, because a record begins in a segment or goes on from the one before. Behind it
        // comes the rest, so it may take what is left to records that erase.
        let last = self.last_usable();
        let is_there = self.cursor.segment.index == last;
        let next = || self.next_segment(self.cursor, last);
        let front = if is_there { Some(self.cursor) } else { next() };
        let first = self.place_for((front?, Share::All), head)?;
        let ahead = self.ahead.take()?;
        self.put_frame((first, Kind::First), head, |out| record.write_head(out));
        for end in ahead.ends {
            self.roll_to(Place {
                offset: HEAD,
                ..end
            });
            self.cursor = end;
        }
        self.last = Some((self.cursor.position(), record.id));
        Some((self.cursor.position(), bytes))
    }
}
