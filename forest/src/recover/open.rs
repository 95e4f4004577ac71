//! A forest that continues from the records of its journal.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use super::error::RecoverError;
use super::frames::FrameError;
use super::pipeline::{Pipeline, Rest};
use super::recovery::{Needed, Recovery};
use crate::builder::Builder;
use crate::combine::at_risk::LOST;
use crate::combine::shared::Shared;
use crate::combine::start::Start;
use crate::forest::Forest;
use crate::journal::{Appended, Durability, Journal, Position, Record, StoredCheckpoint};
use crate::state::forest::ForestState;
use crate::state::tree::{TreeRef, TreeState};
use crate::version::Version;

/// How many records are read at a time.
const RECORDS: usize = 1_024;

/// The greatest number with which an opening begins. It leaves each opening more than it can give out.
const GREATEST: u64 = u64::MAX / 2;

impl Builder {
    /// The forest that the journal has, made from the newest checkpoint and the records after it; an empty forest, if
    /// the journal is empty or there is none. All kept and tagged versions are there again, with their numbers, ids,
    /// times and bytes; so are names, indexes, erasable values that were not erased, and the ids of the newest commits
    /// that were given one. No number of a tree or of a version, and no id of a node is given out again, and the time
    /// of commits never goes back. For that the opening itself is a record, which changes nothing. If the journal does
    /// not take this record, because it is full or read-only, the forest opens nevertheless.
    ///
    /// The time grows with the records after the checkpoint, and with the nodes that a version does not share with the
    /// one before it. One sync of the journal comes on top. Dropping the future loses nothing.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, MemoryJournal};
    ///
    /// let journal = MemoryJournal::new();
    /// let forest = Forest::builder().journal(journal.clone()).build();
    /// block_on(forest.create("notes"))?;
    /// drop(forest);
    ///
    /// let forest = block_on(Forest::builder().journal(journal).recover())?;
    /// assert_eq!(forest.list(), ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RecoverError`]: the journal cannot be read, or has something that no forest has written.
    pub async fn recover(self) -> Result<Forest, RecoverError> {
        let Some(journal) = &self.journal else {
            return Ok(self.build());
        };
        let journal = Arc::clone(&journal.inner);
        let mut needed = Needed::new();
        let mut recovery = loop {
            let mut recovery = read(&*journal, self.keep, needed).await?;
            let passed = std::mem::take(&mut recovery.passed);
            let Some((tree, version)) = passed.first().copied() else {
                break recovery;
            };
            needed = std::mem::take(&mut recovery.needed);
            drop(recovery);
            // Everything is read a second time, at most once, and then the versions that these tags
            // name are kept.
            if !needed.is_empty() {
                return Err(RecoverError::NoVersion { tree, version });
            }
            for (tree, version) in passed {
                needed.entry(tree).or_default().insert(version.number);
            }
        };
        // References that a commit took from the history, to bytes that were let go before the checkpoint. Also those
        // that no version has any more: the history from the checkpoint on has the commit.
        let mut brought_back = std::mem::take(&mut recovery.brought_back);
        brought_back.extend(recovery.blobs.unknown());
        for id in brought_back {
            if let Some((tree, place)) = journal.keep_blob(id).await? {
                recovery.blobs.add_absent(tree, place);
            }
        }
        recovery.blobs.sweep();
        let (blobs, time) = (Arc::clone(&recovery.blobs), recovery.time);
        // After the sweep, so that nothing is taken that no version refers to.
        if let Some(beside) = &self.beside {
            blobs.fill_from(&beside.state().blobs);
        }
        let mut missing = Vec::new();
        let mut fill = |id, bytes| match bytes {
            Some(bytes) => blobs.fill(id, bytes),
            None => missing.push(id),
        };
        journal.blobs(blobs.absent(), &mut fill).await?;
        for id in missing {
            // What the journal still has, and was told to leave out because it cannot be read, was not erased.
            match journal.has_blob(id).await? {
                true => blobs.set_unreadable(id, time),
                false => blobs.set_erased(id, time), // It is not known when.
            }
        }
        self.start(recovery).await
    }

    async fn start(self, recovery: Recovery) -> Result<Forest, RecoverError> {
        let Recovery {
            blobs,
            trees,
            last,
            time,
            position,
            checkpoint,
            ids,
            mut openings,
            happenings,
            ..
        } = recovery;
        let keep = self.keep.max(1);
        if last.number > 0 {
            openings.push(last);
        }
        let hosts = (self.running, self.pacing);
        let state = ForestState::new(self.clock, hosts, (self.journal, self.level));
        let state = state.go_on(openings, (blobs, happenings));
        let state = state.ok_or(RecoverError::Exhausted("incarnations"))?;
        for (number, recovered) in trees {
            // Each opening since the newest version of the tree may have given out ids that were lost. What those
            // before the checkpoint have skipped is in it.
            let known = recovered.newest().max(checkpoint);
            let before = state.openings.partition_point(|last| last.number < known);
            let lost = LOST.saturating_mul((state.openings.len() - before) as u64);
            let (name, ids) = (Arc::clone(&recovered.name), recovered.ids().clone());
            let history = recovered.finish(keep).map_err(|error| RecoverError::Tree {
                tree: number,
                error,
            })?;
            // Now all versions are known, so the skipped ids are behind theirs. If fewer are left, the tree gets no new
            // nodes.
            ids.skip(lost);
            let tree = TreeRef::new(TreeState::of(number, &name, history));
            if state.names_mut().insert(tree).is_some() {
                return Err(RecoverError::NameTwice(name.to_string()));
            }
        }
        let (number, time, opened) = note_opening(&state, last.number, time).await?;
        let is_noted = opened.is_some();
        let start = Start {
            number,
            is_noted,
            time,
            position: opened.or(position),
            ids,
        };
        Ok(Forest::of(Shared::new(state, keep, start)))
    }
}

/// Notes the opening in the journal, so that the next one begins behind all numbers that this one gives out. Returns
/// its number, its time, and its position.
async fn note_opening(
    state: &ForestState,
    last: u64,
    time: SystemTime,
) -> Result<(u64, SystemTime, Option<Position>), RecoverError> {
    let exhausted = || RecoverError::Exhausted("numbers of versions");
    // Before the first opening there was nothing that could have been lost.
    let more = if last == 0 { 1 } else { LOST };
    let number = last.checked_add(more);
    let number = number.filter(|number| *number <= GREATEST);
    let number = number.ok_or_else(exhausted)?;
    let Some(journal) = &state.journal else {
        return Ok((number, time, None));
    };
    let journal = &*journal.inner;
    let time = state.clock.now().max(time);
    let appended = journal.append(&Record {
        version: state.version_of(number),
        id: state.nth_id(0),
        time,
        digest: None,
        bytes: &[],
        changes: &[],
        blobs: &[],
        erases: None,
    });
    let accepted = match appended {
        Ok(Appended::Accepted(position)) => Ok(position),
        Ok(Appended::Sent(answer)) => answer.await,
        Err(error) => Err(error),
    };
    if let Ok(position) = accepted {
        let level = journal.capabilities().level;
        if journal.when_reached(position, level).await == Durability::Reached {
            return Ok((number, time, Some(position)));
        }
    }
    // The next opening will not know of this one, and could begin at the same number. So this one begins at a random
    // number. It shows nothing before something is durable, so few numbers can be given out twice, and the numbers last
    // for 2²⁷ such openings.
    let openings = RandomState::new().hash_one(number) >> 48;
    let number = number.checked_add(openings * LOST);
    let number = number.filter(|number| *number <= GREATEST);
    Ok((number.ok_or_else(exhausted)?, time, None))
}

impl StoredCheckpoint {
    /// The newest version in the checkpoint, and the time of that commit. Only the beginning is read.
    ///
    /// # Errors
    /// [`RecoverError::Read`] and [`RecoverError::Checkpoint`].
    pub fn newest(self) -> Result<(Version, SystemTime), RecoverError> {
        Recovery::newest_in(self).map_err(|error| match error {
            FrameError::Read(error) => RecoverError::Read(error),
            FrameError::Record(error) => RecoverError::Checkpoint(error),
        })
    }
}

async fn read(
    journal: &dyn Journal,
    keep: usize,
    needed: Needed,
) -> Result<Recovery, RecoverError> {
    let mut recovery = Recovery::new(keep, needed);
    if let Some(checkpoint) = journal.checkpoint().await? {
        recovery.read(checkpoint)?;
        // The checkpoint may have seen a later erasure that was then lost.
        for id in recovery.blobs.erased() {
            if journal.has_blob(id).await? {
                recovery.blobs.set_absent(id);
            }
        }
    }
    let mut after = recovery.position.unwrap_or_default();
    let mut pipeline = Pipeline::new(recovery);
    loop {
        let entries = match journal.read(after, RECORDS).await {
            Ok(entries) => entries,
            Err(error) => {
                pipeline.end()?; // A record before may be the first error.
                return Err(error.into());
            }
        };
        let Some(last) = entries.last() else {
            return pipeline.end();
        };
        after = last.position;
        let rest = match entries.len() {
            RECORDS.. => Rest::Long,
            _ => Rest::Short,
        };
        pipeline = pipeline.apply(&entries, rest)?;
    }
}
