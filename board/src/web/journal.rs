//! The files of the journal, if the board is in a directory.

use std::path::Path;

/// How large the journal is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Asks the disk, which may take long.
pub(crate) fn size_of(directory: &Path) -> std::io::Result<Size> {
    let mut sum = Size::default();
    for entry in std::fs::read_dir(directory)? {
        // One that was removed meanwhile has no size.
        let Ok(metadata) = entry?.metadata() else {
            continue;
        };
        sum.files += 1;
        sum.bytes += metadata.len();
    }
    Ok(sum)
}
