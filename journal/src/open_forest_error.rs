//! Why a forest on disk cannot be used.

use weald_forest::RecoverError;

use crate::error::OpenError;
use crate::past::PastError;

/// Why a forest on disk cannot be opened.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenForestError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The journal was opened, and the forest cannot be read from it.
    #[error("the forest cannot be read from its journal: {0}")]
    Recover(#[from] RecoverError),
    /// It cannot be shown as it was at that moment.
    #[error(transparent)]
    Past(#[from] PastError),
}
