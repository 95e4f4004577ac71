//! What a journal is: the trait, and the words of its contract.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::record::Record;
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::{CommitId, Version};

/// An answer that may take time.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a journal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The strongest level that it reaches.
    pub level: Level,
    /// The most bytes that a record may have.
    pub max_record: usize,
    /// How many records may be on their way to be accepted.
    pub pipelined: usize,
}

/// What became of a record.
pub enum Appended {
    /// It was taken, and has this position.
    Accepted(Position),
    /// It is on its way. The records after it are taken after it, or not at all. That includes records that are
    /// appended when it was refused and the forest has not noticed: they have higher numbers, and are to be refused with
    /// [`AppendError::Behind`]. The first that has its number again was not built on it.
    Sent(Later<'static, Result<Position, AppendError>>),
}

/// Whether a position has reached a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It has.
    Reached,
    /// The journal failed, and cannot tell.
    Unknown,
}

/// What became of a commit whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// It is stored.
    Stored {
        /// Where.
        position: Position,
        /// The version that it made.
        version: Version,
    },
    /// It is not stored and never will be.
    NotStored,
    /// It cannot be told now.
    Unknown,
}

/// One record of a journal, as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub position: Position,
    /// Its bytes; see [`Stored::read`](super::Stored::read).
    pub record: Vec<u8>,
}

/// Why records cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// They were trimmed.
    #[error("the records after that position were trimmed; begin with the checkpoint")]
    TooOld {
        /// The position of the checkpoint that replaces them.
        checkpoint: Position,
    },
    /// A follower was too slow. It goes on after the position that it has seen last.
    #[error("the follower was too slow; follow again from {resume_at:?}")]
    Lagged {
        /// The last position that it was given.
        resume_at: Position,
    },
    /// What is stored is damaged, or cannot be reached.
    #[error("the journal cannot be read: {0}")]
    Failed(String),
}

/// Why a checkpoint was not put, or records were not trimmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// There is a checkpoint of a later position.
    #[error("there is a checkpoint of a later position")]
    Older,
    /// No record has this position.
    #[error("no record has this position")]
    NoSuchPosition,
    /// There is no checkpoint that replaces what would be trimmed.
    #[error("there is no checkpoint of that position or a later one")]
    NoCheckpoint,
    /// There is no room, or the medium failed.
    #[error("the checkpoint cannot be written: {0}")]
    Failed(String),
}

/// A state of the forest that replaces all records up to a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The position of the last record that it contains.
    pub at: Position,
    /// Its bytes, in pieces.
    pub pieces: Vec<Vec<u8>>,
}

/// Records as they are accepted. See [`Journal::follow`].
pub trait Follower: Send {
    /// The next records, at least one. Each record comes once, in order.
    ///
    /// # Errors
    /// [`ReadError`]; the follower has ended then.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Entry>, ReadError>>;
}

/// Takes the commits of a forest, one after the other, and keeps them.
///
/// Only one thread at a time appends; everything else may be called by any thread at any time.
/// [`append`](Self::append) is called, and what it returns is polled, by the thread that has the right to commit: then
/// a commit to the same forest is refused with [`CommitError::InJournal`](crate::CommitError::InJournal). The journal
/// must not wait there for another thread that commits.
///
/// The forest goes on where it is woken: whoever wakes the waker of an answer may append the next records on the same
/// thread, show commits and wake their authors. So a journal wakes when it holds no lock that it takes in its other
/// methods. It may be dropped there, too, if nobody else has the forest any more.
pub trait Journal: Send + Sync + 'static {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Takes a record, or refuses it, or says later which. All writers wait meanwhile, so it copies the record at
    /// most, and never waits for a medium.
    ///
    /// # Errors
    /// [`AppendError`].
    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError>;

    /// The last position that has reached a level.
    fn reached(&self, level: Level) -> Position;

    /// Waits until a position has reached a level, or never will. Dropping the future loses nothing.
    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability>;

    /// What became of a commit. `Stored` and `NotStored` are final: a commit that is not stored when this answers is
    /// never stored.
    fn resolve(&self, id: CommitId) -> Later<'static, Resolved>;

    /// The last record, by its position and the id of its commit; `None` if there never was one. It stays known when
    /// records are trimmed.
    fn last(&self) -> Later<'_, Result<Option<(Position, CommitId)>, ReadError>>;

    /// At most `limit` records after a position, in order and without a gap.
    ///
    /// # Errors
    /// [`ReadError::TooOld`], if some of them were trimmed.
    fn read(&self, after: Position, limit: usize) -> Later<'_, Result<Vec<Entry>, ReadError>>;

    /// The records after a position, and those that are to come.
    fn follow(&self, after: Position) -> Box<dyn Follower>;

    /// Stores a checkpoint that contains all records up to a position. The one before is kept until this one is whole.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn put_checkpoint(&self, checkpoint: Checkpoint) -> Later<'_, Result<(), CheckpointError>>;

    /// The newest checkpoint.
    ///
    /// # Errors
    /// [`ReadError::Failed`].
    fn checkpoint(&self) -> Later<'_, Result<Option<Checkpoint>, ReadError>>;

    /// Removes the records up to a position, which a checkpoint must contain. Doing it again does nothing.
    ///
    /// # Errors
    /// [`CheckpointError::NoCheckpoint`].
    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>>;
}
