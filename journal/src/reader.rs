//! Reads frames and records from segments. Nothing in a file is believed before its check is right.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use weald_forest::journal::{BlobId, Entry, Erasure, Position};

use crate::blob;
use crate::error::{Damage, Unreadable};
use crate::frame::{HEADER, Header, Kind};
use crate::medium::{Medium, MediumFile};
use crate::names;
use crate::place::{Place, SegmentId};

/// How many bytes are read at once, at least.
const READ: usize = 64 * 1024;

/// The same, if only a few frames are wanted.
const READ_FEW: usize = 4 * 1024;

/// Reads frames, with a buffer of the file that was read last.
pub(crate) struct FrameReader {
    medium: Arc<dyn Medium>,
    file: Option<(SegmentId, Box<dyn MediumFile>)>,
    buffer: Vec<u8>,
    /// The offset of the buffer in its file.
    buffer_at: usize,
    /// How many bytes are read at once, at least.
    least: usize,
}

impl FrameReader {
    pub(crate) fn new(medium: Arc<dyn Medium>) -> Self {
        Self {
            medium,
            file: None,
            buffer: Vec::new(),
            buffer_at: 0,
            least: READ,
        }
    }

    /// For a few frames, so that a short one does not cost as much as a long one.
    pub(crate) fn for_few(medium: Arc<dyn Medium>) -> Self {
        Self {
            least: READ_FEW,
            ..Self::new(medium)
        }
    }

    fn fill(&mut self, place: Place, len: usize) -> io::Result<Range<usize>> {
        if self
            .file
            .as_ref()
            .is_none_or(|(id, _)| *id != place.segment)
        {
            let file = self.medium.open(&names::segment(place.segment))?;
            self.file = Some((place.segment, file));
            self.buffer.clear();
        }
        let offset = place.offset as usize;
        let has_it = offset >= self.buffer_at && offset + len <= self.buffer_at + self.buffer.len();
        if !has_it && let Some((_, file)) = &self.file {
            self.buffer.resize(len.max(self.least), 0);
            let read = file.read_at(&mut self.buffer, offset as u64)?;
            self.buffer.truncate(read);
            self.buffer_at = offset;
        }
        let begin = offset - self.buffer_at;
        Ok(begin..self.buffer.len().min(begin + len))
    }

    /// Reads from the file again, because another process may have written meanwhile.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// The frame at a place, if there is a valid one.
    pub(crate) fn frame(&mut self, place: Place) -> io::Result<Option<(Header, &[u8])>> {
        let range = self.fill(place, HEADER)?;
        let Some(header) = Header::read(place, &self.buffer[range]) else {
            return Ok(None);
        };
        // A file made by hand may be longer than a segment can be.
        let end = (HEADER + header.len).try_into().ok();
        if end.and_then(|len| place.offset.checked_add(len)).is_none() {
            return Ok(None);
        }
        let range = self.fill(place.plus(HEADER), header.len)?;
        let body = &self.buffer[range];
        Ok(header.fits(place, body).then_some((header, body)))
    }
}

/// The next thing in a segment.
pub(crate) enum Step<'a> {
    /// A record ends at this position.
    Record(Position, Cow<'a, [u8]>),
    /// Everything up to here was durable when this was written; the mark ends at the place.
    Mark(Position, Place),
    /// A frame that is part of a record, or that the next record needs.
    Part,
    /// The first part of erasable bytes that the next record brings, in a frame at the place.
    Blob(Place, BlobId),
    /// Erasable bytes that the next record erases, from a frame at the place.
    Erasure(Place, Erasure),
    /// Not a valid frame, or one that cannot follow the one before.
    Invalid,
}

/// Reads records one after the other.
pub(crate) struct RecordReader {
    pub(crate) frames: FrameReader,
    /// Where the next frame begins.
    pub(crate) place: Place,
    /// The parts of a record that is not whole yet.
    parts: Option<Vec<u8>>,
    /// Whether what comes next may be the rest of a record whose beginning was removed. That rest is no record.
    may_begin_within: bool,
}

impl RecordReader {
    pub(crate) fn new(medium: Arc<dyn Medium>, place: Place) -> Self {
        Self {
            frames: FrameReader::new(medium),
            place,
            parts: None,
            may_begin_within: false,
        }
    }

    /// From a place that may lie within a record: a trim removes one segment after the other, and may be interrupted.
    pub(crate) fn begin_within(self, may_begin_within: bool) -> Self {
        Self {
            may_begin_within,
            ..self
        }
    }

    /// Reads the frame at the place and goes behind it.
    pub(crate) fn step(&mut self) -> io::Result<Step<'_>> {
        let place = self.place;
        let Some((header, body)) = self.frames.frame(place)? else {
            return Ok(Step::Invalid);
        };
        let behind = place.plus(HEADER + header.len);
        let position = behind.position();
        let step = match (header.kind, &mut self.parts) {
            (Kind::Mark, _) => match crate::frame::marked(body) {
                Some(durable) => Step::Mark(durable, behind),
                None => Step::Invalid,
            },
            (Kind::Whole, None) => Step::Record(position, Cow::Borrowed(body)),
            (Kind::Blob, None) => match blob::begun(body) {
                Some(id) => Step::Blob(place, id),
                None => Step::Part,
            },
            (Kind::Erasure, None) => match blob::read_erasure(body) {
                Some(erasure) => Step::Erasure(place, erasure),
                None => Step::Invalid,
            },
            (Kind::First, parts @ None) => {
                *parts = Some(body.to_vec());
                Step::Part
            }
            (Kind::Middle, Some(parts)) => {
                parts.extend_from_slice(body);
                Step::Part
            }
            (Kind::Last, Some(parts)) => {
                parts.extend_from_slice(body);
                let record = std::mem::take(parts);
                self.parts = None;
                Step::Record(position, Cow::Owned(record))
            }
            (Kind::Middle | Kind::Last, None) if self.may_begin_within => Step::Part,
            _ => Step::Invalid,
        };
        self.may_begin_within &= header.kind == Kind::Middle;
        if !matches!(step, Step::Invalid) {
            self.place = behind;
        }
        Ok(step)
    }

    /// The next record that ends at a position or before; `None`, if there is none yet. `go_on` tells where the journal
    /// goes on, if a place is the end of its segment.
    pub(crate) fn next(
        &mut self,
        go_on: &dyn Fn(Place) -> Option<Place>,
        upto: Position,
    ) -> Result<Option<Entry>, Unreadable> {
        while self.place.position() < upto {
            if let Some(next) = go_on(self.place) {
                self.place = next;
                continue;
            }
            match self.step()? {
                Step::Record(position, record) => {
                    let record = record.into_owned();
                    return Ok(Some(Entry { position, record }));
                }
                Step::Mark(..) | Step::Part | Step::Blob(..) | Step::Erasure(..) => {}
                Step::Invalid => return Err(damaged(self.place, "it is no frame").into()),
            }
        }
        Ok(None)
    }
}

/// Damage at a place.
pub(crate) fn damaged(place: Place, what: &'static str) -> Damage {
    Damage {
        file: names::segment(place.segment),
        offset: place.offset.into(),
        what,
    }
}
