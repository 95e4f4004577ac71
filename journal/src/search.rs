//! Searches all records: for the one with an id, and for the one that ends at a position.

use std::sync::Arc;
use std::task::Waker;

use weald_forest::journal::{CheckpointError, Position, Stored};
use weald_forest::{CommitId, Version};

use crate::core::Core;
use crate::error::Unreadable;
use crate::frame::{HEADER, Kind};
use crate::head::HEAD;
use crate::medium::Medium;
use crate::place::{Place, SegmentId};
use crate::reader::{FrameReader, RecordReader, damaged};
use crate::searching::{Outcome, Searcher};

/// The record with an id is looked for.
impl Searcher for (Arc<Core>, CommitId) {
    fn search(&self) -> Outcome {
        search(&self.0, self.1)
    }

    fn wake(&self, waker: Waker) {
        self.0.wakes.run(|| waker.wake());
    }
}

/// Where a record's id lies in it: after the version.
const ID: std::ops::Range<usize> = 16..32;

/// Where the journal goes on, if a place is the end of its segment.
type GoOn<'a> = &'a dyn Fn(Place) -> Option<Place>;

/// The record with an id, among those that are written, newest segments first.
pub(crate) fn search(core: &Core, id: CommitId) -> Result<Option<(Position, Version)>, Unreadable> {
    let (segments, upto) = {
        let state = core.state();
        (state.log.chain.newest_first(), state.log.written.position())
    };
    let go_on = |place| core.state().log.chain.go_on(place);
    search_in(&core.medium, (&segments, &go_on), (id, upto))
}

/// The record with an id in these segments, up to a position.
pub(crate) fn search_in(
    medium: &Arc<dyn Medium>,
    (segments, go_on): (&[SegmentId], GoOn<'_>),
    (id, upto): (CommitId, Position),
) -> Result<Option<(Position, Version)>, Unreadable> {
    let mut frames = FrameReader::new(Arc::clone(medium));
    for segment in segments {
        let Some(place) = search_segment(&mut frames, (go_on, *segment), (id, upto))? else {
            continue;
        };
        let mut reader = RecordReader::new(Arc::clone(medium), place);
        if let Some(entry) = reader.next(go_on, upto)? {
            let stored = Stored::read(&entry.record);
            let stored = stored.map_err(|_| damaged(place, "it is no record"))?;
            return Ok(Some((entry.position, stored.version)));
        }
    }
    Ok(None)
}

/// Where the record with an id begins in a segment.
fn search_segment(
    frames: &mut FrameReader,
    (go_on, segment): (GoOn<'_>, SegmentId),
    (id, upto): (CommitId, Position),
) -> Result<Option<Place>, Unreadable> {
    let mut place = Place {
        segment,
        offset: HEAD,
    };
    while place.position() < upto && go_on(place).is_none() {
        let frame = frames.frame(place)?;
        let (header, body) = frame.ok_or_else(|| damaged(place, "it is no frame"))?;
        let begins = matches!(header.kind, Kind::Whole | Kind::First);
        if begins && body.get(ID) == Some(&id.0.to_le_bytes()) {
            return Ok(Some(place));
        }
        place = place.plus(HEADER + header.len);
    }
    Ok(None)
}

/// A checkpoint is only of a position at which a record ends. Everything is written up to there.
pub(crate) fn must_be_record(core: &Core, at: Position) -> Result<(), CheckpointError> {
    match is_record(core, at) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CheckpointError::NoSuchPosition),
        Err(error) => Err(CheckpointError::Failed(error.to_string())),
    }
}

fn is_record(core: &Core, at: Position) -> Result<bool, Unreadable> {
    let Place { segment, offset } = Place::of(at);
    if !core.state().log.chain.has(segment) {
        return Ok(false);
    }
    let mut frames = FrameReader::new(Arc::clone(&core.medium));
    let mut place = Place {
        segment,
        offset: HEAD,
    };
    while place.offset < offset && core.state().log.chain.go_on(place).is_none() {
        let frame = frames.frame(place)?;
        let (header, _) = frame.ok_or_else(|| damaged(place, "it is no frame"))?;
        place = place.plus(HEADER + header.len);
        if place.offset == offset {
            return Ok(matches!(header.kind, Kind::Whole | Kind::Last));
        }
    }
    Ok(false)
}
