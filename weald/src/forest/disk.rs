//! The forest on disk in Weald: `weald_journal`, with forests that know which unit of Weald runs.
//!
//! Everything that is not defined here is `weald_journal`'s own.

use std::ops::Deref;
use std::path::Path;

pub use weald_journal::*;

use super::Builder;

/// A forest whose commits survive the end of the program and the loss of power; see [`weald_journal::DiskForest`], whose
/// methods it has. A clone is the same forest.
///
/// ```
/// use weald::forest::{Attributes, disk::DiskForest};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().to_owned();
/// let length = weald::block_on(weald::spawn(async move {
///     let forest = DiskForest::open(&path).await?;
///     let notes = forest.create("notes").await?;
///     let mut edit = notes.edit();
///     let root = edit.root();
///     edit.append(root, Attributes::new().with("text", "hello"))?;
///     edit.commit().await?; // From here on it survives the loss of power.
///     drop((forest, notes));
///
///     let forest = DiskForest::open(&path).await?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(forest.get("notes")?.view().tree().len())
/// }))?;
/// assert_eq!(length?, 2);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiskForest(weald_journal::DiskForest);

impl DiskForest {
    /// Opens the forest in a directory, with the default settings. What is missing is created. The directory is read on a
    /// thread that serves no job ([`blocking`](crate::blocking)); then the caller's thread makes the trees, in the time of
    /// the newest checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path> + Send) -> Result<Self, OpenForestError> {
        let journal = crate::blocking(|| DiskJournal::open(path))?;
        Self::recover(super::Forest::builder(), journal).await
    }

    /// Opens the forest that a journal has, with these settings.
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(builder: Builder, journal: DiskJournal) -> Result<Self, OpenForestError> {
        let forest = weald_journal::DiskForest::recover(builder.0, journal);
        Ok(Self(forest.await?))
    }
}

impl Deref for DiskForest {
    type Target = weald_journal::DiskForest;

    fn deref(&self) -> &weald_journal::DiskForest {
        &self.0
    }
}

/// A forest on disk that is only read, also while a program has it open; see [`weald_journal::ReadOnlyForest`], whose
/// methods it has. A clone is the same.
///
/// ```
/// use weald::forest::disk::{DiskForest, ReadOnlyForest};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().to_owned();
/// let names = weald::block_on(weald::spawn(async move {
///     let forest = DiskForest::open(&path).await?;
///     forest.create("notes").await?;
///     let seen = ReadOnlyForest::open(&path).await?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(seen.list())
/// }))?;
/// assert_eq!(names?, ["notes"]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadOnlyForest(weald_journal::ReadOnlyForest);

impl ReadOnlyForest {
    /// Opens the forest in a directory for reading, with the default settings. The directory is read on a thread that
    /// serves no job ([`blocking`](crate::blocking)); then the caller's thread makes the trees, in the time of the newest
    /// checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path> + Send + Sync) -> Result<Self, OpenForestError> {
        loop {
            let journal = crate::blocking(|| ReadOnlyJournal::open(&path))?;
            let outcome = Self::recover(super::Forest::builder(), journal.clone()).await;
            // A writer may remove files while they are read.
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }

    /// The forest that a journal has, with these settings.
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(
        builder: Builder,
        journal: ReadOnlyJournal,
    ) -> Result<Self, OpenForestError> {
        let forest = weald_journal::ReadOnlyForest::recover(builder.0, journal);
        Ok(Self(forest.await?))
    }
}

impl Deref for ReadOnlyForest {
    type Target = weald_journal::ReadOnlyForest;

    fn deref(&self) -> &weald_journal::ReadOnlyForest {
        &self.0
    }
}
