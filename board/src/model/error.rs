//! Why the board refuses something. A refusal leaves no trace.

use weald::forest::disk::OpenForestError;
use weald::forest::{CommitError, EditError, NodeId, UpdateError};

use super::draft::Invalid;
use super::message::Message;

/// Why something was refused, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// No board has this address.
    #[error("there is no board `{0}`")]
    NoBoard(String),
    /// The board has no message with this number.
    #[error("there is no message {0} on this board")]
    NoMessage(u64),
    /// Another board has this address.
    #[error("there is a board `{0}` already")]
    BoardTaken(String),
    /// The draft cannot be accepted as it is.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The message was changed since its author saw it. Nothing is lost: here is what it says now.
    #[error("somebody has changed the message since you saw it")]
    Stale(Box<Message>),
    /// The same form was sent before, with other words.
    #[error("this form was sent before, with other words")]
    TokenUsed,
    /// The same form was sent before, and what it wrote was erased.
    #[error("what this form wrote has been erased")]
    WasErased,
    /// Another person wrote the message.
    #[error("only its author and a moderator may change a message")]
    NotYours,
    /// The name is protected, and no passphrase came with it.
    #[error("this name is protected by a passphrase")]
    NameProtected,
    /// The passphrase is not that of the name.
    #[error("this is not the passphrase of the name")]
    WrongPassphrase,
    /// The name is protected already.
    #[error("somebody has protected this name already")]
    NameTaken,
    /// The name is not protected.
    #[error("nobody has protected this name")]
    NoName,
    /// The message was deleted or erased.
    #[error("the message is gone")]
    Gone,
    /// A moderator has deleted the board.
    #[error("the board was deleted by a moderator")]
    BoardGone,
    /// An older program stored the title of the board in a way that cannot be erased.
    #[error(
        "the title is no longer shown, but older versions on the disk still have it, because it was stored before titles \
         could be erased"
    )]
    StaysOnDisk,
    /// The message was never changed.
    #[error("there is no change of this message to take back")]
    NothingToUndo,
    /// The version does not exist, or its history is no longer kept.
    #[error("this version is not there: {0}")]
    NoVersion(String),
    /// The board was made after that version.
    #[error("the board is younger")]
    Younger,
    /// The list has fewer pages.
    #[error("there is no page {0}")]
    NoPage(usize),
    /// The forest did not take the change. It may be tried again with the same token.
    #[error("the change could not be stored: {0}")]
    Storage(CommitError),
    /// Others changed the same thing for so long that this change was given up. It may be tried
    /// again.
    #[error("too many others write to the same place")]
    Crowded,
    /// Too many ask for versions that only the disk has. It may be tried again.
    #[error("too many others look into the past")]
    Busy,
    /// A bug: an edit did not fit the tree that it was made for.
    #[error("the edit does not fit: {0}")]
    Edit(#[from] EditError),
}

impl BoardError {
    pub(crate) fn no_message(id: NodeId) -> Self {
        Self::NoMessage(id.get())
    }
}

impl From<CommitError> for BoardError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::IdTaken(_) => Self::TokenUsed,
            CommitError::Conflict(_) => Self::Crowded,
            CommitError::Deleted(name) => Self::NoBoard(name),
            error => Self::Storage(error),
        }
    }
}

impl From<UpdateError<BoardError>> for BoardError {
    fn from(error: UpdateError<BoardError>) -> Self {
        match error {
            UpdateError::GivenUp(error) => error,
            UpdateError::Commit(error) => error.into(),
            _ => Self::Crowded,
        }
    }
}

impl From<OpenForestError> for BoardError {
    fn from(error: OpenForestError) -> Self {
        Self::NoVersion(error.to_string())
    }
}
