//! Why a process ended.

use std::fmt;

use weald_kernel::JoinError;

/// Why a process ended without a value. Joining a process that returned gives its value instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It was killed, or its runtime shut down.
    Killed,
    /// It panicked, with this message.
    Crash(String),
}

impl ExitReason {
    pub(crate) fn of(error: JoinError) -> ExitReason {
        match error {
            JoinError::Panicked(panic) => ExitReason::Crash(panic.message().to_owned()),
            _ => ExitReason::Killed,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Killed => f.write_str("the process was killed"),
            ExitReason::Crash(message) => write!(f, "the process crashed: {message}"),
        }
    }
}

impl std::error::Error for ExitReason {}
