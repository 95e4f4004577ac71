//! Why the forest refused something. What was refused left no trace.

use weald_tree::{EditError, NodeId, Read};

use crate::version::Version;

/// Why a commit, or a change of the forest's names, was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// What another commit did in the meantime does not go together with this one.
    #[error(transparent)]
    Conflict(#[from] Box<Conflict>),
    /// The tree was deleted.
    #[error("the tree `{0}` was deleted; create it anew, or look for another one with `list`")]
    Deleted(String),
    /// A name is taken, or stands for no tree.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The version to restore or to tag cannot be had.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// More bytes than a commit carries.
    #[error("a commit carries at most {max} bytes of its author, and these are {0}; put them in the tree", max = crate::MAX_BYTES)]
    TooManyBytes(usize),
    /// Two edits of one tree in one commit.
    #[error("two edits of the tree `{0}` are in one commit; make both changes in one edit")]
    TreeTwice(String),
    /// Edits of different forests in one commit.
    #[error("the tree `{0}` belongs to another forest; a commit is made in one forest")]
    OtherForest(String),
    /// A closure of `update` tried to commit.
    #[error(
        "a closure given to `update` may not commit, because it may run several times and others \
         wait for it; commit after it has returned"
    )]
    Reentrant,
    /// No bytes that could be erased are stored for the attribute.
    #[error(
        "no erasable bytes are stored for the attribute `{name}` of the node {node}; they were erased \
         before, or were put with `put_attribute`"
    )]
    NothingToErase {
        /// The node.
        node: NodeId,
        /// The name of the attribute.
        name: String,
    },
    /// The journal did not take the commit, so it did not happen.
    #[error("the journal refused the commit, which did not happen: {0}")]
    Journal(String),
}

/// What does not go together with what was committed in the meantime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// Something that the edit relied on is otherwise in the newest version.
    #[error(
        "the edit of `{tree}` relied on {read:?}, which is otherwise in version {head}; \
         edit that version, or use `update`"
    )]
    Stale {
        /// The name of the tree.
        tree: String,
        /// What the edit relied on.
        read: Read,
        /// The version that has it otherwise.
        head: Version,
    },
    /// An operation is impossible in the newest version.
    #[error("the edit of `{tree}` does not fit version {head} any more: {error}")]
    Refused {
        /// The name of the tree.
        tree: String,
        /// Why.
        error: EditError,
        /// The version that refused it.
        head: Version,
    },
}

/// What is wrong with the name of a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is a tree of this name.
    #[error("a tree named `{0}` is there already; choose another name, or `get` that one")]
    Taken(String),
    /// There is no tree of this name.
    #[error("no tree is named `{0}`; create it, or see the names with `list`")]
    Missing(String),
}

/// Why a version cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// It was let go.
    #[error(
        "version {asked} is no longer kept; the oldest of this tree is {oldest}. Keep more, or tag"
    )]
    TooOld {
        /// The version that was asked for.
        asked: Version,
        /// The oldest that is kept without a gap behind it.
        oldest: Version,
    },
    /// The tree is younger.
    #[error("the tree did not exist in version {asked}; its first version is {first}")]
    NotCreated {
        /// The version that was asked for.
        asked: Version,
        /// The one in which the tree was created.
        first: Version,
    },
    /// It has not been made.
    #[error("version {asked} has not been made; the newest of the forest is {newest}")]
    Future {
        /// The version that was asked for.
        asked: Version,
        /// The newest of the forest.
        newest: Version,
    },
    /// It belongs to another opening or another forest.
    #[error("version {0} was made by another opening of the forest, or by another forest")]
    OtherIncarnation(Version),
    /// Nothing was as it is at that time.
    #[error("at that time the tree had no version that is still kept; the oldest is {oldest}")]
    BeforeTime {
        /// The oldest that is kept without a gap behind it.
        oldest: Version,
    },
}
