//! Numbers of versions and of commits.
//!
//! - A forest counts all its commits, whatever trees they touch; a version is known by the number of the
//!   commit that made it. So one number names one moment of all trees, and none is ever used again: not
//!   when a tree is deleted and created anew, and not after the forest was opened again, because each
//!   opening has an incarnation of its own.
//! - A commit has an id of 128 bits besides, which its author may choose: see [`Commit::id`](crate::Commit::id).

use std::fmt;
use std::time::SystemTime;

/// A moment of the forest: what its trees were when a commit was the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The opening of the forest.
    pub incarnation: u64,
    /// The number of the commit, from 1 on; no two commits of an incarnation have the same.
    pub number: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.number)
    }
}

/// What identifies a commit wherever it is told about. Who gives a commit the same id twice gets the
/// result of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u128);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The receipt of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub id: CommitId,
    /// The version that it made, of each tree that it touched.
    pub version: Version,
    /// When; never before the time of an earlier commit.
    pub time: SystemTime,
}
