//! What a node must have to be found, as a command line says it.

use weald_forest::Query;

use super::failure::Failure;

/// The nodes that a word such as `name=Ada` or `name^=A` means.
pub(crate) fn read(word: &str) -> Result<Query, Failure> {
    let (name, value) = word.split_once('=').ok_or_else(|| {
        Failure::Usage(format!(
            "`{word}` says nothing of a value. Write NAME=VALUE, or NAME^=BEGINNING."
        ))
    })?;
    Ok(match name.strip_suffix('^') {
        Some(name) => Query::prefix(name, value),
        None => Query::equal(name, value),
    })
}
