//! Why a send or a receive failed.

use std::fmt;

/// The channel is closed. Contains the value that was not sent.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the channel is closed: nobody will receive what is sent")]
pub struct SendError<T>(pub T);

/// The channel is closed and empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the channel is closed and empty: nothing more will be received")]
pub struct Closed;

/// Why a value was not sent at once. Contains the value.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError<T> {
    /// There is no room.
    #[error("the channel is full: wait with send, or send later")]
    Full(T),
    /// The channel is closed.
    #[error("the channel is closed: nobody will receive what is sent")]
    Closed(T),
}

/// Why nothing was received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryReceiveError {
    /// There is no value now.
    #[error("the channel is empty: wait with receive, or try later")]
    Empty,
    /// The channel is closed and empty.
    #[error("the channel is closed and empty: nothing more will be received")]
    Closed,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}
