//! The errors of this crate, divided by who must act. Each one is a sentence.

use std::path::PathBuf;

/// What can go wrong between the command line and a figure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that does not exist and must ask differently.
    #[error("{0}")]
    Usage(String),
    /// The runtime under test refused or failed; the workload's figures are void.
    #[error("{0}")]
    Workload(String),
    /// A file could not be read or written; the user must look at the path.
    #[error("Cannot {doing} {}: {source}.", path.display())]
    File {
        /// What was being done, as in "read".
        doing: &'static str,
        /// The file in question.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// The manifest of the rivals does not follow its format; its author must correct it.
    #[error("The manifest of the rivals is not valid: {0}")]
    Manifest(String),
    /// The page could not be rendered: a fault of the template.
    #[error("Cannot render the report: {0}.")]
    Render(String),
    /// The reader of the results has gone away; the bench stops quietly.
    #[error("The reader of the results has gone away.")]
    Closed,
}

impl Error {
    /// An error that voids the figures of a workload, for the reason that `sentence` gives.
    pub fn workload(sentence: impl Into<String>) -> Self {
        Self::Workload(sentence.into())
    }

    /// Turns an I/O error on `path` into a sentence.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}
