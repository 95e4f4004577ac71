//! The database: named trees that keep their versions, and commits that advance them.
//!
#![doc = include_str!("pages/forest.md")]
//!
//! # In units of Weald
//!
//! Units of Weald share OS threads, so an update is marked with its unit, and not with its thread. Other units may
//! commit on the same thread while the closure of the update waits; a commit by that closure is refused. To wait in
//! straight-line code use [`Wait`](crate::Wait): the worker runs other jobs meanwhile.

use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;

#[cfg(feature = "disk")]
pub mod disk;

#[cfg(feature = "disk")]
pub mod guide {
    //! Small programs for what people build on trees with versions: a wiki with history, an outline with undo, a bank,
    //! paging, stale forms, a forest on disk.
    //!
    // The page has these links, too, to the files of the repository; the first definition counts.
    //! [commits.md]: crate::forest::commits
    //! [from-other-stores.md]: crate::forest::from_other_stores
    #![doc = include_str!("../docs/forest.md")]
}

pub mod from_other_stores {
    //! What the forest shares with other versioned stores, and what it does otherwise.
    //!
    #![doc = include_str!("../docs/from-other-stores.md")]
}

pub use weald_forest::*;

/// A database of trees; see [`weald_forest::Forest`], whose methods it has. A clone is the same forest.
///
/// While a closure of [`TreeHandle::update`] waits, other processes, threads and callbacks of Weald commit as
/// usual; only the unit that runs the closure is refused, with [`CommitError::Reentrant`].
///
/// ```
/// use weald::Wait;
/// use weald::forest::{CommitError, EditError, Forest, UpdateError};
///
/// weald::block_on(async {
///     let forest = Forest::new();
///     let notes = forest.create("notes").await?;
///     let within = notes.update(|_| Ok::<_, EditError>(forest.create("more").wait().unwrap_err()));
///     assert_eq!(within.await?.0, CommitError::Reentrant);
///     Ok::<(), UpdateError<EditError>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Forest(weald_forest::Forest);

impl Forest {
    /// A forest in memory, with the default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// The settings of a forest.
    pub fn builder() -> Builder {
        let builder = weald_forest::Forest::builder();
        Builder(builder.running(running).pacing(goes_on))
    }
}

impl Default for Forest {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Forest {
    type Target = weald_forest::Forest;

    fn deref(&self) -> &weald_forest::Forest {
        &self.0
    }
}

/// The settings of a forest that is yet to be built; see [`weald_forest::Builder`].
///
/// ```
/// use weald::forest::Forest;
///
/// let forest = Forest::builder().keep(10).build();
/// assert_eq!(forest.list(), Vec::<String>::new());
/// ```
pub struct Builder(weald_forest::Builder);

impl Builder {
    /// How many of the newest versions of each tree are kept in memory, at least one; by default [`KEPT`].
    /// Tagged versions are kept as well.
    #[must_use]
    pub fn keep(self, versions: usize) -> Self {
        Self(self.0.keep(versions))
    }

    /// Where the time comes from; by default the operating system.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(self.0.clock(clock))
    }

    /// The journal, which takes each commit before it is visible; by default there is none.
    #[must_use]
    pub fn journal(self, journal: impl Journal) -> Self {
        Self(self.0.journal(journal))
    }

    /// The level that a commit must have reached before it is acknowledged; see
    /// [`weald_forest::Builder::level`].
    #[must_use]
    pub fn level(self, level: Level) -> Self {
        Self(self.0.level(level))
    }

    /// The forest that the journal has; see [`weald_forest::Builder::recover`]. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`RecoverError`].
    pub async fn recover(self) -> Result<Forest, RecoverError> {
        self.0.recover().await.map(Forest)
    }

    /// The forest, without trees. The records of the journal are not read.
    pub fn build(self) -> Forest {
        Forest(self.0.build())
    }
}

/// The unit that runs on this thread. Its number is unique as long as it lives, and a mark is removed before
/// its unit ends.
fn running() -> Option<u64> {
    match weald_sync::unit::with(weald_sync::unit::Unit::id) {
        0 => None,
        unit => Some(unit as u64),
    }
}

/// How many reductions a commit takes. It takes as long as some ten messages, and those who wait for the same tree wait
/// for the turns of all others.
const OF_A_COMMIT: u32 = 8;

/// Spends reductions of the unit that runs on this thread, as every operation does. If it has none left, others have
/// their turn first.
fn goes_on(waker: &Waker) -> bool {
    let goes_on = weald_sync::unit::with(|unit| unit.spend_many(OF_A_COMMIT));
    if !goes_on {
        weald_sync::hooks::give_way(waker);
    }
    goes_on
}
