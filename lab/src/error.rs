//! The errors of the laboratory, named by who must act. Each one is a sentence.

use std::path::PathBuf;

/// What can go wrong between a command line and a figure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that does not exist; it must ask differently.
    #[error("{0}")]
    Usage(String),
    /// The runtime under test refused or failed; the workload's figures are void.
    #[error("{0}")]
    Workload(String),
    /// A file could not be read or written; the operator must look at the path.
    #[error("Cannot {doing} {}: {source}.", path.display())]
    File {
        /// What was being done, as in "read".
        doing: &'static str,
        /// The file in question.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The manifest of the rivals does not follow its format; its author must correct it.
    #[error("The manifest of the rivals is not valid: {0}")]
    Manifest(String),
    /// The page could not be rendered; this is a fault of the template.
    #[error("Cannot render the report: {0}.")]
    Render(String),
    /// Whoever listens to the results wants no more of them; the bench stops quietly.
    #[error("The reader of the results has gone away.")]
    Closed,
}

impl Error {
    /// The figures of a workload are void, for the reason that `sentence` gives.
    pub fn workload(sentence: impl Into<String>) -> Self {
        Self::Workload(sentence.into())
    }

    /// Turns an input or output error on `path` into a sentence.
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
