//! What is to be done next on the medium. This file only decides, and does nothing.
//!
//! - One thread at a time writes, one syncs, one prepares; which thread does not matter. So a thread that has written
//!   syncs as well, if nobody else waits; and while it syncs, another one writes. An author may write, too (`lead.rs`):
//!   then a thread leaves the batch to the author, and looks soon.
//! - A thread that is about to write yields once first if the last batch was large: then more commits go into one
//!   write.
//! - A short batch that is only to be durable is put off while a sync goes on, and then for the writers that this sync
//!   has woken (`regroup.rs`): so they share one write and one sync.
//! - A sync is due when somebody waits for it, when much was written since the last sync, or when nothing was appended
//!   for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weald_forest::journal::{AppendError, BlobId, Position, Record};

use crate::ahead::WrittenAhead;
use crate::blob::Sealing;
use crate::leading::{self, Leading};
use crate::log::{Batch, Lack, Log};
use crate::place::{Place, SegmentId};
use crate::regroup::Regroup;
use crate::waiting::{Answer, Due, Waiting};

/// After this many bytes there is a sync although nobody waits for it, because the forest keeps every
/// version until it is durable.
const MUCH: u32 = 256 << 10;

/// After a batch of this many bytes, a thread lets others run before it takes the next one.
const GATHERED: usize = 6_000;

/// What all threads of a journal share.
pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) leading: Leading,
    pub(crate) regroup: Regroup,
    pub(crate) waiting: Waiting,
    /// Erasable bytes that their authors have sealed, and are yet to append (`room.rs`).
    pub(crate) sealed: HashMap<BlobId, Sealing>,
    /// Also set while the thread that is about to write lets others run.
    pub(crate) is_writing: bool,
    /// How many bytes were written last.
    pub(crate) last_batch: usize,
    pub(crate) is_syncing: bool,
    pub(crate) is_preparing: bool,
    /// There was no room for the next segment when it was last tried.
    pub(crate) is_full: bool,
    /// Somebody waits until this is durable: set by `when_reached` of `disk_journal.rs`.
    pub(crate) wanted: Position,
    /// Why the journal takes nothing more.
    pub(crate) failed: Option<AppendError>,
    /// Nothing is accepted any more, and what was is being written.
    pub(crate) is_closing: bool,
    /// The positions of the checkpoints, oldest first. The history begins with the first, if records were trimmed.
    pub(crate) checkpoints: Vec<Position>,
    /// How many bytes were written since the last one, and how many there are to be before the next.
    pub(crate) grown: u64,
    pub(crate) grown_enough: u64,
    /// When something was written last.
    pub(crate) active: Instant,
    /// How many threads wait for work, and whether one of them was woken and has not looked yet.
    pub(crate) idle: u32,
    pub(crate) is_called: bool,
}

/// The next thing to do.
pub(crate) enum NextStep {
    /// Let others run, and then see [`State::end_gathering`].
    Gather,
    /// Write these bytes, after which everything before the place is written.
    Write(Batch, Place),
    /// Sync from the first to the last of these segments, after which everything before the place is durable.
    Sync(SegmentId, Place),
    /// Nothing, at most for this long.
    Rest(Option<Duration>),
    /// Nothing, but look soon whether a leader has written.
    Watch,
    /// Nothing, but write after this long, if some of the writers that the last sync woke have not come by then.
    Await(Duration),
    /// Nothing ever.
    Stop,
}

/// What the thread that prepares is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// The next segment.
    Segment,
    /// Room for this many bytes of keys.
    Keys(u64),
    /// To write the next frame of a large record ahead.
    Ahead,
    /// To remove what was written ahead in vain.
    RemoveAhead,
}

impl State {
    /// The position of the newest checkpoint.
    pub(crate) fn checkpoint(&self) -> Option<Position> {
        self.checkpoints.last().copied()
    }

    /// The next thing to write or to sync.
    pub(crate) fn next(&mut self, silence: Duration) -> NextStep {
        if self.failed.is_some() {
            return self.rest_or_stop(None);
        }
        let is_put_off = self.is_put_off();
        if self.may_write() && !self.is_led() && !is_put_off {
            return self.gather_or_write();
        }
        if self.may_sync() {
            return self.begin_sync();
        }
        if self.leading.wants_watch() && !self.is_closing {
            return NextStep::Watch;
        }
        if self.is_writing || self.is_syncing {
            return NextStep::Rest(None);
        }
        if is_put_off && !self.regroup.is_watched {
            return NextStep::Await(self.regroup.left().unwrap_or_default());
        }
        let is_synced = self.log.synced == self.log.written;
        if is_synced && !self.log.wants_mark() {
            return self.rest_or_stop(None);
        }
        let left = silence.saturating_sub(self.active.elapsed());
        if !left.is_zero() && !self.is_closing {
            return NextStep::Rest(Some(left));
        }
        if !is_synced {
            return self.begin_sync();
        }
        self.log.put_mark();
        if self.log.batch.items.is_empty() {
            return self.rest_or_stop(None); // There is no room for it.
        }
        self.begin_write()
    }

    /// Whether the batch waits for the end of a sync, or for writers that are expected to join it. Nobody else waits
    /// for it.
    fn is_put_off(&self) -> bool {
        let is_long = self.log.batch.bytes > leading::SHORT;
        let is_asked = self.leading.is_asked(Position::default()) || !self.waiting.is_empty();
        // A writer that waits behind a leader asks nobody.
        let is_asked = is_asked || self.leading.has_late_leader();
        let may_wait = !is_long && !is_asked && !self.is_closing && self.log.batch.is_plain();
        may_wait && (self.is_syncing || self.regroup.left().is_some())
    }

    /// Whether a thread is to come that writes when no more writers are waited for.
    pub(crate) fn wants_await(&self) -> bool {
        let is_resting = !self.is_writing && !self.is_syncing && !self.regroup.is_watched;
        is_resting && self.may_write() && self.is_put_off()
    }

    fn rest_or_stop(&self, limit: Option<Duration>) -> NextStep {
        // The end of a preparation may give places to records that wait for room.
        let is_busy = self.is_writing || self.is_syncing || self.is_preparing;
        if self.is_closing && !is_busy {
            NextStep::Stop
        } else {
            NextStep::Rest(limit)
        }
    }

    pub(crate) fn may_write(&self) -> bool {
        !self.is_writing && !self.log.batch.items.is_empty()
    }

    pub(crate) fn may_sync(&self) -> bool {
        let (written, synced) = (self.log.written, self.log.synced);
        // A full segment is synced although nobody waits for it: its file stays open until then, and an opening would
        // write it again.
        let is_much = written.segment != synced.segment || written.offset - synced.offset >= MUCH;
        let is_due = is_much || self.wanted > synced.position();
        !self.is_syncing && written > synced && is_due
    }

    /// If there are many authors, those that are about to commit get into the same write.
    fn gather_or_write(&mut self) -> NextStep {
        if self.last_batch < GATHERED || self.is_closing {
            return self.begin_write();
        }
        self.is_writing = true;
        NextStep::Gather
    }

    /// Takes what has come meanwhile; nothing, if the journal has failed.
    pub(crate) fn end_gathering(&mut self) -> Option<NextStep> {
        self.is_writing = false;
        let is_open = self.failed.is_none();
        is_open.then(|| self.begin_write())
    }

    /// Takes what is to be written; nobody else writes until that is done.
    pub(crate) fn begin_write(&mut self) -> NextStep {
        self.is_writing = true;
        self.leading.batch_taken(self.log.cursor.position());
        let batch = std::mem::take(&mut self.log.batch);
        self.last_batch = batch.bytes;
        NextStep::Write(batch, self.log.cursor)
    }

    /// Takes what is to be synced; nobody else syncs until that is done.
    pub(crate) fn begin_sync(&mut self) -> NextStep {
        self.is_syncing = true;
        self.regroup.begin_sync(Instant::now());
        NextStep::Sync(self.log.synced.segment, self.log.written)
    }

    /// Whether the batch is left to its leader, which is still expected to write.
    pub(crate) fn is_led(&self) -> bool {
        self.leading.has_leader() && !self.is_closing && !self.is_asked_to_write()
    }

    fn is_asked_to_write(&self) -> bool {
        let is_long = self.log.batch.bytes > leading::SHORT;
        // A record that waits may need the room of this batch.
        is_long || self.leading.is_asked(self.wanted) || !self.waiting.is_empty()
    }

    /// Whether a thread must write now, rather than when it looks the next time.
    pub(crate) fn must_write(&self) -> bool {
        let is_watched = self.leading.is_watched && !self.is_closing;
        self.may_write() && !self.is_put_off() && (!is_watched || self.is_asked_to_write())
    }

    /// Somebody waits until a record is durable. Only if a sync that reaches it is to come, because a sync counts those
    /// that it wakes.
    pub(crate) fn expect(&mut self, position: Position) {
        let (synced, taken) = (self.log.synced.position(), self.log.cursor.position());
        if self.failed.is_none() && position > synced && position <= taken {
            self.regroup.has_come(position);
        }
    }

    /// Whether an author may write the batch.
    pub(crate) fn may_lead(&self) -> bool {
        let batch = &self.log.batch;
        let is_short = batch.is_plain() && batch.bytes <= leading::SHORT;
        is_short && !self.is_closing && !self.leading.was_slow()
    }

    /// Makes the author of the record at a position the leader, if one is wanted; returns its number.
    pub(crate) fn lead(&mut self, position: Position) -> Option<u64> {
        let may_lead = self.may_lead();
        let is_open = self.failed.is_none();
        is_open
            .then(|| self.leading.choose(position, may_lead))
            .flatten()
    }

    /// What the author of a record with this many bytes waits for, unless there is room, or will be none. With a
    /// number, if its changes are written ahead.
    pub(crate) fn ask_for_room(
        &mut self,
        bytes: usize,
        changes: &[Arc<Vec<u8>>],
    ) -> Option<(Answer, Option<u64>)> {
        if self.is_full || self.is_closing || self.failed.is_some() {
            return None;
        }
        if let Some((answer, number)) = self.waiting.ask_ahead(changes, &self.log) {
            return Some((answer, Some(number)));
        }
        let needed = self.log.room_for(bytes);
        let waits = needed > self.log.room();
        waits.then(|| (self.waiting.ask_for(needed), None))
    }

    /// Whether the thread that prepares has something to do.
    pub(crate) fn must_prepare(&self) -> bool {
        let is_open = self.failed.is_none() && !self.is_closing;
        is_open && self.preparation().is_some()
    }

    /// What it is to do next.
    pub(crate) fn preparation(&self) -> Option<Preparation> {
        let (log, waiting) = (&self.log, &self.waiting);
        let lack = waiting.lack(log);
        if let Some(ahead) = &log.ahead {
            // An author that lacks a segment behind it would wait for the other one, which may itself be waiting.
            let is_in_the_way = lack == Some(Lack::Segment);
            let is_late = ahead.is_late() && waiting.waits_ahead();
            if ahead.is_given_up() || is_in_the_way || is_late {
                return Some(Preparation::RemoveAhead);
            }
        }
        match lack {
            Some(Lack::Keys(more)) => return Some(Preparation::Keys(more)),
            Some(Lack::Segment) => return Some(Preparation::Segment),
            None => {}
        }
        let has_left = log.ahead.as_ref().is_some_and(WrittenAhead::has_left);
        if has_left || waiting.may_begin_ahead(log) {
            return Some(Preparation::Ahead);
        }
        let has_spare = log.prepared > log.cursor.segment.index;
        let is_asked_for = !has_spare || waiting.lacks_ahead(log);
        (is_asked_for && !self.is_full).then_some(Preparation::Segment)
    }

    /// Takes places for what is to be written ahead, unless that is done, or its author is gone. If there are none, the
    /// author is let in without.
    pub(crate) fn begin_ahead(&mut self) -> Option<Due> {
        if self.log.ahead.is_some() {
            return None;
        }
        let asked = self.waiting.begin_ahead(&self.log)?;
        let number = asked.number;
        match self.log.begin_ahead(asked) {
            Some(()) => None,
            None => self.waiting.end_ahead(number),
        }
    }

    /// If all of it is written, its author is let in.
    pub(crate) fn end_ahead(&mut self) -> Option<Due> {
        let ahead = self.log.ahead.as_mut().filter(|ahead| !ahead.has_left())?;
        ahead.has_been_written();
        self.waiting.end_ahead(ahead.asked.number)
    }

    /// Gives a record its place that was written ahead.
    pub(crate) fn put_ahead(&mut self, record: &Record<'_>) -> Option<Position> {
        let (position, bytes) = self.log.put_ahead(record)?;
        self.grown += bytes as u64;
        Some(position)
    }
}

#[cfg(test)]
mod tests;
