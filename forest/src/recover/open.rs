//! A forest that goes on from what its journal has.

use std::sync::Arc;

use super::error::RecoverError;
use super::recovery::{Needed, Recovery, Stop};
use crate::builder::Builder;
use crate::combine::combiner::Start;
use crate::combine::shared::Shared;
use crate::forest::Forest;
use crate::journal::Journal;
use crate::state::forest::ForestState;
use crate::state::tree::TreeState;

/// How many records are read at a time.
const RECORDS: usize = 256;

/// How many numbers of commits are left out at each opening: more than the commits that were visible and are lost
/// because the journal never got them.
const LOST: u64 = 1 << 20;

impl Builder {
    /// The forest that the journal has, from its newest checkpoint and the records after it; an empty one, if it has
    /// nothing, or there is no journal. All kept and tagged versions are there again, with their numbers, ids, times
    /// and bytes; so are names, indexes, erasable values that were not erased, and the ids of the newest commits that
    /// were given one. No number of a tree or of a version is given out again, and the time goes on.
    ///
    /// It takes the time of the records after the checkpoint, and of those nodes that a version does not share with
    /// the one before. Dropping the future loses nothing.
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
        let Some(medium) = &self.medium else {
            return Ok(self.build());
        };
        let journal = Arc::clone(&medium.journal);
        let mut needed = Needed::new();
        let recovery = loop {
            match read(&*journal, self.keep, &needed).await {
                Ok(recovery) => break recovery,
                Err(Stop::Passed(tree, version)) => {
                    // What a tag names is kept when it is read again.
                    if !needed.entry(tree).or_default().insert(version) {
                        return Err(RecoverError::NoVersion { tree, version });
                    }
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        };
        recovery.blobs.sweep();
        for id in recovery.blobs.absent() {
            let bytes = journal.blob(id).await?;
            recovery.blobs.fill(id, bytes, recovery.time);
        }
        self.start(recovery)
    }

    fn start(self, recovery: Recovery<'_>) -> Result<Forest, RecoverError> {
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
        if last.number == 0 {
            return Ok(self.build());
        }
        let keep = self.keep.max(1);
        openings.push(last);
        let mut state = ForestState::new(self.clock, self.running, (self.medium, self.level));
        state.go_on(openings, blobs);
        for (number, line) in lines {
            let name = Arc::clone(&line.name);
            let history = line.finish(keep).map_err(|error| RecoverError::Tree {
                tree: number,
                error,
            })?;
            let tree = TreeState::of(number, Arc::clone(&name), history);
            let tree = Arc::new(tree);
            if state.names_mut().insert(Arc::clone(&name), tree).is_some() {
                return Err(RecoverError::NameTwice(name.to_string()));
            }
        }
        let start = Start {
            number: last.number + LOST,
            time,
            position,
            ids,
        };
        Ok(Forest::of(Shared::new(state, keep, start)))
    }
}

async fn read<'a>(
    journal: &dyn Journal,
    keep: usize,
    needed: &'a Needed,
) -> Result<Recovery<'a>, Stop> {
    let failed = |error| Stop::Failed(RecoverError::Read(error));
    let mut recovery = Recovery::new(keep, needed);
    if let Some(checkpoint) = journal.checkpoint().await.map_err(failed)? {
        recovery.read(checkpoint)?;
    }
    loop {
        let after = recovery.position.unwrap_or_default();
        let entries = journal.read(after, RECORDS).await.map_err(failed)?;
        if entries.is_empty() {
            return Ok(recovery);
        }
        entries
            .iter()
            .try_for_each(|entry| recovery.replay(entry))?;
    }
}
