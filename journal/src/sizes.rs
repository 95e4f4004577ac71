//! What the files of a journal take on the medium.

use std::io;

use crate::names;
use crate::read_only_journal::ReadOnlyJournal;

/// How many files of a kind there are, and their length together, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// The files.
    pub files: u64,
    /// The bytes.
    pub bytes: u64,
}

/// What the files of a journal take on the medium. See [`ReadOnlyJournal::sizes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// The segments; the last one or two are filled with zeros that are to be used.
    pub segments: Size,
    /// The checkpoints.
    pub checkpoints: Size,
    /// The key files.
    pub keys: Size,
}

impl ReadOnlyJournal {
    /// What the files take on the medium, by their kinds.
    ///
    /// # Errors
    /// They cannot be looked at.
    pub fn sizes(&self) -> io::Result<Sizes> {
        let medium = self.medium();
        let mut sizes = Sizes::default();
        for name in medium.list()? {
            let size = if names::segment_of(&name).is_some() {
                &mut sizes.segments
            } else if names::checkpoint_of(&name).is_some() {
                &mut sizes.checkpoints
            } else if names::keys_of(&name).is_some() {
                &mut sizes.keys
            } else {
                continue;
            };
            match medium.open(&name) {
                Ok(file) => (size.files, size.bytes) = (size.files + 1, size.bytes + file.len()?),
                // A writer has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sizes)
    }
}
