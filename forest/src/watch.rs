//! Watching a tree: its commits one after the other, each once, for one who may be slow.
//!
//! - The versions that the tree keeps are the buffer, so a watch costs writers nothing but a wake, and a
//!   slow one keeps one version alive, the last it was given.
//! - Who is so slow that the next version is gone is told from where it goes on, and goes on there.
//! - Whether a commit touches the watched subtree is found out by the one who watches.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use weald_tree::{Change, Climb, Diff, NodeId, Path, PathError};

use crate::error::VersionError;
use crate::root::Snapshot;
use crate::trunk::Trunk;
use crate::version::Version;

/// From where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The commits that come from now on.
    Now,
    /// The commits behind this version.
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

/// Why a watch does not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The commits behind the version are no longer kept.
    #[error(
        "the commits behind that version are no longer kept; begin with version {oldest}, and read its tree first"
    )]
    TooOld {
        /// The oldest version from which a watch can begin.
        oldest: Version,
    },
    /// The version was not made, or not of this tree.
    #[error(transparent)]
    Version(VersionError),
    /// The path leads nowhere in the version from which the watch begins.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Why a watch did not yield a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchEnd {
    /// The watch was slower than the tree's versions are kept. It goes on with the commits behind
    /// `resume_at`; [`Watch::last`] has the tree of that version, to be read anew.
    #[error(
        "the watch was too slow, and commits are lost to it; read the tree of version {resume_at} and go on"
    )]
    Lagged {
        /// The version from which it goes on.
        resume_at: Version,
    },
    /// The tree was deleted, and all its commits were yielded.
    #[error("the tree was deleted, so no more commits come")]
    Deleted,
}

/// The commits of a tree, or of a subtree, as they come. See [`Trunk::watch`].
pub struct Watch {
    trunk: Trunk,
    /// Everything, if it is nothing.
    under: Option<NodeId>,
    last: Snapshot,
    number: u64,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Trunk {
    /// Yields the commits that touch what a path leads to, or anything below it, in their order; the path
    /// is that of the version from which the watch begins, and follows its node when that moves. The path
    /// of the root means the whole tree.
    ///
    /// ```
    /// use weald_forest::{Attributes, Forest, Path, Since, Wait};
    ///
    /// let notes = Forest::new().create("notes").wait()?;
    /// let mut watch = notes.watch(&Path::default(), Since::Now)?;
    /// let mut edit = notes.edit();
    /// let node = edit.append(edit.root(), Attributes::new())?;
    /// edit.commit().wait()?;
    ///
    /// let seen = watch.next().wait()?;
    /// assert_eq!(seen.changes().map(|change| change.id()).collect::<Vec<_>>(), [node]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WatchError`].
    pub fn watch(&self, path: &Path, since: Since) -> Result<Watch, WatchError> {
        let last = match since {
            Since::Now => self.snapshot(),
            Since::Version(version) => self.kept_at(version).map_err(WatchError::of)?,
        };
        let node = last.tree().at(path)?.id();
        Ok(Watch {
            trunk: self.clone(),
            under: (!path.positions().is_empty()).then_some(node),
            last,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        })
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
    /// [`WatchEnd`]. After `Lagged` there may be more, after `Deleted` not.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is the asynchronous `next` of streams"
    )]
    pub fn next(&mut self) -> impl Future<Output = Result<Seen, WatchEnd>> + Send {
        poll_fn(|cx| self.poll_next(cx))
    }

    /// The same for those who write their own futures and streams.
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

    /// The newest version of which the watch has told, or from which it goes on.
    pub fn last(&self) -> &Snapshot {
        &self.last
    }

    fn poll_version(&mut self, cx: &mut Context<'_>) -> Poll<Result<Snapshot, WatchEnd>> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let line = &self.trunk.line;
        let mut past = line.past();
        if self.last.number() < past.gone() {
            let oldest = Snapshot(past.oldest().clone());
            let resume_at = oldest.version();
            drop(past);
            self.last = oldest;
            return Poll::Ready(Err(WatchEnd::Lagged { resume_at }));
        }
        if let Some(next) = past.after(self.last.number()) {
            return Poll::Ready(Ok(Snapshot(next.clone())));
        }
        // The wakers are taken after the flag is set, under the same lock.
        if line.is_deleted() {
            return Poll::Ready(Err(WatchEnd::Deleted));
        }
        let old = past.wakers.insert(self.number, waker);
        drop(past);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let waker = self.trunk.line.past().wakers.remove(&self.number);
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
