//! The commits to a tree that memory no longer keeps, for a watch that begins far back, or after another opening.

use weald_forest::journal::{Change, Entry, Position, ReadError, Stored};
use weald_forest::{Forest, Seen, TreeHandle, Version};
use weald_tree::Ids;

use crate::disk_forest::DiskForest;
use crate::open_forest_error::OpenForestError;
use crate::past::{Moment, PastError};
use crate::read_only_forest::ReadOnlyForest;
use crate::read_only_journal::ReadOnlyJournal;

/// How many versions are shown at once, at most.
const MANY: usize = 1024;

impl DiskForest {
    /// The commits to a tree after a version, from the history on the medium. It returns the oldest of them, at most
    /// 1,024; call again for more. It returns none when no further commit is durable. A watch that was told
    /// [`TooOld`](weald_forest::WatchError::TooOld) catches up with them, and begins behind the last one. It takes the
    /// time of the checkpoint before the version, and of the records behind that. Each record is read a few times,
    /// however many trees there are. An erasable value that memory has let go is not among what it returns: there it
    /// reads as the plain bytes of its reference; [`at`](Self::at) has it. Cancel-safe.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Attributes, Forest, Path, Since, WatchError};
    /// use weald::forest::disk::{DiskForest, DiskJournal};
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
    ///             for seen in block_on(forest.commits_after(&notes, last))? {
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
    /// [`OpenForestError`]; [`PastError::Failed`], if the journal has failed or was closed.
    pub async fn commits_after(
        &self,
        tree: &TreeHandle,
        since: Version,
    ) -> Result<Vec<Seen>, OpenForestError> {
        self.wait_until_durable(since).await?;
        loop {
            let journal = self.journal_beside()?;
            let outcome = commits_after(&journal, tree.number(), since).await;
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }
}

/// Looks through the records for those of the tree, and replays once, up to the last one that is to be shown.
async fn commits_after(
    journal: &ReadOnlyJournal,
    number: u64,
    since: Version,
) -> Result<Vec<Seen>, OpenForestError> {
    let begin = journal.at(Moment::Version(since))?.end();
    let last = last_of(journal, number, begin).map_err(PastError::Read)?;
    let Some(last) = last else {
        return Ok(Vec::new());
    };
    let upto = journal.between(begin, &last).map_err(PastError::Read)?;
    let builder = Forest::builder().keep(MANY + 1);
    let forest = ReadOnlyForest::recover(builder, upto).await?;
    let trees = forest.list().into_iter();
    let mut trees = trees.filter_map(|name| forest.get(&name).ok());
    let Some(tree) = trees.find(|tree| tree.number() == number) else {
        return Ok(Vec::new());
    };
    let versions = tree.versions();
    let new = versions.partition_point(|version| version.version() <= since);
    let pairs = versions[new.saturating_sub(1)..].windows(2);
    let seen = pairs.map(|pair| Seen {
        before: pair[0].clone(),
        after: pair[1].clone(),
    });
    Ok(seen.collect())
}

/// The last of the records after a position, at most [`MANY`], that bring a version of a tree.
fn last_of(
    journal: &ReadOnlyJournal,
    number: u64,
    mut after: Position,
) -> Result<Option<Entry>, ReadError> {
    let (mut last, mut found) = (None, 0);
    loop {
        let entries = journal.entries(after, MANY)?;
        let Some(end) = entries.last() else {
            return Ok(last);
        };
        after = end.position;
        for entry in entries {
            let changes = changes(&entry)?;
            let is_its = |change: &Change| match change {
                Change::Edit { tree, .. }
                | Change::AddIndex { tree, .. }
                | Change::DropIndex { tree, .. } => *tree == number,
                _ => false,
            };
            let is_its_end =
                |change: &Change| matches!(change, Change::Delete { tree } if *tree == number);
            if changes.iter().any(is_its_end) {
                return Ok(last);
            }
            if changes.iter().any(is_its) {
                found += 1;
                last = Some(entry);
            }
            if found == MANY {
                return Ok(last);
            }
        }
    }
}

fn changes(entry: &Entry) -> Result<Vec<Change>, ReadError> {
    // Only the numbers of the trees are looked at, so any source of ids will do.
    let read = || Stored::read(&entry.record)?.changes(&mut |_| Some(Ids::new()));
    read().map_err(|error| ReadError::Failed(error.to_string()))
}
