//! Why a process ended.

use std::fmt;

use weald_kernel::{JobName, JoinError};

/// Why a process ended without a value. Joining a process that returned gives its value instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It was killed, or its runtime shut down.
    Killed,
    /// It panicked.
    Crash(Crash),
}

/// The panic of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    process: Box<JobName>,
    message: String,
}

impl Crash {
    /// The message of the panic.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The name and the spawn site of the process.
    pub fn process(&self) -> &JobName {
        &self.process
    }
}

impl ExitReason {
    pub(crate) fn of(error: JoinError) -> ExitReason {
        match error {
            JoinError::Panicked(panic) => ExitReason::Crash(Crash {
                process: Box::new(panic.job().clone()),
                message: panic.message().to_owned(),
            }),
            _ => ExitReason::Killed,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Killed => f.write_str("the process was killed"),
            ExitReason::Crash(Crash { process, message }) => {
                write!(f, "the process crashed: {process} panicked: {message}")
            }
        }
    }
}

impl std::error::Error for ExitReason {}
