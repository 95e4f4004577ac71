//! What a journal is: the trait, and the words of its contract.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::record::Record;
use crate::content::erasable::{Blob, BlobId, BlobPlace};
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
    /// that later, and may have appended further records by then, which were built on it. Refuse all of these, with
    /// [`AppendError::for_those_behind`]: every record with a higher number, until one comes that has the refused
    /// number again.
    Sent(Later<'static, Result<Position, AppendError>>),
}

/// What a journal has prepared for a record that is yet to be appended. Dropping it gives that up.
#[derive(Default)]
pub struct Room {
    // One word, because each commit has one.
    _held: Option<Box<Box<dyn Any + Send>>>,
}

impl Room {
    /// It is given up when this is dropped.
    pub fn held(held: impl Any + Send) -> Self {
        Self {
            _held: Some(Box::new(Box::new(held))),
        }
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
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
    /// A follower was too slow. It continues after the last position that it has seen.
    #[error("the follower was too slow; follow again from {resume_at:?}")]
    Lagged {
        /// The last position that it was given.
        resume_at: Position,
    },
    /// The stored bytes are damaged, or cannot be reached.
    #[error("the journal cannot be read: {0}")]
    Failed(String),
}

/// Why a checkpoint was not put, or records were not trimmed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
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
    /// The erasable bytes to which it refers, and which are not in it. Bytes that came with a record up to `at`, and
    /// are not among these, are not asked for any more once that record is trimmed.
    pub blobs: Vec<BlobId>,
    /// Its bytes, in pieces of about a hundred kilobytes. A piece is made when it is asked for, on the thread that
    /// asks; that must not be a thread for which others wait. The end of a piece means nothing.
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
/// | `keep_blob`, `blob` | any thread, at any time: authors before a commit that takes a reference from the history | their futures do |
/// | `has_blob` | any thread, at any time: the caller that makes a checkpoint | its future does |
/// | all others | any thread, at any time; the forest itself only while it is recovered | their futures do |
///
/// While it is called by the thread that has the right to commit, a commit to the same forest is refused with
/// [`CommitError::InJournal`](crate::CommitError::InJournal), and so is a checkpoint. The journal must not wait there
/// for another thread that commits.
///
/// The forest continues where it is woken: the thread that wakes the waker of an answer may append the next records,
/// publish commits and wake their authors. So a journal must hold no lock that its other methods take while it wakes.
/// The journal may even be dropped there, if nobody else has the forest any more.
///
/// Erasable bytes are kept apart from the records: [`Record::blobs`] brings them, [`Record::erases`] removes them, and
/// [`blob`](Self::blob) and [`blobs`](Self::blobs) give them back.
pub trait Journal: Send + Sync + 'static {
    /// What it can do. It is asked once, when a forest is built with it.
    fn capabilities(&self) -> Capabilities;

    /// Takes a record, refuses it, or answers later. All writers wait during the call, so it may copy the record, but
    /// must never wait for a medium. The erasable bytes that the record brings must be durable before the record is.
    ///
    /// # Errors
    /// [`AppendError`].
    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError>;

    /// What an author waits for before its commit is taken up, because the medium is slower than the authors; `None`,
    /// while there is room. An author is asked to wait once for room as such, with 0 `bytes`, and once more if its
    /// record will have many bytes: those who commit later would wait behind it for the room that it lacks, and for its
    /// bytes.
    ///
    /// The `changes` are then what [`Record::changes`] will be, unless the commit is overtaken, so the journal may
    /// write them beforehand. There are none if that is not known, or if the record brings erasable bytes. These are
    /// the `blobs`, for which something can be done beforehand as well. The author holds the [`Room`] until the record
    /// was taken, or never will be.
    ///
    /// That a future is ready promises no room; a record for which there is none after all is refused or waits.
    /// Dropping the future loses nothing.
    fn when_room(
        &self,
        bytes: usize,
        changes: &[Arc<Vec<u8>>],
        blobs: &[Blob],
    ) -> Option<Later<'static, Room>> {
        let _ = (bytes, changes, blobs);
        None
    }

    /// The last position that has reached a level. Records that were there when the journal was opened have reached
    /// every level.
    fn reached(&self, level: Level) -> Position;

    /// Waits until a position has reached a level, or never will. Dropping the future loses nothing.
    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability>;

    /// Waits until the journal fails, after which it takes no record and raises no mark; the wait may last for ever.
    /// The forest polls this future from the beginning on. When it is ready, the forest falls back to the last position
    /// that [`reached`](Self::reached) the strongest level.
    fn when_failed(&self) -> Later<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Why the journal takes nothing more, once it has failed: the error of the commits that are refused from
    /// then on.
    fn refusal(&self) -> AppendError {
        AppendError::Poisoned
    }

    /// What became of a commit. `Stored` and `NotStored` are final: a commit that is not stored when this answers is
    /// never stored. Where records were trimmed, one that is not found may have been among them: then it is `Unknown`.
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

    /// The same for many ids, each of which is given to `take` once, in an order that suits the journal. A forest that
    /// is recovered asks for all erasable bytes that it has.
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

    /// Whether [`blob`](Self::blob) would give bytes. When a checkpoint is made, this is asked for each copied
    /// reference that is no longer in memory.
    ///
    /// # Errors
    /// [`ReadError::Failed`].
    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>>;

    /// Keeps bytes until the journal is closed: a commit is about to refer to them, with a reference from the history,
    /// and the forest no longer has them. All checkpoints that are put until then refer to them, whatever the forest
    /// says, because the history from the former checkpoint on has that commit. Answers for which attribute the bytes
    /// were brought, with the number of its tree; `None`, if [`blob`](Self::blob) gives no bytes. A forest that is
    /// recovered asks again for all to which a record since the checkpoint refers, and which neither the checkpoint nor
    /// a record since brings.
    ///
    /// # Errors
    /// [`ReadError::Failed`].
    fn keep_blob(&self, id: BlobId) -> Later<'_, Result<Option<(u64, BlobPlace)>, ReadError>>;

    /// The records after a position, and all that will come.
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
