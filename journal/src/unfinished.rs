//! Files that are written under another name until they are whole. A file that does not become whole is removed,
//! because the next attempt needs its room.

use std::io;

use crate::medium::Medium;
use crate::names;

/// Makes a file under another name and renames it to `name`; a file of that name is replaced. The change of names is
/// not synced. If anything fails, nothing is left.
pub(crate) fn make<T>(
    medium: &dyn Medium,
    name: &str,
    make: impl FnOnce(&str) -> io::Result<T>,
) -> io::Result<T> {
    let unfinished = format!("{name}{}", names::UNFINISHED);
    let made = make(&unfinished).and_then(|made| {
        medium.rename(&unfinished, name)?;
        Ok(made)
    });
    if made.is_err() {
        // Its error would say nothing that the first one does not.
        let _ = medium.remove(&unfinished);
    }
    made
}

/// Removes the files that an earlier run left unfinished, before anything needs the room. Key files stay until they are
/// overwritten.
pub(crate) fn remove_left(medium: &dyn Medium) -> io::Result<()> {
    for name in medium.list()? {
        let Some(whole) = name.strip_suffix(names::UNFINISHED) else {
            continue;
        };
        let is_left = names::segment_of(whole).is_some()
            || names::checkpoint_of(whole).is_some()
            || whole == names::SPARE_KEYS;
        if is_left {
            medium.remove(&name)?;
        }
    }
    Ok(())
}
