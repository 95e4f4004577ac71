//! The changes of a board as they are made, from any version on: none is missed, and none comes twice.
//!
//! Changes that memory still has come from a watch. Older ones, and those that came while the reader was slow,
//! come from the disk.

use std::collections::VecDeque;

use weald::forest::{Path, Since, TreeHandle, Version, Watch, WatchEnd, WatchError};

use super::boards::Boards;
use super::error::BoardError;
use super::happened::{Happened, happened};
use super::name::BoardName;
use super::store::Store;

/// What becomes of changes that memory no longer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Older {
    /// They are read from the disk.
    Replayed,
    Refused,
}

/// The changes of a board after a version. Each is durable, or has the level at which the forest
/// acknowledges commits.
pub struct Follow {
    boards: Boards,
    name: BoardName,
    tree: TreeHandle,
    /// The version of the last change that was told.
    last: Version,
    older: Older,
    /// Changes that were read from the disk and are not told yet.
    behind: VecDeque<Happened>,
    watch: Option<Watch>,
}

impl Boards {
    /// The newest version of a board.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub fn newest(&self, name: &BoardName) -> Result<Version, BoardError> {
        Ok(self.tree(name)?.view().version())
    }

    /// The changes of a board after a version, or from now on.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`]; [`BoardError::NoVersion`], if the version does not exist or its history is not kept;
    /// [`BoardError::Busy`], if too many ask for what only the disk has.
    pub async fn follow(
        &self,
        name: &BoardName,
        since: Option<Version>,
    ) -> Result<Follow, BoardError> {
        self.follow_from(name, since, Older::Replayed).await
    }

    /// The changes after a version that memory still has. It ends as soon as memory no longer has the next change.
    pub(crate) async fn follow_recent(
        &self,
        name: &BoardName,
        since: Version,
    ) -> Result<Follow, BoardError> {
        self.follow_from(name, Some(since), Older::Refused).await
    }

    async fn follow_from(
        &self,
        name: &BoardName,
        since: Option<Version>,
        older: Older,
    ) -> Result<Follow, BoardError> {
        let tree = self.tree(name)?;
        let last = since.unwrap_or_else(|| tree.view().version());
        let mut follow = Follow {
            boards: self.clone(),
            name: name.clone(),
            tree,
            last,
            older,
            behind: VecDeque::new(),
            watch: None,
        };
        follow.begin().await?;
        Ok(follow)
    }
}

impl Follow {
    /// Whether what comes next was read from the disk.
    pub(crate) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// The next change. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`], if the board was deleted; [`BoardError::NoVersion`], if the journal failed;
    /// [`BoardError::Busy`].
    pub async fn next(&mut self) -> Result<Happened, BoardError> {
        loop {
            if let Some(happened) = self.behind.pop_front() {
                self.last = happened.version;
                return Ok(happened);
            }
            let Some(watch) = &mut self.watch else {
                self.begin().await?;
                continue;
            };
            match watch.next().await {
                Ok(seen) => {
                    let happened = happened(&seen);
                    self.last = happened.version;
                    return Ok(happened);
                }
                // It was too slow, so the changes that memory has let go come from the disk.
                Err(WatchEnd::Lagged { .. }) => self.watch = None,
                Err(WatchEnd::Deleted) => return Err(BoardError::NoBoard(self.name.to_string())),
                Err(end) => return Err(BoardError::NoVersion(end.to_string())),
            }
        }
    }

    /// Continues after the last change that was told.
    async fn begin(&mut self) -> Result<(), BoardError> {
        match (
            self.tree.watch(&Path::default(), Since::Version(self.last)),
            &self.boards.0.store,
        ) {
            (Ok(watch), _) => self.watch = Some(watch),
            (Err(WatchError::TooOld { .. }), Store::Disk(forest))
                if self.older == Older::Replayed =>
            {
                let replays = &self.boards.0.replays;
                self.behind = replays.changes(forest, &self.tree, self.last).await?;
            }
            (Err(error), _) => return Err(BoardError::NoVersion(error.to_string())),
        }
        Ok(())
    }
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Follow {{ board: {:?}, last: {} }}",
            self.name.as_str(),
            self.last
        )
    }
}
