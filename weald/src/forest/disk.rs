//! A forest on disk: a commit that it has acknowledged as durable survives everything short of losing the medium.
//!
#![doc = include_str!("../pages/disk.md")]
//!
//! # Cancel safety
//! The futures of this module are cancel-safe. Each does its work within one poll, in which its job waits with its
//! stack ([`blocking`](crate::blocking)): so the future is dropped before the work begins, or after it has ended. A job
//! that is cancelled meanwhile ends when the work has ended.

use std::ops::Deref;
use std::path::Path;

pub use weald_journal::*;

use super::journal::CheckpointError;
use super::{Builder, Level, Seen, TreeHandle, Version};
use crate::Wait;

/// A forest whose commits survive the end of the program and the loss of power; see [`weald_journal::DiskForest`],
/// whose methods it has. A clone is the same forest.
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
    /// Opens the forest in a directory, with the default settings. A missing directory is created, as are those above
    /// it: check a path that somebody typed. A directory with other files is taken, too. The directory is
    /// read, and the trees are made, on a thread that serves no job ([`blocking`](crate::blocking)), in the time of the
    /// newest checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path> + Send) -> Result<Self, OpenForestError> {
        let journal = crate::blocking(|| DiskJournal::open(path))?;
        Self::recover(super::Forest::builder(), journal).await
    }

    /// Opens the forest that a journal has, with these settings. The files are read, and the trees are made, on a
    /// thread that serves no job ([`blocking`](crate::blocking)).
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(builder: Builder, journal: DiskJournal) -> Result<Self, OpenForestError> {
        let recover = weald_journal::DiskForest::recover;
        crate::blocking(|| recover(builder.0, journal).wait()).map(Self)
    }

    /// The forest as it was at a moment that its history on the medium covers; see [`weald_journal::DiskForest::at`].
    /// It is read and made on a thread that serves no job ([`blocking`](crate::blocking)).
    ///
    /// ```
    /// use weald::forest::disk::{DiskForest, Moment};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let names = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     let then = forest.create("notes").await?.view().version();
    ///     forest.rename("notes", "old notes").await?;
    ///     let past = forest.at(Moment::Version(then)).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(past.list())
    /// }))?;
    /// assert_eq!(names?, ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at(&self, moment: Moment) -> Result<ReadOnlyForest, OpenForestError> {
        self.at_with(moment, 1).await
    }

    /// The same, with the last `versions` versions of each tree up to the moment; see
    /// [`weald_journal::DiskForest::at_with`].
    ///
    /// ```
    /// use weald::forest::disk::{DiskForest, Moment};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let kept = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     let notes = forest.create("notes").await?;
    ///     let first = notes.view().version();
    ///     notes.add_index("text").await?;
    ///     let then = notes.view().version();
    ///     let past = forest.at_with(Moment::Version(then), 2).await?.get("notes")?;
    ///     let versions: Vec<_> = past.versions().iter().map(|it| it.version()).collect();
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(versions == [first, then])
    /// }))?;
    /// assert!(kept?);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at_with(
        &self,
        moment: Moment,
        versions: usize,
    ) -> Result<ReadOnlyForest, OpenForestError> {
        if let Moment::Version(version) = moment {
            self.wait_until_durable(version).await;
        }
        let past = crate::blocking(|| self.0.at_with(moment, versions).wait());
        past.map(ReadOnlyForest)
    }

    /// The commits to a tree after a version; see [`weald_journal::DiskForest::commits_after`]. They are read on a
    /// thread that serves no job ([`blocking`](crate::blocking)).
    ///
    /// ```
    /// use weald::forest::{Attributes, disk::DiskForest};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let commits = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     let notes = forest.create("notes").await?;
    ///     let since = notes.view().version();
    ///     let mut edit = notes.edit();
    ///     edit.append(edit.root(), Attributes::new())?;
    ///     edit.commit().await?;
    ///     let missed = forest.commits_after(&notes, since).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(missed.len())
    /// }))?;
    /// assert_eq!(commits?, 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn commits_after(
        &self,
        tree: &TreeHandle,
        since: Version,
    ) -> Result<Vec<Seen>, OpenForestError> {
        self.wait_until_durable(since).await;
        crate::blocking(|| self.0.commits_after(tree, since).wait())
    }

    /// Waits before a thread is taken. Whether the version became durable is asked again there.
    async fn wait_until_durable(&self, version: Version) {
        let _ = self.when_durable(version, Level::Durable).await;
    }

    /// Puts a checkpoint, and waits until it is durable; see [`weald_journal::DiskForest::checkpoint`]. It is made and
    /// written on a thread that serves no job ([`blocking`](crate::blocking)).
    ///
    /// # Errors
    /// [`CheckpointError`]. The one before is still there then.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        crate::blocking(|| self.0.checkpoint().wait())
    }

    /// Closes the forest, even if others still have it; see [`weald_journal::DiskForest::close`]. Other jobs run
    /// meanwhile. The drop of the last handle closes the forest as well, and keeps its OS thread for as long as the
    /// last sync takes.
    ///
    /// ```
    /// use weald::forest::disk::DiskForest;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let names = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     forest.create("notes").await?;
    ///     forest.close().await;
    ///     let again = DiskForest::open(&path).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(again.list())
    /// }))?;
    /// assert_eq!(names?, ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub async fn close(&self) {
        crate::blocking(|| self.0.close());
    }
}

impl Deref for DiskForest {
    type Target = weald_journal::DiskForest;

    fn deref(&self) -> &weald_journal::DiskForest {
        &self.0
    }
}

/// A forest on disk that is only read, even while a program has it open; see [`weald_journal::ReadOnlyForest`], whose
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
    /// Opens the forest in a directory for reading, with the default settings. The directory is read, and
    /// the trees are made, on a thread that serves no job ([`blocking`](crate::blocking)), in the time of the newest
    /// checkpoint and of the records after it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open(path: impl AsRef<Path> + Send + Sync) -> Result<Self, OpenForestError> {
        Self::open_with(path, super::Forest::builder).await
    }

    /// Opens the forest in a directory for reading, with the settings that `builder` makes; it may be called more than
    /// once, because a writer may remove files that are being read.
    ///
    /// ```
    /// use weald::forest::{Forest, disk::{DiskForest, ReadOnlyForest}};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let kept = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     let notes = forest.create("notes").await?;
    ///     notes.add_index("text").await?;
    ///     let seen = ReadOnlyForest::open_with(&path, || Forest::builder().keep(1)).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(seen.get("notes")?.versions().len())
    /// }))?;
    /// assert_eq!(kept?, 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open_with(
        path: impl AsRef<Path> + Send + Sync,
        builder: impl Fn() -> Builder,
    ) -> Result<Self, OpenForestError> {
        Self::open_sealed(path, &Settings::new(), builder).await
    }

    /// The same with the master key of the journal's settings, if it has one.
    ///
    /// ```
    /// use weald::forest::Forest;
    /// use weald::forest::disk::{
    ///     DiskForest, DiskJournal, Directory, MasterKey, ReadOnlyForest, Settings,
    /// };
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let settings = || Settings::new().master_key(MasterKey::new([7; 32]));
    /// let bytes = weald::block_on(weald::spawn(async move {
    ///     let journal = DiskJournal::open_on(Directory::create(&path)?, settings())?;
    ///     let forest = DiskForest::recover(Forest::builder(), journal).await?;
    ///     let notes = forest.create("notes").await?;
    ///     let mut edit = notes.edit();
    ///     edit.put_erasable(edit.root(), "secret", "hush")?;
    ///     edit.commit().await?;
    ///     let seen = ReadOnlyForest::open_sealed(&path, &settings(), Forest::builder).await?;
    ///     let notes = seen.get("notes")?;
    ///     let view = notes.view();
    ///     let value = seen.value(view.tree().root(), "secret").unwrap();
    ///     let bytes = value.bytes().map(<[u8]>::to_vec);
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(bytes)
    /// }))?;
    /// assert_eq!(bytes?.unwrap(), b"hush");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn open_sealed(
        path: impl AsRef<Path> + Send + Sync,
        settings: &Settings,
        builder: impl Fn() -> Builder,
    ) -> Result<Self, OpenForestError> {
        loop {
            let journal = crate::blocking(|| ReadOnlyJournal::open_sealed(&path, settings))?;
            let outcome = Self::recover(builder(), journal.clone()).await;
            // A writer may remove files while they are read.
            if outcome.is_ok() || journal.is_whole() {
                return outcome;
            }
        }
    }

    /// Opens the forest in a directory as it was at a moment that its kept history covers; see
    /// [`weald_journal::ReadOnlyForest::at`]. It is read and made on a thread that serves no job
    /// ([`blocking`](crate::blocking)).
    ///
    /// ```
    /// use weald::forest::disk::{DiskForest, Moment, ReadOnlyForest};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().to_owned();
    /// let names = weald::block_on(weald::spawn(async move {
    ///     let forest = DiskForest::open(&path).await?;
    ///     let then = forest.create("notes").await?.view().version();
    ///     forest.delete("notes").await?;
    ///     let past = ReadOnlyForest::at(&path, Moment::Version(then)).await?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(past.list())
    /// }))?;
    /// assert_eq!(names?, ["notes"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at(
        path: impl AsRef<Path> + Send + Sync,
        moment: Moment,
    ) -> Result<Self, OpenForestError> {
        Self::at_sealed(path, &Settings::new(), moment).await
    }

    /// The same with the master key of the journal's settings, if it has one.
    ///
    /// # Errors
    /// [`OpenForestError`].
    pub async fn at_sealed(
        path: impl AsRef<Path> + Send + Sync,
        settings: &Settings,
        moment: Moment,
    ) -> Result<Self, OpenForestError> {
        let path = path.as_ref();
        let past = weald_journal::ReadOnlyForest::at_sealed;
        crate::blocking(|| past(path, settings, moment).wait()).map(Self)
    }

    /// The forest that a journal has, with these settings. The files are read, and the trees are made, on a thread that
    /// serves no job ([`blocking`](crate::blocking)).
    ///
    /// # Errors
    /// [`OpenForestError::Recover`].
    pub async fn recover(
        builder: Builder,
        journal: ReadOnlyJournal,
    ) -> Result<Self, OpenForestError> {
        let recover = weald_journal::ReadOnlyForest::recover;
        crate::blocking(|| recover(builder.0, journal).wait()).map(Self)
    }
}

impl Deref for ReadOnlyForest {
    type Target = weald_journal::ReadOnlyForest;

    fn deref(&self) -> &weald_journal::ReadOnlyForest {
        &self.0
    }
}
