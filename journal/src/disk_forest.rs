//! A forest on disk: the forest and its journal, opened together.

use std::ops::Deref;
use std::path::Path;

use weald_forest::journal::{CheckpointError, Journal};
use weald_forest::{Builder, Forest, RecoverError};

use crate::disk_journal::DiskJournal;
use crate::error::OpenError;

/// Why a forest on disk cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenForestError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The journal was opened, and the forest cannot be read from it.
    #[error("the forest cannot be read from its journal: {0}")]
    Recover(#[from] RecoverError),
}

/// A forest on disk. A clone is the same forest.
///
/// A commit is acknowledged when it is durable, unless it asks for less ([`Commit::level`](weald_forest::Commit::level)).
/// When the last clone and the last handle of its trees go, everything is written and synced.
///
/// ```
/// use pollster::block_on;
/// use weald_forest::Attributes;
/// use weald_journal::DiskForest;
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
#[derive(Clone, Debug)]
pub struct DiskForest {
    forest: Forest,
    journal: DiskJournal,
}

impl DiskForest {
    /// Opens the forest in a directory, with the default settings. What is missing is created. It takes the time of the
    /// newest checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenForestError> {
        let journal = DiskJournal::open(path)?;
        Self::recover(Forest::builder(), journal).await
    }

    /// Opens the forest that a journal has, with these settings.
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(builder: Builder, journal: DiskJournal) -> Result<Self, OpenForestError> {
        let forest = builder.journal(journal.clone()).recover().await?;
        Ok(Self { forest, journal })
    }

    /// The journal.
    pub fn journal(&self) -> &DiskJournal {
        &self.journal
    }

    /// Puts a checkpoint, from which the next opening begins, and waits until it is durable. Others commit meanwhile. The
    /// thread that polls does the work, which grows with the nodes of all kept versions that they do not share.
    ///
    /// # Errors
    /// [`CheckpointError`]. The one before is still there then.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        let checkpoint = self.forest.checkpoint().await?;
        self.journal.put_checkpoint(checkpoint).await
    }
}

impl Deref for DiskForest {
    type Target = Forest;

    fn deref(&self) -> &Forest {
        &self.forest
    }
}
