//! The work beside the writers: putting checkpoints, removing what they replace, reading erasable bytes.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use weald_forest::journal::{
    BlobId, Checkpoint, CheckpointError, Durability, Level, Position, ReadError,
};

use crate::blob_reader::BlobReader;
use crate::checkpoint;
use crate::core::{Core, Work};
use crate::error::Unreadable;
use crate::keys::Keys;
use crate::medium::Medium;
use crate::names;
use crate::place::{Place, SegmentId};
use crate::recover::goes_on_a_record;
use crate::segment_list::SegmentList;

impl Core {
    /// Puts a checkpoint of a position that is durable.
    pub(crate) fn put_checkpoint(&self, mut checkpoint: Checkpoint) -> Result<(), CheckpointError> {
        let _one_at_a_time = self
            .checkpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (before, journal) = {
            let state = self.state();
            (state.checkpoint(), state.log.head.journal)
        };
        let at = checkpoint.at;
        if before.is_some_and(|before| at < before) {
            return Err(CheckpointError::Older);
        }
        self.must_have_the_files()?;
        // The next opening reads no record before the checkpoint, so it could not tell that a key of these is missing.
        let settled = self.change_keys(0, |keys| {
            keys.settle(&*self.medium)?;
            Ok((keys.number(), keys.kept().collect::<Vec<_>>()))
        });
        let (keys, kept) = settled.map_err(failed)?;
        // The history behind the former checkpoint has versions that refer to these, even if the newest ones do not.
        checkpoint.blobs.extend(kept);
        checkpoint.blobs.sort_unstable();
        checkpoint.blobs.dedup();
        let (written, before_own) = {
            let state = self.state();
            let own = Place::of(at).segment;
            (state.grown, state.log.chain.before(own))
        };
        let segments = SegmentList { keys, ..before_own };
        let goes_on = || !self.is_keeper_over() && !self.state().is_closing;
        let journal = (journal, &segments);
        let settle = || self.settle();
        let len = checkpoint::put(&*self.medium, journal, (checkpoint, &goes_on), &settle);
        let len = len.map_err(failed)?;
        self.must_have_the_files()?;
        let mut state = self.state();
        if before != Some(at) {
            state.checkpoints.push(at);
        }
        // An estimate: some of it was written after the moment of the checkpoint.
        state.grown -= written;
        let enough = self.settings.checkpoint;
        state.grown_enough = enough.map_or(u64::MAX, |enough| enough.max(2 * len));
        Ok(())
    }

    /// Makes durable what was accepted until now. The pieces of a checkpoint are made while others commit, and may miss
    /// what later commits have replaced: if these were lost with the power, so was that.
    fn settle(&self) -> io::Result<()> {
        let last = {
            let mut state = self.state();
            if state.is_closing {
                return Err(io::Error::other("the forest is closed"));
            }
            let last = state
                .log
                .last
                .map_or_else(Position::default, |(last, _)| last);
            state.wanted = state.wanted.max(last);
            self.wake_threads(state);
            last
        };
        if !self.settings.has_threads {
            while self.work(Work::Write) || self.work(Work::Sync) {}
        }
        match pollster::block_on(self.marks.when(last, Level::Durable)) {
            Durability::Reached => Ok(()),
            Durability::Unknown => Err(io::Error::other("the journal has failed")),
        }
    }

    /// Removes the segments that have nothing behind a position, except those with erasable bytes that are asked for,
    /// and the checkpoints of positions before it.
    pub(crate) fn trim(&self, upto: Position) -> Result<(), CheckpointError> {
        let _one_at_a_time = self
            .checkpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (checkpoints, journal) = {
            let state = self.state();
            (state.checkpoints.clone(), state.log.head.journal)
        };
        let (before, left) = checkpoints.split_at(checkpoints.partition_point(|at| *at < upto));
        let (Some(&oldest), Some(&newest)) = (left.first(), left.last()) else {
            return Err(CheckpointError::NoCheckpoint);
        };
        self.must_have_the_files()?;
        // Blobs to which a later version refers are in the oldest checkpoint that is left, or came with a later record,
        // or were brought back from the history, and then later checkpoints have them.
        let blobs = checkpoint::blobs(&*self.medium, journal, oldest);
        let blobs = blobs.map_err(|error| CheckpointError::Failed(error.to_string()))?;
        let mut blobs: HashSet<BlobId> = blobs.into_iter().collect();
        for at in &left[1..] {
            // One that is damaged can be no beginning of the history.
            blobs.extend(checkpoint::blobs(&*self.medium, journal, *at).unwrap_or_default());
        }
        self.must_have_the_files()?;
        let old = self.doom((upto, &blobs), newest).map_err(failed)?;
        self.must_have_the_files()?;
        {
            let mut state = self.state();
            state.is_full = false;
            state.log.chain.trim(upto);
            state.checkpoints.retain(|at| *at >= upto);
        }
        // The oldest first: after the loss of power a medium has the names as they were after any one of the changes,
        // and a segment that is missing between others is damage.
        for at in before {
            remove(&*self.medium, &names::checkpoint(*at)).map_err(failed)?;
        }
        for segment in old {
            remove(&*self.medium, &names::segment(segment)).map_err(failed)?;
            // Only now, so that the next trim begins with this segment if this trim fails.
            self.state().log.chain.remove(segment);
        }
        self.medium.sync_names().map_err(failed)?;
        // As long as a record is there, the history can be shown from it, so its keys stay as well. Not only those of
        // the segments that this trim has removed go: one before it may have come to its end before the keys did.
        let Some(first) = self.state().log.chain.first() else {
            return Ok(());
        };
        let removed = Place { offset: 0, ..first }.position();
        let trimmed = self.change_keys(0, |keys| match keys.trim(removed, &blobs) {
            true => keys.rewrite(&*self.medium),
            false => Ok(()),
        });
        trimmed.map_err(failed)
    }

    /// Whether the thread that puts checkpoints is to end, even in the middle of one.
    pub(crate) fn is_keeper_over(&self) -> bool {
        self.is_keeper_over.load(Ordering::Relaxed)
    }

    /// Files that another writer has found must not be changed here.
    fn must_have_the_files(&self) -> Result<(), CheckpointError> {
        let text = "the journal was closed, or another writer has taken over";
        let is_newest = self.must_be_newest();
        is_newest.map_err(|_| CheckpointError::Failed(text.into()))
    }

    /// Whether records were trimmed, even before the journal was opened.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.state().log.chain.trimmed > Position::default()
    }

    /// The segments up to a position that nobody needs any more, oldest first. From now on the journal has no erasable
    /// bytes that lie there: a caller that asks to keep some later is told that they are gone, and not that they will
    /// stay.
    fn doom(
        &self,
        (upto, blobs): (Position, &HashSet<BlobId>),
        checkpoint: Position,
    ) -> io::Result<Vec<SegmentId>> {
        let needed = |keys: &Keys| -> BTreeSet<SegmentId> {
            let needed = keys.needed(upto, blobs);
            needed.map(|place| place.segment).collect()
        };
        let mut known = needed(&self.keys());
        loop {
            let old = self.unneeded(upto, &known, checkpoint)?;
            let mut keys = self.keys();
            let now = needed(&keys);
            // Somebody may have asked to keep some meanwhile.
            if old.iter().all(|segment| !now.contains(segment)) {
                keys.forget_in(&old);
                return Ok(old);
            }
            known = now;
        }
    }

    /// The segments up to a position that nobody needs any more, oldest first.
    fn unneeded(
        &self,
        upto: Position,
        needed: &BTreeSet<SegmentId>,
        checkpoint: Position,
    ) -> io::Result<Vec<SegmentId>> {
        // The checkpoint's own segment stays, because the head of the next one may not be durable.
        let own = Place::of(checkpoint).segment;
        let old = self.state().log.chain.upto(upto).into_iter();
        // The parts of a blob may lie in several segments in a row, so the segment with the first part and all that
        // follow are kept.
        let old = old.take_while(|segment| *segment < own && !needed.contains(segment));
        let mut old: Vec<_> = old.collect();
        // The rest must begin with a whole record, because the next opening reads from there.
        while let Some(last) = old.last() {
            let behind = self.state().log.chain.behind(*last);
            match behind {
                Some(behind) if goes_on_a_record(&self.medium, behind.segment)? => _ = old.pop(),
                _ => break,
            }
        }
        Ok(old)
    }

    /// The position of the last record.
    pub(crate) fn last(&self) -> Position {
        let last = self.state().log.last;
        last.map_or(Position::default(), |(last, _)| last)
    }

    /// What the keys tell of a blob that was accepted: its key is there when it is written.
    pub(crate) async fn of_keys<T>(
        &self,
        tell: impl FnOnce(&mut Keys) -> T,
    ) -> Result<T, ReadError> {
        match self.when_written(self.last()).await {
            Durability::Reached => Ok(tell(&mut self.keys())),
            Durability::Unknown => Err(ReadError::Failed("the journal has failed".into())),
        }
    }

    /// The bytes of a blob, unless they were erased.
    pub(crate) fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, Unreadable> {
        let Some(entry) = self.keys().get(id) else {
            return Ok(None);
        };
        let go_on = |place| self.state().log.chain.go_on(place);
        let mut reader = BlobReader::for_one(&self.medium, &go_on);
        reader.read(id, &entry).map(Some)
    }

    /// Gives the bytes of many blobs.
    pub(crate) fn blobs(
        &self,
        ids: Vec<BlobId>,
        take: &mut dyn FnMut(BlobId, Option<Vec<u8>>),
    ) -> Result<(), Unreadable> {
        let asked = {
            let keys = self.keys();
            let asked = ids.into_iter().map(|id| (id, keys.get(id)));
            asked.collect::<Vec<_>>()
        };
        let go_on = |place| self.state().log.chain.go_on(place);
        let mut reader = BlobReader::for_many(&self.medium, &go_on);
        let skipped_in = self.settings.skips_damaged.then(|| self.medium.name());
        reader.read_all(asked, skipped_in.as_deref(), take)
    }
}

/// Removes a file, unless somebody has removed it before.
fn remove(medium: &dyn Medium, name: &str) -> io::Result<()> {
    match medium.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(error.to_string())
}
