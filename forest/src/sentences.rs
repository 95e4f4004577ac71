//! Debug of an error is its sentence: a program prints with Debug what its `main` returns.

use std::fmt;

use crate::error::{CommitError, DurableError, NameError, VersionError};
use crate::journal::CheckpointError;
use crate::recover::error::RecoverError;
use crate::update::{REVOKED, UpdateError};

macro_rules! debug_is_sentence {
    ($($error:ty),+) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )+};
}

debug_is_sentence!(
    CommitError,
    DurableError,
    NameError,
    VersionError,
    CheckpointError,
    RecoverError
);

/// What the closure gave up with need not have a sentence.
impl<E: fmt::Debug> fmt::Debug for UpdateError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GivenUp(error) => write!(f, "the closure of an update gave up: {error:?}"),
            Self::Commit(error) => fmt::Display::fmt(error, f),
            Self::Revoked => f.write_str(REVOKED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_returns_is_printed_as_a_sentence() {
        let given_up: UpdateError<&str> = UpdateError::GivenUp("no tea");
        let text = format!("{given_up:?}");
        assert_eq!(text, "the closure of an update gave up: \"no tea\"");
        for error in [
            UpdateError::<()>::Revoked,
            UpdateError::Commit(CommitError::Deleted("tea".to_owned())),
        ] {
            let said = match &error {
                UpdateError::Commit(error) => error.to_string(),
                _ => REVOKED.to_owned(),
            };
            assert_eq!(format!("{error:?}"), said);
        }
    }
}
