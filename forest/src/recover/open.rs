//! A forest that goes on from what its journal has.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use super::error::RecoverError;
use super::frames::FrameError;
use super::pipeline::Pipeline;
use super::recovery::{Needed, Recovery};
use crate::builder::Builder;
use crate::combine::at_risk::LOST;
use crate::combine::shared::Shared;
use crate::combine::start::Start;
use crate::forest::Forest;
use crate::journal::{Appended, Durability, Journal, Position, Record, StoredCheckpoint};
use crate::state::forest::ForestState;
use crate::state::tree::TreeState;
use crate::version::Version;

/// How many records are read at a time.
const RECORDS: usize = 1_024;

/// The greatest number with which an opening begins. It leaves each opening more than it can give out.
const GREATEST: u64 = u64::MAX / 2;

impl Builder {
    /// The forest that the journal has, from its newest checkpoint and the records after it; an empty one, if it has
    /// nothing, or there is no journal. All kept and tagged versions are there again, with their numbers, ids, times
    /// and bytes; so are names, indexes, erasable values that were not erased, and the ids of the newest commits that
    /// were given one. No number of a tree or of a version, and no id of a node is given out again, and the time goes on:
    /// the opening itself is a record that changes nothing. If the journal does not take that, because there is no room
    /// or it is only read, the forest opens nevertheless.
    ///
    /// It takes the time of the records after the checkpoint, and of those nodes that a version does not share with
    /// the one before; and one sync of the journal. Dropping the future loses nothing.
    ///
    /// ```
    /// use pollster::block_on;
    /// use weald_forest::{Forest, MemoryJournal};
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
    /// [`RecoverError`]: the journal cannot be read, or has what no forest has written.
    pub async fn recover(self) -> Result<Forest, RecoverError> {
        let Some(journal) = &self.journal else {
            return Ok(self.build());
        };
        let journal = Arc::clone(&journal.inner);
        let mut needed = Needed::new();
        let recovery = loop {
            let mut recovery = read(&*journal, self.keep, needed).await?;
            let passed = std::mem::take(&mut recovery.passed);
            let Some((tree, version)) = passed.first().copied() else {
                break recovery;
            };
            needed = std::mem::take(&mut recovery.needed);
            drop(recovery);
            // What all these tags name is kept when everything is read again, once.
            if !needed.is_empty() {
                return Err(RecoverError::NoVersion { tree, version });
            }
            for (tree, version) in passed {
                needed.entry(tree).or_default().insert(version.number);
            }
        };
        recovery.blobs.sweep();
        let (blobs, time) = (Arc::clone(&recovery.blobs), recovery.time);
        let mut fill = |id, bytes| blobs.fill(id, bytes, time);
        journal.blobs(blobs.absent(), &mut fill).await?;
        self.start(recovery).await
    }

    async fn start(self, recovery: Recovery) -> Result<Forest, RecoverError> {
        let Recovery {
            blobs,
            lines,
            last,
            time,
            position,
            ids,
            mut openings,
            ..
        } = recovery;
        let keep = self.keep.max(1);
        if last.number > 0 {
            openings.push(last);
        }
        let hosts = (self.running, self.pacing);
        let state = ForestState::new(self.clock, hosts, (self.journal, self.level));
        let state = state.go_on(openings, blobs);
        let state = state.ok_or(RecoverError::Exhausted("incarnations"))?;
        for (number, line) in lines {
            // Each opening since the newest version of the tree may have given out ids that were lost.
            let newest = line.newest();
            let before = state.openings.partition_point(|last| last.number < newest);
            let lost = LOST.checked_mul((state.openings.len() - before) as u64);
            let (name, ids) = (Arc::clone(&line.name), line.ids().clone());
            let history = line.finish(keep).map_err(|error| RecoverError::Tree {
                tree: number,
                error,
            })?;
            // Behind the ids of all versions, which are known now.
            if !lost.is_some_and(|lost| ids.skip(lost)) {
                return Err(RecoverError::Exhausted("ids of nodes"));
            }
            let tree = TreeState::of(number, Arc::clone(&name), history);
            let tree = Arc::new(tree);
            if state.names_mut().insert(Arc::clone(&name), tree).is_some() {
                return Err(RecoverError::NameTwice(name.to_string()));
            }
        }
        let (number, time, opened) = begin(&state, last.number, time).await?;
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

/// Notes the opening in the journal, so that the next one begins behind whatever numbers this one gives out. Returns its
/// number, its time, and its position.
async fn begin(
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
    // The next opening will not know of this one, and may begin where it began: so it begins anywhere. It shows nothing
    // before something is durable, so what both could give out is little, and the numbers are to last for 2²⁷ such openings.
    let openings = RandomState::new().hash_one(number) >> 48;
    let number = number.checked_add(openings * LOST);
    let number = number.filter(|number| *number <= GREATEST);
    Ok((number.ok_or_else(exhausted)?, time, None))
}

impl StoredCheckpoint {
    /// The newest version that it contains, and the time of that commit. It reads the beginning only.
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
        // The checkpoint may have seen an erasure that came after it, and was lost.
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
        pipeline = pipeline.apply(&entries, entries.len() >= RECORDS)?;
    }
}
