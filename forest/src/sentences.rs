//! Debug of an error is its sentence: a program prints with Debug what its `main` returns.

use std::fmt;

use crate::error::{CommitError, DurableError, NameError, VersionError};
use crate::journal::CheckpointError;
use crate::recover::error::RecoverError;

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
