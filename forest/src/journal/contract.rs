//! What a journal is: the trait, and the words of its contract.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::record::Record;
use crate::content::erasable::BlobId;
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
    /// It is on its way. The records after it are taken after it, or not at all. If it is refused, the forest learns of
    /// that later, and may append further records before; they were built on it. Refuse them with
    /// [`AppendError::for_those_behind`]: all with higher numbers, until one comes that has its number again.
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
    /// The journal asks its forest for a checkpoint while the forest waits for it.
    #[error(
        "a journal may not ask for a checkpoint while it takes a record, because all commits wait for it"
    )]
    InJournal,
    /// There is no room, or the medium failed.
    #[error("the checkpoint cannot be written: {0}")]
    Failed(String),
}

/// A state of the forest that replaces all records up to a position, on its way into a journal. See
/// [`Forest::checkpoint`](crate::Forest::checkpoint).
pub struct Checkpoint {
    /// The position of the last record that it contains.
    pub at: Position,
    /// The erasable bytes to which it refers, and which are not in it. Bytes that came with a record up to `at` and are
    /// not among these are asked for no more, once that record is trimmed.
    pub blobs: Vec<BlobId>,
    /// Its bytes, in pieces of about a hundred kilobytes. A piece is made when it is asked for, on the thread that asks,
    /// which is to be none that others wait for. Where one ends means nothing.
    pub pieces: Box<dyn Iterator<Item = Vec<u8>> + Send>,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoint {{ at: {:?} }}", self.at)
    }
}

/// A checkpoint that is read back.
pub struct StoredCheckpoint {
    /// The position of the last record that it contains.
    pub at: Position,
    /// Its bytes, in pieces of any length.
    pub pieces: Box<dyn Iterator<Item = Result<Vec<u8>, ReadError>> + Send>,
}

impl std::fmt::Debug for StoredCheckpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredCheckpoint {{ at: {:?} }}", self.at)
    }
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
/// | method | called by | may wait |
/// |---|---|---|
/// | `append`, and the polls of its answer | the thread that has the right to commit, one at a time | no |
/// | `resolve`, and the polls of its answer | the same | no |
/// | `reached`, `when_reached`, `when_room`, `when_failed`, `refusal` | any thread, at any time | no; their futures do |
/// | all others | any thread, at any time; the forest itself only while it is recovered | their futures do |
///
/// While it is called by the thread that has the right to commit, a commit to the same forest is refused with
/// [`CommitError::InJournal`](crate::CommitError::InJournal), and so is a checkpoint. The journal must not wait there
/// for another thread that commits.
///
/// The forest goes on where it is woken: whoever wakes the waker of an answer may append the next records on the same
/// thread, show commits and wake their authors. So a journal wakes when it holds no lock that it takes in its other
/// methods. It may be dropped there, too, if nobody else has the forest any more.
///
/// Erasable bytes are kept apart from the records: [`Record::blobs`] brings them, [`Record::erases`] removes them, and
/// [`blob`](Self::blob) and [`blobs`](Self::blobs) give them back.
pub trait Journal: Send + Sync + 'static {
    /// What it can do. It is asked once, when a forest is built with it.
    fn capabilities(&self) -> Capabilities;

    /// Takes a record, or refuses it, or says later which. All writers wait meanwhile, so it copies the record at
    /// most, and never waits for a medium. The bytes that the record brings are to be as durable as the record before
    /// it is.
    ///
    /// # Errors
    /// [`AppendError`].
    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError>;

    /// What an author waits for before its commit is taken up, because the medium is slower than the authors; `None`,
    /// while there is room. An author is asked to wait once for room as such, with 0 `bytes`, and once more if its record
    /// will have many bytes: those who commit later would wait behind it for the room that it lacks. That a future is
    /// ready promises no room; a record for which there is none after all is refused or waits. Dropping the future loses
    /// nothing.
    fn when_room(&self, bytes: usize) -> Option<Later<'static, ()>> {
        let _ = bytes;
        None
    }

    /// The last position that has reached a level. What was there when the journal was opened has reached every level.
    fn reached(&self, level: Level) -> Position;

    /// Waits until a position has reached a level, or never will. Dropping the future loses nothing.
    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability>;

    /// Waits until the journal fails, so that it takes nothing and raises no mark any more; it may wait for ever. The
    /// forest polls it from the beginning on, and when it is ready, falls back to what
    /// [`reached`](Self::reached) the strongest level.
    fn when_failed(&self) -> Later<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Why it takes nothing any more, once it has failed: what the commits are told that are refused then.
    fn refusal(&self) -> AppendError {
        AppendError::Poisoned
    }

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

    /// The bytes that a record brought under an id; `None` if they were erased, or nothing refers to them any more.
    ///
    /// # Errors
    /// [`ReadError::Failed`].
    fn blob(&self, id: BlobId) -> Later<'_, Result<Option<Vec<u8>>, ReadError>>;

    /// The same for many ids, each of which is given to `take` once, in an order that suits the journal. A forest that is
    /// recovered asks for all erasable bytes that it has.
    ///
    /// # Errors
    /// [`ReadError::Failed`]; some may have been given before.
    fn blobs<'a>(
        &'a self,
        ids: Vec<BlobId>,
        take: &'a mut (dyn FnMut(BlobId, Option<Vec<u8>>) + Send),
    ) -> Later<'a, Result<(), ReadError>> {
        Box::pin(async move {
            for id in ids {
                take(id, self.blob(id).await?);
            }
            Ok(())
        })
    }

    /// Whether [`blob`](Self::blob) would give bytes. It is asked for each reference that was copied and is in memory no more,
    /// when a checkpoint is made.
    ///
    /// # Errors
    /// [`ReadError::Failed`].
    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>>;

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
    fn checkpoint(&self) -> Later<'_, Result<Option<StoredCheckpoint>, ReadError>>;

    /// Removes the records up to a position, which a checkpoint must contain, and the erasable bytes that came with
    /// them and to which that checkpoint does not refer. Doing it again does nothing.
    ///
    /// # Errors
    /// [`CheckpointError::NoCheckpoint`].
    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>>;
}
