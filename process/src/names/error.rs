//! Why a name leads to no process, and why a process does not get one.

use weald_kernel::SpawnError;

/// Why a name does not lead to a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No process has the name.
    #[error("no process is registered as `{0}`")]
    NotRegistered(String),
    /// The process that has the name takes other messages.
    #[error("the process registered as `{name}` takes `{takes}` and not `{asked}`")]
    WrongType {
        /// The name.
        name: String,
        /// What it takes.
        takes: &'static str,
        /// What the name was looked up for.
        asked: &'static str,
    },
}

/// Why a process was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another process has the name, or the same one.
    #[error("the name `{0}` is taken")]
    Taken(String),
    /// The process has ended.
    #[error("the process that should be registered as `{0}` has ended")]
    NoProcess(String),
    /// The process could not be spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}
