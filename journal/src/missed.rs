//! The commits to a tree that memory no longer keeps, for a watch that begins far back, or after another opening.

use std::sync::Arc;

use weald_forest::{Forest, Seen, TreeHandle, Version};

use crate::disk_forest::DiskForest;
use crate::open_forest_error::OpenForestError;
use crate::past::Moment;
use crate::read_only_forest::ReadOnlyForest;
use crate::read_only_journal::ReadOnlyJournal;

/// How many records are replayed at once, at most.
const MANY: usize = 1024;

impl DiskForest {
    /// The commits to a tree after a version, from the history on the medium. It returns the oldest of them, at most 1,024;
    /// call again for more. It returns none when no further commit is durable. A watch that was told [`TooOld`](weald_forest::WatchError::TooOld) catches up with them, and begins
    /// behind the last one. It takes the time of the checkpoint before the version, and of the records behind that.
    ///
    /// ```
    /// use pollster::block_on;
    /// use weald_forest::{Attributes, Forest, Path, Since, WatchError};
    /// use weald_journal::{DiskForest, DiskJournal};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let journal = DiskJournal::open(directory.path())?;
    /// // It keeps ten versions in memory.
    /// let forest = block_on(DiskForest::recover(Forest::builder().keep(10), journal))?;
    /// let notes = block_on(forest.create("notes"))?;
    /// let mut last = notes.view().version();
    /// for _ in 0..100 {
    ///     let mut edit = notes.edit();
    ///     edit.append(edit.root(), Attributes::new())?;
    ///     block_on(edit.commit())?;
    /// }
    ///
    /// let mut commits = 0;
    /// let watch = loop {
    ///     match notes.watch(&Path::default(), Since::Version(last)) {
    ///         Err(WatchError::TooOld { .. }) => {
    ///             for seen in block_on(forest.missed(&notes, last))? {
    ///                 commits += seen.changes().count();
    ///                 last = seen.after.version();
    ///             }
    ///         }
    ///         watch => break watch?,
    ///     }
    /// };
    /// # drop(watch);
    /// assert!(commits >= 90);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn missed(
        &self,
        tree: &TreeHandle,
        since: Version,
    ) -> Result<Vec<Seen>, OpenForestError> {
        let core = self.journal().core();
        loop {
            let journal = ReadOnlyJournal::open_beside(Arc::clone(&core.medium), &core.settings)?;
            let outcome = missed(&journal, tree.number(), since).await;
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }
}

async fn missed(
    journal: &ReadOnlyJournal,
    number: u64,
    since: Version,
) -> Result<Vec<Seen>, OpenForestError> {
    let begin = journal.at(Moment::Version(since))?.end();
    let (mut after, mut most) = (begin, MANY);
    loop {
        let entries = journal.entries(after, most);
        let entries = entries.map_err(|error| OpenForestError::Past(error.into()))?;
        let Some(last) = entries.last() else {
            return Ok(Vec::new());
        };
        let upto = journal.between(begin, last);
        let upto = upto.map_err(|error| OpenForestError::Past(error.into()))?;
        let builder = Forest::builder().keep(MANY + 1);
        let forest = ReadOnlyForest::recover(builder, upto).await?;
        let trees = forest.list().into_iter();
        let mut trees = trees.filter_map(|name| forest.get(&name).ok());
        let Some(tree) = trees.find(|tree| tree.number() == number) else {
            // The tree is gone at the end of this range: halve the range until it ends before the deletion.
            if most == 1 {
                return Ok(Vec::new());
            }
            most = most.div_ceil(2).min(entries.len().max(2) - 1);
            continue;
        };
        let versions = tree.versions();
        let new = versions.partition_point(|version| version.version() <= since);
        let pairs = versions[new.saturating_sub(1)..].windows(2);
        let seen: Vec<_> = pairs
            .map(|pair| Seen {
                before: pair[0].clone(),
                after: pair[1].clone(),
            })
            .collect();
        if !seen.is_empty() {
            return Ok(seen);
        }
        after = last.position;
    }
}
