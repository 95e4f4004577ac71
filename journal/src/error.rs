//! Why a journal cannot be opened or read.

use std::io;
use std::path::Path;

use weald_forest::journal::ReadError;

use crate::medium::{LockError, is_unreadable};

/// What is stored is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file {file} is damaged at byte {offset}: {what}. Put the file back from a copy of the directory"
)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The first byte that is wrong.
    pub offset: u64,
    /// How.
    pub what: &'static str,
}

/// Why a journal cannot be opened.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Something that was durable is damaged. No record, key or checkpoint has changed.
    #[error("{medium}: {damage}. No record, key or checkpoint has changed")]
    Damaged {
        /// The directory.
        medium: String,
        /// Where.
        damage: Damage,
    },
    /// A later version of Weald has written it. No record, key or checkpoint has changed.
    #[error(
        "{medium}: the file {file} has format {format}, which this version of Weald does not know. No record, key or \
         checkpoint has changed; open the forest with the version that wrote it"
    )]
    UnknownFormat {
        /// The directory.
        medium: String,
        /// The file.
        file: String,
        /// The number of its format.
        format: u8,
    },
    /// There is nothing to read.
    #[error("{medium}: there is no forest here: {why}")]
    NoForest {
        /// The directory.
        medium: String,
        /// What is missing, and what to do.
        why: &'static str,
    },
    /// The keys of its erasable bytes are sealed.
    #[error(
        "{medium}: the keys of its erasable bytes are sealed by a master key; {}",
        if *.has_key { "the one that was given is another. Give the one with which the forest was last opened" } else { "give it with `Settings::master_key`" }
    )]
    Sealed {
        /// The directory.
        medium: String,
        /// Whether a master key was given.
        has_key: bool,
    },
    /// Another writer has it open, or the lock cannot be reached.
    #[error("{medium}: {error}")]
    Locked {
        /// The directory.
        medium: String,
        /// Why.
        error: LockError,
    },
    /// The medium failed, or a thread could not be started. Before that, what is of no use may have been cut
    /// off or removed, and the keys written to a new file.
    #[error("{medium}: {doing}: {error}")]
    Failed {
        /// The directory.
        medium: String,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl OpenError {
    /// The directory at this path cannot be opened, or cannot be made.
    pub(crate) fn of_directory(path: &Path, doing: &'static str, error: io::Error) -> Self {
        let medium = path.display().to_string();
        let why = match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no such directory. Name the one that a program has opened a forest in"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists if path.exists() => {
                "it is a file, and no directory. Name a directory"
            }
            io::ErrorKind::NotADirectory => "a part of the path is a file. Name a directory",
            _ => {
                return Self::Failed {
                    medium,
                    doing,
                    error,
                };
            }
        };
        Self::NoForest { medium, why }
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error("the file {file} has format {format}, which this version of Weald does not know")]
    UnknownFormat { file: String, format: u8 },
    #[error("the keys of its erasable bytes are sealed by a master key")]
    Sealed { has_key: bool },
    #[error("{0}")]
    Failed(#[from] io::Error),
}

impl Unreadable {
    /// Whether the bytes are wrong, missing, or in a sector that cannot be read, so that a later try would find the
    /// same. Any other failure, such as too many open files, says nothing about them.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sealed { .. } | Self::UnknownFormat { .. } => false,
            Self::Failed(error) => is_unreadable(error),
        }
    }

    pub(crate) fn at_opening(self, medium: &str) -> OpenError {
        let medium = medium.to_owned();
        match self {
            Self::Damaged(damage) => OpenError::Damaged { medium, damage },
            Self::UnknownFormat { file, format } => OpenError::UnknownFormat {
                medium,
                file,
                format,
            },
            Self::Sealed { has_key } => OpenError::Sealed { medium, has_key },
            Self::Failed(error) => OpenError::Failed {
                medium,
                doing: "reading it failed",
                error,
            },
        }
    }
}

impl From<Unreadable> for ReadError {
    fn from(error: Unreadable) -> Self {
        Self::Failed(error.to_string())
    }
}
