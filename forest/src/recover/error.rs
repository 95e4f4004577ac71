//! Why a forest was not read back.

use weald_tree::EditError;

use crate::journal::{Position, ReadError, RecordError};
use crate::version::Version;

/// Why a forest was not read back from its journal.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record is damaged.
    #[error("the record at {position:?} is damaged: {error}")]
    Record {
        /// Where it is.
        position: Position,
        /// What is wrong with it.
        error: RecordError,
    },
    /// The checkpoint is damaged.
    #[error("the checkpoint is damaged: {0}")]
    Checkpoint(RecordError),
    /// A record does not fit those before it.
    #[error("the record at {position:?} does not fit those before it: {what}")]
    Impossible {
        /// Where it is.
        position: Position,
        /// What does not fit.
        what: String,
    },
    /// A tag is on a version that neither the checkpoint nor a record has.
    #[error("the tree {tree} has a tag on version {version}, which the journal does not have")]
    NoVersion {
        /// The number of the tree.
        tree: u64,
        /// The version.
        version: Version,
    },
    /// A version of a tree cannot be made.
    #[error("a version of the tree {tree} cannot be made again: {error}")]
    Tree {
        /// The number of the tree.
        tree: u64,
        /// Why.
        error: EditError,
    },
    /// Too few numbers are left for another opening. Only a forged record leads to this.
    #[error("the journal has used up the {0}; export its trees, and import them into a new forest")]
    Exhausted(&'static str),
    /// Two trees have one name.
    #[error("two trees are named `{0}`")]
    NameTwice(String),
}
