//! Watching a tree: its commits one after the other, each once, for a reader that may be slow.
//!
//! - The versions that the tree keeps are the buffer, so a watch costs writers only a wake, and a slow watch
//!   keeps only one version alive, the last that it yielded.
//! - A watch so slow that its next version is gone reports the version at which it resumes, and resumes there.
//! - The watching side finds out whether a commit touches the watched subtree.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use weald_tree::{Change, Climb, Diff, NodeId, Path, PathError};

use crate::error::VersionError;
use crate::journal::{Durability, Later, Level};
use crate::state::root::Snapshot;
use crate::tree_handle::TreeHandle;
use crate::version::Version;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// With the commits from now on.
    Now,
    /// With the commits after this version.
    Version(Version),
}

/// One commit that a watch has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The tree before.
    pub before: Snapshot,
    /// The tree as the commit left it, with the commit's id, time and bytes.
    pub after: Snapshot,
}

/// Why a watch cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// Memory no longer has the commits after the version. `DiskForest::commits_after` has them, if the forest is on
    /// disk.
    #[error(
        "the commits after that version are no longer kept in memory; a forest on disk has them with \
         `DiskForest::commits_after`. Or begin with version {oldest}, and read its tree first"
    )]
    TooOld {
        /// The oldest version from which a watch can begin.
        oldest: Version,
    },
    /// What has happened to names, tags and erasable values after the version is no longer known, or not from memory
    /// alone: [`Forest::events_since`](crate::Forest::events_since).
    #[error(
        "not everything that has happened to names, tags and erasable values since that version is still kept; read \
         the forest afresh, and begin with version {oldest}"
    )]
    Forgotten {
        /// The oldest version with which one can begin.
        oldest: Version,
    },
    /// The version does not exist, or is not one of this tree.
    #[error(transparent)]
    Version(VersionError),
    /// The path leads nowhere in the version at which the watch begins.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The version at which the watch begins does not have the node.
    #[error("the node {0} is not in the version at which the watch begins")]
    Missing(NodeId),
    /// Another tree gave out the id of the node.
    #[error(
        "the id {0} was given out by another tree; look the node up in the tree that is watched"
    )]
    OtherTree(NodeId),
}

/// Why a watch did not yield a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchEnd {
    /// The watch was too slow: versions were let go before it yielded them. It resumes with the commits after
    /// `resume_at`; [`Watch::last`] has the tree of that version, to be read afresh.
    #[error(
        "the watch was too slow and missed commits; read the tree of version {resume_at} and continue"
    )]
    Lagged {
        /// The version at which it resumes.
        resume_at: Version,
    },
    /// The tree was deleted, and all its commits were yielded.
    #[error("the tree was deleted, so no more commits come")]
    Deleted,
    /// The journal has failed or was closed. After a failure it is not known whether it has the commits that follow.
    #[error(
        "the journal has failed or was closed; open the forest again to see whether commits follow"
    )]
    Unknown,
}

/// The commits of a tree, or of a subtree, as they are made. See [`TreeHandle::watch`].
pub struct Watch {
    handle: TreeHandle,
    /// The watched node; `None` for the whole tree.
    under: Option<NodeId>,
    last: Snapshot,
    number: u64,
    /// The level that a commit must have reached before it is yielded.
    level: Level,
    /// The number of the next commit, which has not reached the level.
    reaching: Option<(u64, Later<'static, Durability>)>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl TreeHandle {
    /// Yields the commits that touch the node at a path, or anything below it, in their order. The path is
    /// resolved in the version at which the watch begins; the watch follows the node when it moves. The path
    /// of the root means the whole tree.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Attributes, Forest, Path, Since};
    ///
    /// let notes = block_on(Forest::new().create("notes"))?;
    /// let mut watch = notes.watch(&Path::default(), Since::Now)?;
    /// let mut edit = notes.edit();
    /// let node = edit.append(edit.root(), Attributes::new())?;
    /// block_on(edit.commit())?;
    ///
    /// let seen = block_on(watch.next())?;
    /// assert_eq!(seen.changes().map(|change| change.id()).collect::<Vec<_>>(), [node]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WatchError`].
    pub fn watch(&self, path: &Path, since: Since) -> Result<Watch, WatchError> {
        let last = self.watched_from(since)?;
        let node = last.tree().at(path)?.id();
        let under = (!path.positions().is_empty()).then_some(node);
        Ok(self.watch_under(under, last))
    }

    /// Yields the commits that touch a node, or anything below it, in their order. Unlike a path, the id means the same
    /// node whatever others insert meanwhile.
    ///
    /// # Errors
    /// [`WatchError`]; `Missing`, if the version at which the watch begins does not have the node; `OtherTree`,
    /// if another tree gave out its id.
    pub fn watch_node(&self, node: NodeId, since: Since) -> Result<Watch, WatchError> {
        let last = self.watched_from(since)?;
        if last.tree().is_foreign(node) {
            return Err(WatchError::OtherTree(node));
        }
        if last.tree().node(node).is_none() {
            return Err(WatchError::Missing(node));
        }
        Ok(self.watch_under(Some(node), last))
    }

    /// What one commit did to this tree: the tree before and after the commit that made the tree's newest version up to
    /// `version`. For the commit of a receipt and no other there is [`seen_by`](Self::seen_by).
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::Forest;
    ///
    /// let notes = block_on(Forest::new().create("notes"))?;
    /// let mut edit = notes.edit();
    /// edit.put_attribute(edit.root(), "text", "tea")?;
    /// let receipt = block_on(edit.commit())?;
    /// let seen = notes.seen(receipt.version)?;
    /// assert_eq!(seen.before.tree().root().get("text"), None);
    /// assert_eq!(seen.after.version(), receipt.version);
    /// let names: Vec<_> = seen.changes().flat_map(|change| change.attributes().map(|it| it.0)).collect();
    /// assert_eq!(names, ["text"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`revert`](Self::revert).
    pub fn seen(&self, version: Version) -> Result<Seen, VersionError> {
        let after = self.kept_at(version)?;
        let before = self.before(&after, version)?;
        Ok(Seen { before, after })
    }

    fn watched_from(&self, since: Since) -> Result<Snapshot, WatchError> {
        match since {
            Since::Now => Ok(self.snapshot()),
            Since::Version(version) => {
                let last = self.kept_at(version).map_err(WatchError::of)?;
                // What only a tag keeps has no next version here.
                let history = self.state.history();
                match history.gone() < last.version().number {
                    true => Ok(last),
                    false => Err(WatchError::TooOld {
                        oldest: history.oldest().version(),
                    }),
                }
            }
        }
    }

    fn watch_under(&self, under: Option<NodeId>, last: Snapshot) -> Watch {
        Watch {
            handle: self.clone(),
            under,
            last,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            level: self.shared.forest.level,
            reaching: None,
        }
    }
}

impl WatchError {
    fn of(error: VersionError) -> Self {
        match error {
            VersionError::TooOld { oldest, .. } => Self::TooOld { oldest },
            other => Self::Version(other),
        }
    }
}

impl Watch {
    /// The next commit. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`WatchEnd`]. After `Lagged` more commits may follow, after `Deleted` and `Unknown` none.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is the asynchronous `next` of streams"
    )]
    pub fn next(&mut self) -> impl Future<Output = Result<Seen, WatchEnd>> + Send {
        poll_fn(|cx| self.poll_next(cx))
    }

    /// Like [`next`](Self::next), for hand-written futures and streams.
    ///
    /// # Errors
    /// See [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Seen, WatchEnd>> {
        loop {
            let after = match self.poll_version(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
                Poll::Ready(Ok(after)) => after,
            };
            let before = std::mem::replace(&mut self.last, after.clone());
            let seen = Seen { before, after };
            if self.under.is_none_or(|node| seen.touches(node)) {
                return Poll::Ready(Ok(seen));
            }
        }
    }

    /// The level that a commit must have reached before the watch yields it; by default the one that the forest was
    /// built with. A level above the strongest of the journal counts as that one.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level.min(self.handle.shared.forest.most());
        self.reaching = None;
        self
    }

    /// The last version that the watch yielded, or at which it began or resumes.
    pub fn last(&self) -> &Snapshot {
        &self.last
    }

    fn poll_version(&mut self, cx: &mut Context<'_>) -> Poll<Result<Snapshot, WatchEnd>> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let state = &self.handle.state;
        let mut history = state.history();
        if self.last.number() < history.gone() {
            let oldest = Snapshot(history.oldest().clone());
            let resume_at = oldest.version();
            drop(history);
            self.last = oldest;
            return Poll::Ready(Err(WatchEnd::Lagged { resume_at }));
        }
        if let Some(next) = history.after(self.last.number()).cloned() {
            drop(history);
            return self.poll_level(Snapshot(next), cx);
        }
        // The journal has failed or was closed, so no commit follows. The wakers are taken after this is known.
        if self.handle.shared.forest.fall().is_some() {
            return Poll::Ready(Err(WatchEnd::Unknown));
        }
        // The flag is set before the wakers are taken under this lock, so no waker is missed.
        if state.is_deleted() {
            return Poll::Ready(Err(WatchEnd::Deleted));
        }
        let old = history.wait(self.number, waker);
        drop(history);
        drop(old);
        Poll::Pending
    }
}

impl Watch {
    /// The next version, once it has reached the level.
    fn poll_level(
        &mut self,
        next: Snapshot,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Snapshot, WatchEnd>> {
        let (number, forest) = (next.number(), &self.handle.shared.forest);
        if self
            .reaching
            .as_ref()
            .is_none_or(|(waited, _)| *waited != number)
        {
            let journal = forest.journal.as_ref();
            let reached = journal.and_then(|journal| journal.when_reached(number, self.level));
            self.reaching = reached.map(|reached| (number, reached));
        }
        let durability = match &mut self.reaching {
            None => Durability::Reached,
            Some((_, reached)) => ready!(reached.as_mut().poll(cx)),
        };
        self.reaching = None;
        Poll::Ready(match durability {
            Durability::Reached => Ok(next),
            Durability::Unknown => Err(WatchEnd::Unknown),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let waker = self.handle.state.history().end_wait(self.number);
        drop(waker); // After the lock, because a foreign waker's drop may do anything.
    }
}

impl Seen {
    /// What the commit changed.
    pub fn changes(&self) -> Diff<'_> {
        self.before.tree().diff(self.after.tree())
    }

    /// Whether the commit changed a node or anything below it.
    pub fn touches(&self, under: NodeId) -> bool {
        let (mut before, mut after) = (Climb::to([under]), Climb::to([under]));
        self.changes().any(|change| match change {
            Change::Added(node) => after.from(node).is_some(),
            Change::Deleted(node) => before.from(node).is_some(),
            Change::Changed { old, new } => before.from(old).is_some() || after.from(new).is_some(),
        })
    }
}
