//! A forest on disk: the forest and its journal, opened together.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use weald_forest::journal::{CheckpointError, Journal};
use weald_forest::{Builder, DurableError, Forest, Level, Version, VersionError};

use crate::disk_journal::DiskJournal;
use crate::error::OpenError;
use crate::keeper::{Keeper, Kept};
use crate::open_forest_error::OpenForestError;
use crate::past::{Moment, PastError};
use crate::read_only_forest::ReadOnlyForest;
use crate::read_only_journal::ReadOnlyJournal;

/// A forest on disk. A clone is the same forest.
///
/// A commit is acknowledged when it is durable, unless it asks for less
/// ([`Commit::level`](weald_forest::Commit::level)). When the last clone and the last handle of its trees go,
/// everything is written and synced, and the lock is given back. That has happened when the drop of the last clone
/// returns, if the handles of trees went before; otherwise it may happen a moment later, on a thread of the journal or
/// of an author. Keep a clone for as long as there are commits: with handles of trees alone they are kept as well, but
/// no checkpoint is put by itself, and nothing is trimmed.
///
/// ```
/// use weald::block_on;
/// use weald::forest::Attributes;
/// use weald::forest::disk::DiskForest;
///
/// let directory = tempfile::tempdir()?;
/// let forest = block_on(DiskForest::open(directory.path()))?;
/// let notes = block_on(forest.create("notes"))?;
/// let mut edit = notes.edit();
/// let root = edit.root();
/// edit.append(root, Attributes::new().with("text", "hello"))?;
/// block_on(edit.commit())?; // From here on it survives the loss of power.
/// drop((forest, notes));
///
/// let forest = block_on(DiskForest::open(directory.path()))?;
/// assert_eq!(forest.get("notes")?.view().tree().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DiskForest {
    // Dropped first: until it has ended it may have what is kept.
    keeper: Arc<Keeper>,
    kept: Arc<Kept>,
}

impl DiskForest {
    /// Opens the forest in a directory, with the default settings. A missing directory is created. It takes the time of
    /// the newest checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenForestError> {
        let journal = DiskJournal::open(path)?;
        Self::recover(Forest::builder(), journal).await
    }

    /// Opens the forest that a journal has, with these settings: `builder` has those of the forest, and the journal was
    /// opened with its own ([`DiskJournal::open_on`]). Dropping the future loses nothing; without another clone of the
    /// journal it also closes the journal.
    ///
    /// # Errors
    /// [`OpenForestError::Recover`]; [`OpenForestError::Journal`], if no thread can be started.
    pub async fn recover(builder: Builder, journal: DiskJournal) -> Result<Self, OpenForestError> {
        let forest = builder.journal(journal.clone()).recover().await?;
        let kept = Arc::new(Kept::new(forest, journal));
        kept.catch_up().await;
        let keeper = Keeper::begin(&kept).map_err(|error| OpenError::Failed {
            medium: kept.journal.medium().name(),
            doing: "starting a thread failed",
            error,
        })?;
        Ok(Self {
            keeper: Arc::new(keeper),
            kept,
        })
    }

    /// The forest as it was at any moment within the kept history, even before it was opened; by default all of the
    /// history is kept. [`TreeHandle::at`](weald_forest::TreeHandle::at) shows only what memory keeps. See
    /// [`ReadOnlyForest::at`]. It reads what is durable, beside the writers; a version that is visible and not yet
    /// durable is waited for. Cancel-safe.
    ///
    /// Trees, nodes and values may be taken from there into this forest. With a reference to an erasable value its
    /// bytes come back, and can be erased again. If they were erased or trimmed, the commit is refused with
    /// [`CommitError::Bytes`](weald_forest::CommitError::Bytes): delete the attribute from what is taken.
    ///
    /// It shares the erasable bytes that memory has. What was erased before it is opened is not in it. An erasure
    /// afterwards does not reach it: it keeps the bytes, and shows them, until it is dropped, and only then they are
    /// overwritten in memory. So drop it after an erasure, and open it again.
    ///
    /// # Errors
    /// [`OpenForestError`]; [`PastError::Failed`], if the journal has failed or was closed.
    pub async fn at(&self, moment: Moment) -> Result<ReadOnlyForest, OpenForestError> {
        self.at_with(moment, 1).await
    }

    /// The same, with the versions that led to the moment: of each tree the last `versions` up to then, as far as they
    /// come after the checkpoint before the moment. So one reading of the medium shows what happened, and not only what
    /// came of it. See [`at`](Self::at). Cancel-safe.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub async fn at_with(
        &self,
        moment: Moment,
        versions: usize,
    ) -> Result<ReadOnlyForest, OpenForestError> {
        if let Moment::Version(version) = moment {
            self.wait_until_durable(version).await?;
        }
        let builder = || Forest::builder().keep(versions).beside(self.kept.forest());
        ReadOnlyForest::past(|| self.journal_beside(), moment, builder).await
    }

    /// Waits for a version that is visible and not yet durable.
    pub(crate) async fn wait_until_durable(&self, version: Version) -> Result<(), PastError> {
        match self.when_durable(version, Level::Durable).await {
            Err(DurableError::Unknown(_) | DurableError::Version(VersionError::Lost { .. })) => {
                Err(PastError::Failed)
            }
            // If it is not a version of this opening, the history tells which opening made it.
            _ => Ok(()),
        }
    }

    /// What the journal has, for reading, as far as it is durable.
    pub(crate) fn journal_beside(&self) -> Result<ReadOnlyJournal, OpenForestError> {
        let core = self.kept.journal.core();
        if core.state().failed.is_some() {
            return Err(PastError::Failed.into());
        }
        let durable = core.marks.reached(Level::Durable);
        let medium = Arc::clone(&core.medium);
        Ok(ReadOnlyJournal::open_beside(
            medium,
            &core.settings,
            Some(durable),
        )?)
    }

    /// The journal.
    pub fn journal(&self) -> &DiskJournal {
        &self.kept.journal
    }

    /// Closes the forest, even if others still have it: writes and syncs everything, and gives the lock back. It
    /// returns when that is done. Trees in memory can still be read; commits are refused from then on.
    ///
    /// ```
    /// # use weald::block_on;
    /// # use weald_journal::DiskForest;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let forest = block_on(DiskForest::open(directory.path()))?;
    /// let notes = block_on(forest.create("notes"))?;
    /// forest.close();
    /// assert!(block_on(forest.create("more")).is_err());
    /// assert_eq!(notes.view().tree().len(), 1);
    ///
    /// let again = block_on(DiskForest::open(directory.path()))?;
    /// assert_eq!(again.list(), ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        self.keeper.end();
        self.kept.journal.close();
    }

    /// Puts a checkpoint, from which the next opening begins, and waits until it is durable. That happens by itself
    /// when enough was committed, see [`Settings::checkpoint_after`](crate::Settings::checkpoint_after). Others commit
    /// meanwhile. The thread that polls does the work, which grows with the nodes of all kept versions that they do not
    /// share. Cancel-safe: a future that is dropped has put no checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError`]. The one before is still there then.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        let checkpoint = self.kept.forest().checkpoint().await?;
        self.kept.journal.put_checkpoint(checkpoint).await
    }
}

impl Deref for DiskForest {
    type Target = Forest;

    fn deref(&self) -> &Forest {
        self.kept.forest()
    }
}

impl std::fmt::Debug for DiskForest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskForest")
            .field("forest", self.kept.forest())
            .field("journal", &self.kept.journal)
            .finish_non_exhaustive()
    }
}
