//! Why the forest refuses something. A refusal leaves no trace.

use weald_tree::{EditError, NodeId, Read};

use crate::level::{Level, Position};
use crate::version::{CommitId, Committed, MAX_BYTES, Version};

/// Why a commit, or a change of the forest's names, was refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another commit that was made in the meantime conflicts with this one.
    #[error(transparent)]
    Conflict(#[from] Box<Conflict>),
    /// The tree was deleted.
    #[error("the tree `{0}` was deleted; create it again, or find another one with `list`")]
    Deleted(String),
    /// A name is taken, or names no tree.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The version to restore or to tag is not available.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// More bytes than a commit may carry.
    #[error("a commit carries at most {max} bytes of its author, and these are {0}; put them into the tree", max = MAX_BYTES)]
    TooManyBytes(usize),
    /// A commit of no edits: nothing says of which forest it would be.
    #[error("there are no edits to commit; if nothing is to change, commit nothing")]
    NoEdits,
    /// Two edits of one tree in one commit.
    #[error("two edits of the tree `{0}` are in one commit; make both changes in one edit")]
    TreeTwice(String),
    /// Edits of different forests in one commit.
    #[error("the tree `{0}` belongs to another forest; a commit must stay within one forest")]
    OtherForest(String),
    /// A closure of `update` tried to commit.
    #[error(
        "a closure given to `update` may not commit, because it may run several times and others \
         wait for it; commit after it has returned"
    )]
    Reentrant,
    /// A commit with this id was made that did something else.
    #[error(
        "the commit {id} was made before, as version {version}, and did something else; give each commit \
         an id of its own",
        id = .0.id,
        version = .0.version
    )]
    IdTaken(Committed),
    /// Another tree gave out the id of the node whose attribute is to be erased.
    #[error("the id {0} was given out by another tree; look the node up in the tree that is meant")]
    OtherTree(NodeId),
    /// No erasable bytes are stored for the attribute.
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
    /// The attribute whose bytes are to be erased has a name under which none can be put.
    #[error(
        "the name has {0} bytes, and that of an erasable attribute has at most {MAX_ERASABLE_NAME}; \
         erase the attribute from which its value was copied, or copy that to one with a shorter name"
    )]
    NameTooLong(usize),
    /// The commit has a reference to erasable bytes, from the history or copied byte by byte, and the bytes cannot be
    /// had.
    #[error(
        "the attribute `{name}` of the node {node} refers to erasable bytes of the history, {why}"
    )]
    Bytes {
        /// The node.
        node: NodeId,
        /// The name of the attribute.
        name: String,
        /// Why they cannot be had.
        why: LostBytes,
    },
    /// The journal did not take the commit, so it was not made.
    #[error("the journal refused the commit, which was not made: {0}")]
    Journal(AppendError),
    /// The journal cannot tell whether it has the commit. To learn it, open the forest again. If you gave the commit
    /// this id, commit again with the id: a commit that was made is not made twice. Otherwise
    /// [`Journal::resolve`](crate::Journal::resolve) tells.
    #[error(
        "the journal failed, and it is not known whether it has the commit {0}; open the forest again and, if you gave \
         the commit this id, commit with it again: what was made is not made twice"
    )]
    Unknown(CommitId),
    /// The journal does not reach the level that was asked for.
    #[error(
        "the commit is to be {asked:?}, and no commit of this forest gets further than {most:?}"
    )]
    Level {
        /// The level that was asked for.
        asked: Level,
        /// The strongest level of the journal.
        most: Level,
    },
    /// A journal tried to commit while it took a record.
    #[error(
        "a journal may not commit to its forest while it takes a record, because all commits wait for it"
    )]
    InJournal,
}

/// Why erasable bytes to which a commit refers cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostBytes {
    /// They were erased, or trimmed with the history from which the reference comes, or the reference is of another
    /// forest.
    #[error(
        "which were erased or trimmed; delete the attribute from what is committed, or put its bytes again with `put_erasable`"
    )]
    Gone,
    /// The journal has them, and could not read them. A later try may succeed.
    #[error(
        "which could not be read; commit again, or delete the attribute from what is committed: {0}"
    )]
    Unreadable(String),
}

/// Why a version is not known to be durable.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError {
    /// It does not exist yet, or belongs to another opening.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The journal failed. Once the forest is open again, it shows whether it has the version.
    #[error(
        "the journal failed, and it is not known whether it has version {0}; open the forest again"
    )]
    Unknown(Version),
    /// The journal does not reach the level.
    #[error("nothing in this forest gets further than {most:?}")]
    Level {
        /// The strongest level of the journal.
        most: Level,
    },
}

/// How an edit conflicts with what was committed in the meantime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// Something that the edit relied on is different in the newest version.
    #[error(
        "the edit of `{tree}` relied on {read:?}, which is different in version {head}; \
         edit that version, or use `update`"
    )]
    Stale {
        /// The name of the tree.
        tree: String,
        /// What the edit relied on.
        read: Read,
        /// The version in which it is different.
        head: Version,
    },
    /// An operation is impossible in the newest version.
    #[error("the edit of `{tree}` no longer fits version {head}: {error}")]
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
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is a tree with this name.
    #[error("a tree named `{0}` exists already; choose another name, or `get` that tree")]
    Taken(String),
    /// There is no tree with this name.
    #[error("no tree is named `{0}`; create it, or see the names with `list`")]
    Missing(String),
    /// It is empty, too long, or has a control character. This is how it begins.
    #[error("`{}` is no name of a tree; a name has 1 to {MAX_NAME} bytes and no control characters", .0.escape_debug())]
    Invalid(String),
    /// A tag with this beginning is empty, too long, or has a control character.
    #[error("`{}` is no tag; a tag has 1 to {MAX_NAME} bytes and no control characters", .0.escape_debug())]
    InvalidTag(String),
    /// The attribute whose name begins so has a longer name than an indexed one.
    #[error("`{}` begins a name that is too long for an index; that of an indexed attribute has at most {MAX_NAME} bytes", .0.escape_debug())]
    InvalidIndex(String),
}

/// How many bytes the name of a tree, a tag, and the name of an indexed attribute may have.
pub const MAX_NAME: usize = 1024;

/// How many bytes the name of an erasable attribute may have.
pub const MAX_ERASABLE_NAME: usize = 1024;

/// Why a version is not available.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// Memory no longer has it. A forest on disk shows it, unless its history was limited: `DiskForest::at`.
    #[error(
        "version {asked} is no longer kept in memory; the oldest of this tree is {oldest}. A forest on disk shows it with \
         `DiskForest::at`; otherwise keep more, or tag"
    )]
    TooOld {
        /// The version that was asked for.
        asked: Version,
        /// The oldest version that is kept with no gap after it.
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
    /// It does not exist yet.
    #[error("version {asked} does not exist yet; the newest of the forest is {newest}")]
    Future {
        /// The version that was asked for.
        asked: Version,
        /// The newest of the forest.
        newest: Version,
    },
    /// The journal failed before the version was durable, so the forest has fallen back. It is not known whether the
    /// version will be there when the forest is opened again.
    #[error(
        "the journal failed before version {asked} was durable; the forest has fallen back to {durable}. Open it again"
    )]
    Lost {
        /// The version that was asked for.
        asked: Version,
        /// The newest version that is durable, which is what readers see now.
        durable: Version,
    },
    /// It belongs to another opening or another forest.
    #[error("version {0} was created by another opening of the forest, or by another forest")]
    OtherIncarnation(Version),
    /// Memory no longer has a version that old. A forest on disk shows it, unless its history was limited:
    /// `DiskForest::at`.
    #[error(
        "at that time the tree had no version that is still kept in memory; the oldest is {oldest}. A forest on disk shows \
         it with `DiskForest::at`"
    )]
    BeforeTime {
        /// The oldest version that is kept with no gap after it.
        oldest: Version,
    },
}

/// Why a journal did not take a record. Except for `Unknown` it is certain that it did not, and will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// There is no room; nothing was written.
    #[error("it has no room")]
    Full,
    /// A file could not be opened, or another resource was missing; nothing was written, and the next commit tries
    /// again.
    #[error("it could not prepare room for the commit; its log says why")]
    Unprepared,
    /// The record is too long, or the name of an erasable attribute in it.
    #[error(
        "the record, or the name of an erasable attribute, is too long; the journal takes {max} bytes"
    )]
    TooLarge {
        /// The most bytes that a record may have; or such a name, if the name is too long.
        max: usize,
    },
    /// It has newer records than the forest: another writer has appended, or the forest was not read back from it.
    #[error(
        "it has newer records: another writer has appended, or the forest was not read back from it (`Builder::recover`)"
    )]
    Conflict {
        /// The last position.
        current: Position,
    },
    /// Another writer has taken over, or a file by which it would be known is gone, or this process was forked from the
    /// one that opened it; this writer appends nothing more.
    #[error(
        "another program has opened it for writing and taken it over, or its file `lock` was removed or exchanged, as \
         with its directory, or this process was forked from the one that opened it; if there is another program, end \
         one of the two before the forest is opened here again, and after a fork commit only in the parent"
    )]
    Fenced,
    /// It was opened for reading only.
    #[error("it was opened for reading only; open it for writing to commit")]
    ReadOnly,
    /// It has failed or was closed, and takes nothing until it is opened again.
    #[error("it has failed or was closed, and takes nothing until it is opened again")]
    Poisoned,
    /// A record before this one was refused.
    #[error("it refused the commit before this one, on which this one was built")]
    Behind,
    /// The answer was lost, and the record turned out not to be stored.
    #[error("its answer was lost, and the commit was not stored")]
    Lost,
    /// It may have been taken, or be taken yet: [`Journal::resolve`](crate::Journal::resolve) tells.
    #[error("it does not know whether it took the commit")]
    Unknown,
}

impl AppendError {
    /// What a journal answers to the records behind one that it refused with this error, because they were built on
    /// that one. If the journal has ended, the answer is the same error, because nothing is ever taken again. Otherwise
    /// it is [`Behind`](Self::Behind), and a later attempt may be taken.
    ///
    /// ```
    /// use weald::forest::AppendError;
    ///
    /// assert_eq!(AppendError::Full.for_those_behind(), AppendError::Behind);
    /// assert_eq!(AppendError::Fenced.for_those_behind(), AppendError::Fenced);
    /// ```
    #[must_use]
    pub fn for_those_behind(self) -> Self {
        match self {
            Self::Fenced | Self::Poisoned | Self::ReadOnly => self,
            _ => Self::Behind,
        }
    }
}
