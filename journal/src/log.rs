//! The end of the journal in memory: which place the next frame gets, and the bytes that are not written yet.
//!
//! - A record has its place, and so its position, before anything is written: this is arithmetic, and waits for
//!   nothing.
//! - A place lies in a segment that is prepared. A record for which there is no room waits in `waiting.rs`, and all
//!   after it, or is refused; nothing of it was written then.
//! - A record longer than [`SHORT`] is handed over, and not copied.

use std::sync::Arc;

use weald_forest::CommitId;
use weald_forest::journal::{Erasure, Position};

use crate::ahead::WrittenAhead;
use crate::blob::Sealing;
use crate::body::{Before, Body, LongBody, RecordBody, Share, frames_before};
use crate::chain::Chain;
use crate::frame::{self, HEADER, Kind, MARK, MAX_BODY};
use crate::head::{HEAD, Head};
use crate::item::Item;
use crate::place::{Place, SegmentId};
use crate::reserve;

/// A record that is longer is not copied.
pub(crate) const SHORT: usize = 64 * 1024;

/// If the rest of a segment is shorter than this, it stays empty.
const REST: usize = 4 * 1024;

/// How much of the last prepared segment other records leave to erasures; an eighth of the segment, if
/// that is less.
const FOR_ERASING: usize = 64 * 1024;

/// Bytes on their way into segments, in their order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    pub(crate) bytes: usize,
    /// The keys of the blobs among them. They are written first.
    pub(crate) keys: Vec<(Place, Sealing)>,
    /// What their records erase, with the places that say so.
    pub(crate) erasures: Vec<(Place, Erasure)>,
}

impl Batch {
    /// Whether there are finished frames in it and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        let is_bytes = |item: &Item| matches!(item, Item::Bytes(..));
        self.keys.is_empty() && self.erasures.is_empty() && self.items.iter().all(is_bytes)
    }
}

/// A frame of a long record: its first byte in the record, and its length.
pub(crate) type LongFrame = (Place, Kind, (usize, usize));

/// The end of the journal.
pub(crate) struct Log {
    /// What all heads of this opening have in common.
    pub(crate) head: Head,
    /// The length of the first segment, if it was made of the reserve.
    pub(crate) reserved: Option<u32>,
    /// Where the next frame goes.
    pub(crate) cursor: Place,
    /// The index of the last segment that is prepared.
    pub(crate) prepared: u32,
    /// No later segment has a file. Those behind the prepared ones are left of preparations that were refused.
    pub(crate) named: u32,
    /// What is written ahead of its record, in the segments behind the one that is written to.
    pub(crate) ahead: Option<WrittenAhead>,
    pub(crate) chain: Chain,
    pub(crate) batch: Batch,
    /// Bytes that have a place and are not written yet.
    pub(crate) unwritten: usize,
    /// The last record.
    pub(crate) last: Option<(Position, CommitId)>,
    /// The number of its version; 0, if nobody has looked yet.
    pub(crate) newest: u64,
    /// Everything before this place is written.
    pub(crate) written: Place,
    /// Everything before this place is durable.
    pub(crate) synced: Place,
    /// What the last mark says.
    pub(crate) marked: Position,
    pub(crate) keys: KeyRoom,
    /// A vector of an earlier batch, to be used again.
    pub(crate) buffer: Vec<u8>,
}

/// A vector that is longer is not kept.
const KEPT: usize = 1 << 20;

/// The room for keys of blobs, in bytes.
#[derive(Debug, Default)]
pub(crate) struct KeyRoom {
    /// What the key file has.
    pub(crate) free: u64,
    /// How much of that the blobs that have a place need, and have not taken yet.
    pub(crate) promised: u64,
}

/// What a record waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The next segment.
    Segment,
    /// Room for this many bytes of keys, besides what others were promised.
    Keys(u64),
}

impl Log {
    /// What a record lacks for a place; `None`, if it gets one.
    pub(crate) fn lack(&self, body: &Body) -> Option<Lack> {
        let keys = self.keys.promised + body.keys_len();
        if keys > self.keys.free && !body.blobs.is_empty() {
            return Some(Lack::Keys(keys));
        }
        let (mut place, share) = (self.cursor, body.share());
        for (_, len) in frames_before(body, self.limits().1) {
            let Some(next) = self.place_for((place, share), len) else {
                return Some(Lack::Segment);
            };
            place = next.plus(HEADER + len);
        }
        let has_room = match &body.record {
            RecordBody::Short(bytes) => self.place_for((place, share), bytes.len()).is_some(),
            RecordBody::Long(_, len) => {
                let last = self.last_usable();
                self.places_for((place, share), (*len, last)).is_some()
            }
        };
        (!has_room).then_some(Lack::Segment)
    }

    /// The longest record that is copied, and the longest body of a frame.
    pub(crate) fn limits(&self) -> (usize, usize) {
        let most = self.capacity(self.cursor.segment) as usize / 4;
        (SHORT.min(most), MAX_BODY.min(most))
    }

    /// The length of the first segment, if it is this one and was made of the reserve.
    fn reserved(&self, segment: SegmentId) -> Option<u32> {
        self.reserved.filter(|_| segment == self.head.segment)
    }

    fn capacity(&self, segment: SegmentId) -> u32 {
        self.reserved(segment).unwrap_or(self.head.capacity)
    }

    pub(crate) fn space(&self, place: Place) -> usize {
        (self.capacity(place.segment) - place.offset) as usize
    }

    fn left_for_erasing(&self, segment: SegmentId) -> usize {
        match self.reserved(segment) {
            Some(len) => reserve::left_for_erasing(len) as usize,
            None => FOR_ERASING.min(self.head.capacity as usize / 8),
        }
    }

    /// The last segment in which a record may have its place.
    pub(crate) fn last_usable(&self) -> u32 {
        self.ahead
            .as_ref()
            .map_or(self.prepared, WrittenAhead::in_front)
    }

    /// How much of that a record may take, if this is the last segment.
    fn space_for(&self, place: Place, share: Share, last: u32) -> usize {
        let is_last = place.segment.index == last;
        let left = match share {
            Share::Most if is_last => self.left_for_erasing(place.segment),
            _ => 0,
        };
        self.space(place).saturating_sub(left)
    }

    /// How many bytes of records have room in what is prepared, with what their frames take.
    pub(crate) fn room(&self) -> u64 {
        let index = self.last_usable();
        let more = index - self.cursor.segment.index;
        let segment = self.head.capacity.saturating_sub(HEAD);
        let room = u64::from(more) * u64::from(segment) + self.space(self.cursor) as u64;
        let last = SegmentId {
            index,
            ..self.cursor.segment
        };
        room.saturating_sub(self.left_for_erasing(last) as u64)
    }

    /// How much room a record of this many bytes needs at most, whatever its frames are.
    pub(crate) fn room_for(&self, bytes: usize) -> u64 {
        let frames = bytes / self.limits().1 + 2;
        let segments = bytes / self.head.capacity as usize + 2;
        (bytes + frames * HEADER + segments * REST) as u64
    }

    /// The place of a whole frame, if there is room.
    pub(crate) fn place_for(&self, (place, share): (Place, Share), body: usize) -> Option<Place> {
        let last = self.last_usable();
        let has_room = |place: &Place| HEADER + body <= self.space_for(*place, share, last);
        if has_room(&place) {
            return Some(place);
        }
        self.next_segment(place, last).filter(has_room)
    }

    pub(crate) fn next_segment(&self, place: Place, last: u32) -> Option<Place> {
        let segment = place.segment.next();
        (segment.index <= last).then_some(Place {
            segment,
            offset: HEAD,
        })
    }

    /// Goes to a place of the next segment, if it is there.
    pub(crate) fn roll_to(&mut self, place: Place) {
        if place.segment == self.cursor.segment {
            return;
        }
        let head = Head {
            segment: place.segment,
            before: self.cursor,
            last: self.last,
            ..self.head
        };
        self.chain.end_at(self.cursor);
        self.chain.push(place.segment);
        let begin = Place { offset: 0, ..place };
        self.bytes_at(begin).extend_from_slice(&head.write());
        self.batch.bytes += HEAD as usize;
        self.unwritten += HEAD as usize;
        self.cursor = place;
    }

    /// The finished bytes that end at a place.
    fn bytes_at(&mut self, place: Place) -> &mut Vec<u8> {
        let items = &mut self.batch.items;
        let goes_on = match items.last() {
            Some(Item::Bytes(begin, bytes)) => {
                begin.segment == place.segment
                    && begin.offset as usize + bytes.len() == place.offset as usize
            }
            _ => false,
        };
        if !goes_on {
            let buffer = std::mem::take(&mut self.buffer);
            items.push(Item::Bytes(place, buffer));
        }
        match items.last_mut() {
            Some(Item::Bytes(_, bytes)) => bytes,
            _ => unreachable!("it was pushed"),
        }
    }

    /// Keeps the vector of a batch that was written, so that the next batch need not allocate.
    pub(crate) fn reuse(&mut self, batch: &mut Batch) {
        for item in &mut batch.items {
            if let Item::Bytes(_, bytes) = item
                && (self.buffer.capacity()..=KEPT).contains(&bytes.capacity())
            {
                bytes.clear();
                std::mem::swap(&mut self.buffer, bytes);
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.cursor = self.cursor.plus(bytes);
        self.batch.bytes += bytes;
        self.unwritten += bytes;
    }

    /// Whether the last mark is older than the last sync, and there is room for another.
    pub(crate) fn wants_mark(&self) -> bool {
        let is_news = self.last.is_some_and(|(last, _)| last > self.marked);
        is_news && self.synced.position() > self.marked && self.space(self.cursor) >= MARK
    }

    /// Writes a mark of what is durable, if that is news and there is room.
    pub(crate) fn put_mark(&mut self) {
        if !self.wants_mark() {
            return;
        }
        let durable = self.synced.position();
        let cursor = self.cursor;
        let mark = frame::mark(cursor, durable);
        self.bytes_at(cursor).extend_from_slice(&mark);
        self.advance(MARK);
        self.marked = durable;
    }

    /// Gives a short record its place, if there is room.
    pub(crate) fn put_short(
        &mut self,
        (len, share): (usize, Share),
        id: CommitId,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Position> {
        if self.batch.items.is_empty() {
            self.put_mark();
        }
        let place = self.place_for((self.cursor, share), len)?;
        self.put_frame((place, Kind::Whole), len, write);
        self.last = Some((self.cursor.position(), id));
        Some(self.cursor.position())
    }

    /// A frame whose body has this length.
    pub(crate) fn put_frame(
        &mut self,
        (place, kind): (Place, Kind),
        len: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.roll_to(place);
        let bytes = self.bytes_at(place);
        let begin = bytes.len();
        bytes.resize(begin + HEADER, 0);
        write(bytes);
        let body = bytes[begin + HEADER..].iter().as_slice();
        debug_assert_eq!(body.len(), len, "a record knows its length");
        let header = frame::header(place, kind, std::iter::once(body));
        bytes[begin..begin + HEADER].copy_from_slice(&header);
        self.advance(HEADER + len);
    }

    /// The frames of a long record, if there is room up to the last of these segments.
    pub(crate) fn places_for(
        &self,
        (mut place, share): (Place, Share),
        (len, last): (usize, u32),
    ) -> Option<Vec<LongFrame>> {
        let mut frames = Vec::new();
        let mut from = 0;
        while from < len {
            // Of a segment that nobody has written to, all is taken, however short it is.
            let least = match place.offset == HEAD {
                true => 1,
                false => (len - from).min(REST),
            };
            if self.space_for(place, share, last) < HEADER + least {
                place = self.next_segment(place, last)?;
            }
            let space = self.space_for(place, share, last) - HEADER;
            let part = (len - from).min(MAX_BODY).min(space);
            let kind = match (from == 0, from + part == len) {
                (true, true) => Kind::Whole,
                (true, false) => Kind::First,
                (false, true) => Kind::Last,
                (false, false) => Kind::Middle,
            };
            frames.push((place, kind, (from, part)));
            from += part;
            place = place.plus(HEADER + part);
        }
        Some(frames)
    }

    fn put_long(
        &mut self,
        (body, len): (&LongBody, usize),
        (id, share): (CommitId, Share),
    ) -> Option<Position> {
        let last = self.last_usable();
        for (place, kind, part) in self.places_for((self.cursor, share), (len, last))? {
            self.roll_to(place);
            let item = Item::Frame(place, kind, Arc::clone(body), part);
            self.batch.items.push(item);
            self.advance(HEADER + part.1);
        }
        self.last = Some((self.cursor.position(), id));
        Some(self.cursor.position())
    }

    /// Gives a record its place, if there is room, and what comes before it.
    pub(crate) fn put(&mut self, body: &Body, id: CommitId) -> Option<Position> {
        if self.batch.items.is_empty() {
            self.put_mark();
        }
        if self.lack(body).is_some() {
            return None;
        }
        self.keys.promised += body.keys_len();
        let share = body.share();
        for (frame, len) in frames_before(body, self.limits().1) {
            let place = self.place_for((self.cursor, share), len)?;
            self.roll_to(place);
            match frame {
                Before::Sealed(sealing, part) => {
                    if part == 0 {
                        self.batch.keys.push((place, sealing.clone()));
                    }
                    let item = Item::Sealed(place, sealing.clone(), part);
                    self.batch.items.push(item);
                    self.advance(HEADER + len);
                }
                Before::Erasure(erasure, body) => {
                    let write = |out: &mut Vec<u8>| out.extend_from_slice(&body);
                    self.put_frame((place, Kind::Erasure), len, write);
                    let erasure = erasure.map(|erasure| (place, erasure.clone()));
                    self.batch.erasures.extend(erasure);
                }
            }
        }
        match &body.record {
            RecordBody::Short(bytes) => {
                let write = |out: &mut Vec<u8>| out.extend_from_slice(bytes);
                self.put_short((bytes.len(), share), id, write)
            }
            RecordBody::Long(pieces, len) => self.put_long((pieces, *len), (id, share)),
        }
    }
}
