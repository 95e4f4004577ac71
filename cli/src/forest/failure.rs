//! Why a command on a forest fails, and with which exit code. Each failure is a text that says what to do.

use weald_forest::{RecoverError, VersionError};
use weald_journal::{LockError, OpenError, OpenForestError};
use weald_lab::error::Error;

/// Why a command fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The disk, or a limit of the program.
    Failed(String),
    /// The words on the command line mean nothing.
    Usage(String),
    /// What is stored is not what was written.
    Damaged(String),
    /// It is not there.
    Absent(String),
    /// Another process writes.
    Locked(String),
    /// Stdout cannot be written to.
    Output(Error),
}

impl Failure {
    /// The exit code and the sentence.
    pub(crate) fn told(self) -> Result<(u8, String), Error> {
        Ok(match self {
            Self::Failed(text) => (1, text),
            Self::Usage(text) => (2, text),
            Self::Damaged(text) => (3, text),
            Self::Absent(text) => (4, text),
            Self::Locked(text) => (5, text),
            Self::Output(error) => return Err(error),
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Output(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = format!("{error}.");
        match error {
            OpenError::Damaged { .. } => Self::Damaged(text),
            OpenError::Sealed { has_key: false, .. } => {
                Self::Usage(format!("{text} On the command line: --master-key FILE."))
            }
            OpenError::Sealed { .. } => Self::Usage(text),
            OpenError::NoForest { .. } => Self::Absent(text),
            OpenError::Locked {
                error: LockError::Held { .. },
                ..
            } => Self::Locked(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<OpenForestError> for Failure {
    fn from(error: OpenForestError) -> Self {
        match error {
            OpenForestError::Journal(error) => error.into(),
            OpenForestError::Recover(error) => error.into(),
            other => Self::Failed(format!("{other}.")),
        }
    }
}

impl From<RecoverError> for Failure {
    fn from(error: RecoverError) -> Self {
        let mut text = format!("the forest cannot be read from its journal: {error}.");
        // The error of a damaged file says what to put back.
        if !text.contains("from a copy") {
            text.push_str(" Put the directory back from a copy.");
        }
        Self::Damaged(text)
    }
}

impl From<VersionError> for Failure {
    fn from(error: VersionError) -> Self {
        Self::Absent(format!("{error}."))
    }
}

#[cfg(test)]
mod tests {
    use weald_forest::journal::ReadError;
    use weald_journal::Damage;

    use super::*;

    #[test]
    fn what_to_put_back_is_said_once() {
        let damage = Damage {
            file: "1.segment".into(),
            offset: 5,
            what: "it is no frame",
        };
        let errors = [
            RecoverError::Read(ReadError::Failed(damage.to_string())),
            RecoverError::NameTwice("notes".into()),
        ];
        for error in errors {
            let (code, text) = Failure::from(error).told().unwrap();
            assert_eq!(
                (code, text.matches("from a copy").count()),
                (3, 1),
                "{text}"
            );
        }
    }
}
