//! A forest on disk that is only read, even while a program has it open.

use std::ops::Deref;
use std::path::Path;

use weald_forest::{Builder, Forest};

use crate::open_forest_error::OpenForestError;
use crate::past::Moment;
use crate::read_only_journal::ReadOnlyJournal;
use crate::settings::Settings;

/// A forest on disk that is only read; a clone is the same. It shows what was durable when it was opened, takes no
/// lock, and changes no file, so any number of processes may have it, beside the one that writes. Every commit is
/// refused with [`AppendError::ReadOnly`](weald_forest::AppendError::ReadOnly). A future that is dropped here has
/// changed nothing.
///
/// ```
/// use weald::block_on;
/// use weald::forest::disk::{DiskForest, ReadOnlyForest};
///
/// let directory = tempfile::tempdir()?;
/// let forest = block_on(DiskForest::open(directory.path()))?;
/// block_on(forest.create("notes"))?;
///
/// let seen = block_on(ReadOnlyForest::open(directory.path()))?;
/// block_on(forest.create("later"))?;
/// assert_eq!(seen.list(), ["notes"]);
/// assert!(block_on(seen.create("mine")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadOnlyForest {
    forest: Forest,
    journal: ReadOnlyJournal,
}

impl ReadOnlyForest {
    /// Opens the forest in a directory for reading, with the default settings. It takes the time of the newest
    /// checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenForestError> {
        Self::open_with(path, Forest::builder).await
    }

    /// Opens the forest in a directory for reading, with the settings that `builder` makes; it may be called more than
    /// once, because a writer may remove files that are being read. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open_with(
        path: impl AsRef<Path>,
        builder: impl Fn() -> Builder,
    ) -> Result<Self, OpenForestError> {
        Self::open_sealed(path, &Settings::new(), builder).await
    }

    /// The same with the master key of the journal's settings, if it has one. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open_sealed(
        path: impl AsRef<Path>,
        settings: &Settings,
        builder: impl Fn() -> Builder,
    ) -> Result<Self, OpenForestError> {
        loop {
            let journal = ReadOnlyJournal::open_sealed(&path, settings)?;
            let outcome = Self::recover(builder(), journal.clone()).await;
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }

    /// Opens the forest in a directory as it was at any moment within the kept history. Only the newest version of each
    /// tree is there, and what was erased since stays erased. It takes the time of the checkpoint before the moment,
    /// and of the records between both. Dropping the future loses nothing.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::disk::{DiskForest, Moment, ReadOnlyForest};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let forest = block_on(DiskForest::open(directory.path()))?;
    /// let notes = block_on(forest.create("notes"))?;
    /// let then = notes.view().version();
    /// block_on(forest.rename("notes", "old notes"))?;
    ///
    /// let past = block_on(ReadOnlyForest::at(directory.path(), Moment::Version(then)))?;
    /// assert_eq!(past.list(), ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at(path: impl AsRef<Path>, moment: Moment) -> Result<Self, OpenForestError> {
        Self::at_sealed(path, &Settings::new(), moment).await
    }

    /// The same with the master key of the journal's settings, if it has one. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at_sealed(
        path: impl AsRef<Path>,
        settings: &Settings,
        moment: Moment,
    ) -> Result<Self, OpenForestError> {
        let open = || Ok(ReadOnlyJournal::open_sealed(&path, settings)?);
        Self::past(open, moment, || Forest::builder().keep(1)).await
    }

    /// The same in whatever `open` opens, with the settings that `builder` makes: the versions of each tree that it
    /// keeps are there, as far as they come after the checkpoint before the moment.
    pub(crate) async fn past(
        open: impl Fn() -> Result<ReadOnlyJournal, OpenForestError>,
        moment: Moment,
        builder: impl Fn() -> Builder,
    ) -> Result<Self, OpenForestError> {
        loop {
            let journal = open()?;
            let outcome = match journal.at(moment) {
                Ok(past) => Self::recover(builder(), past).await,
                Err(error) => Err(error.into()),
            };
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }

    /// The forest that a journal has, with these settings. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(
        builder: Builder,
        journal: ReadOnlyJournal,
    ) -> Result<Self, OpenForestError> {
        let forest = builder.journal(journal.clone()).recover().await?;
        Ok(Self { forest, journal })
    }

    /// The journal.
    pub fn journal(&self) -> &ReadOnlyJournal {
        &self.journal
    }
}

impl Deref for ReadOnlyForest {
    type Target = Forest;

    fn deref(&self) -> &Forest {
        &self.forest
    }
}
