//! The error of an operation on a path: it names the path, which the system's does not.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::exhaustion::is_exhausted;

/// An operation on a path failed. Returned inside an [`io::Error`] of the same kind, which has no code of
/// the system's; `reason` has.
#[derive(Debug, thiserror::Error)]
#[error("{act} {} failed: {reason}", both(path, to.as_deref()))]
#[non_exhaustive]
pub struct PathError {
    act: &'static str,
    /// The file's path.
    pub path: PathBuf,
    /// Where the file was to be copied or moved to. The system does not say which of the two paths its error is about.
    pub to: Option<PathBuf>,
    /// The system's error.
    #[source]
    pub reason: io::Error,
}

fn both(path: &Path, to: Option<&Path>) -> String {
    let path = path.display();
    to.map_or_else(
        || path.to_string(),
        |to| format!("{path} to {}", to.display()),
    )
}

/// Adds the path to an error of the system, unless the error says that the program has no descriptor or memory left
/// ([`is_exhausted`]). A full disk is about the path.
pub(crate) fn at_path(act: &'static str, path: &Path, reason: io::Error) -> io::Error {
    at_paths(act, (path, None), reason)
}

/// As [`at_path`], for an operation that may have a second path.
pub(crate) fn at_paths(
    act: &'static str,
    (path, to): (&Path, Option<&Path>),
    reason: io::Error,
) -> io::Error {
    let kind = reason.kind();
    if is_exhausted(&reason) && kind != io::ErrorKind::StorageFull {
        return reason;
    }
    let (path, to) = (path.to_owned(), to.map(Path::to_owned));
    let error = PathError {
        act,
        path,
        to,
        reason,
    };
    io::Error::new(kind, error)
}
