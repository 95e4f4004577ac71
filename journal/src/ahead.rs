//! A large record is written *ahead*: its changes are on the medium before it has its number, in segments whose heads
//! are not written yet.
//!
//! Once the record is appended, a short first frame with its head goes into the segment where the others are, and the
//! heads of its segments make the rest of it real. So those who commit meanwhile, or behind it, do not wait for its
//! bytes.
//!
//! - A segment without a head has not begun, so until then an opening finds nothing of it.
//! - Its segments follow the current segment, or the one after that. Until the record is appended or given up, no other
//!   record gets a place in its segments or behind them.
//! - It is written frame by frame. Between two frames, whatever others wait for is prepared first.
//! - If it is given up, its segments are removed, and others get new ones: what is written to the old ones later may be
//!   lost with the power, and the frames from before would be valid.
//! - Nothing of it counts until the record is appended. So a disk that is full while it is written refuses commits, and
//!   ends nothing.
//! - Only the thread that prepares segments writes ahead (`prepare.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weald_forest::journal::Record;

use crate::body::LongBody;
use crate::item::Item;
use crate::place::{Place, SegmentId};

/// The longest that others wait for an author who does not append what was written ahead for it.
pub(crate) const LATE: Duration = Duration::from_millis(200);

/// An author asks for this.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) changes: LongBody,
    pub(crate) bytes: usize,
    /// How many segments are to be prepared behind the one that is written to.
    pub(crate) segments: u32,
}

/// What is written ahead, or just being written.
#[derive(Debug)]
pub(crate) struct WrittenAhead {
    pub(crate) asked: Asked,
    first: SegmentId,
    /// Where its frames end, in each of its segments.
    pub(crate) ends: Vec<Place>,
    /// The frames that are not written yet.
    left: VecDeque<Item>,
    /// Since when all are.
    written: Option<Instant>,
    is_given_up: bool,
}

impl WrittenAhead {
    /// What has these frames, the first of them in this segment, and is yet to be written.
    pub(crate) fn begin(
        asked: Asked,
        first: SegmentId,
        (frames, ends): (Vec<Item>, Vec<Place>),
    ) -> Self {
        Self {
            asked,
            first,
            ends,
            left: frames.into(),
            written: None,
            is_given_up: false,
        }
    }

    /// Its first segment.
    pub(crate) fn first(&self) -> SegmentId {
        self.first
    }

    /// Whether frames of it are not written yet.
    pub(crate) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Takes the next frame that is to be written.
    pub(crate) fn next_frame(&mut self) -> Option<Item> {
        self.left.pop_front()
    }

    /// The last segment that others may use.
    pub(crate) fn in_front(&self) -> u32 {
        self.first.index - 1
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Whether its author has had time to append it.
    pub(crate) fn is_late(&self) -> bool {
        self.written.is_some_and(|since| since.elapsed() >= LATE)
    }

    /// Its author does not append it any more, or has taken too long.
    pub(crate) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    pub(crate) fn is_of(&self, number: u64) -> bool {
        self.asked.number == number
    }

    pub(crate) fn has_been_written(&mut self) {
        self.written = Some(Instant::now());
    }

    pub(crate) fn is_what_changes_in(&self, record: &Record<'_>) -> bool {
        let is_ready = self.written.is_some() && !self.is_given_up;
        let comes_alone = record.blobs.is_empty() && record.erases.is_none();
        let known = self.asked.changes.iter();
        let is_it = record.changes.len() == known.len()
            && record
                .changes
                .iter()
                .zip(known)
                .all(|(a, b)| Arc::ptr_eq(a, b));
        is_ready && comes_alone && is_it
    }
}
