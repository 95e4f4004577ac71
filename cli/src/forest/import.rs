//! `import`: trees from what `export` has printed. All of it is read before anything is written, so a text with a fault
//! changes nothing.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use pollster::block_on;
use serde_json::json;
use weald_forest::{CommitError, Forest, NameError, Tree};
use weald_journal::{Directory, DiskForest, DiskJournal, Settings};
use weald_lab::error::Error;

use super::failure::Failure;
use super::opened::Opened;
use super::text;
use crate::output::Lines;

/// Creates trees.
pub(crate) fn import(
    (directory, settings): (&Path, Settings),
    (name, from): (Option<&str>, Option<&Path>),
    (is_document, creates): (bool, bool),
    json: bool,
) -> Result<(), Failure> {
    let seen = match Opened::open(directory, &settings) {
        Ok(opened) => Some(opened),
        Err(Failure::Absent(_)) if creates => None,
        Err(Failure::Absent(text)) => {
            let text = format!("{text} Or add --create to begin one.");
            return Err(Failure::Absent(text));
        }
        Err(failure) => return Err(failure),
    };
    let text = match from {
        Some(path) => fs::read_to_string(path).map_err(Error::file("read", path))?,
        None => {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(Error::file("read", "stdin"))?;
            text
        }
    };
    let trees = match name {
        Some(name) => vec![(name.to_owned(), tree(&text, is_document, 1)?)],
        None => named(&text)?,
    };
    let is_known = |name: &str| seen.as_ref().is_some_and(|seen| seen.0.get(name).is_ok());
    // Opening for writing begins a segment, so it is not done in vain.
    if let Some((name, _)) = trees.iter().find(|(name, _)| is_known(name)) {
        return Err(taken(name));
    }
    drop(seen);
    let medium = Directory::create(directory).map_err(Error::file("create", directory))?;
    let journal = DiskJournal::open_on(medium, settings)?;
    let forest = block_on(DiskForest::recover(Forest::builder(), journal))?;
    let mut lines = Lines::default();
    for (name, tree) in trees {
        let nodes = tree.len();
        let created = block_on(forest.create_from(&name, tree)).map_err(|error| match error {
            CommitError::Name(NameError::Taken(name)) => taken(&name),
            CommitError::Name(error) => Failure::Usage(format!("{error}.")),
            error => Failure::Failed(format!("`{name}` was not created: {error}.")),
        })?;
        let version = created.view().version();
        lines.put(match json {
            true => {
                let version = text::version_json(version);
                json!({ "name": name, "nodes": nodes, "version": version }).to_string()
            }
            false => format!("{name}: {}, version {version}", text::count(nodes, "node")),
        })?;
    }
    Ok(lines.end()?)
}

fn taken(name: &str) -> Failure {
    Failure::Failed(format!(
        "there is a tree named `{name}` already; nothing was imported. Give the new one another name."
    ))
}

/// A tree from the text of the line of this number.
fn tree(text: &str, is_document: bool, line: usize) -> Result<Tree, Failure> {
    let wrong = |error: String| {
        Failure::Failed(format!(
            "line {line} is no tree, and nothing was imported: {error}. `export` prints trees; --document takes any JSON."
        ))
    };
    match is_document {
        true => Tree::from_document(text).map_err(|error| wrong(error.to_string())),
        false => Tree::from_json(text).map_err(|error| wrong(error.to_string())),
    }
}

/// Trees with their names, one in each line.
fn named(text: &str) -> Result<Vec<(String, Tree)>, Failure> {
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            let (name, rest) = begin(line).ok_or_else(|| {
                Failure::Failed(format!(
                    "line {number} has no name, and nothing was imported. Without a NAME, each line is to be as \
                     `export` prints it for every tree: {{\"name\":\"…\",\"tree\":…}}."
                ))
            })?;
            Ok((name, tree(rest, false, number)?))
        })
        .collect()
}

/// The name that a line begins with, and the text of its tree. The tree is not read here, because it may be as deep as
/// any.
fn begin(line: &str) -> Option<(String, &str)> {
    let rest = line.trim().strip_prefix("{\"name\":")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let name = values.next()?.ok()?;
    let rest = rest.get(values.byte_offset()..)?;
    let tree = rest.strip_prefix(",\"tree\":")?.strip_suffix('}')?;
    Some((name, tree))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_a_name() {
        let begun = begin(r#"{"name":"a \"b\",","tree":{"children":[{}]}}"#);
        let name = "a \"b\",".to_owned();
        assert_eq!(begun, Some((name, r#"{"children":[{}]}"#)));
        for line in ["", "{}", r#"{"name":5,"tree":{}}"#, r#"{"name":"a"}"#] {
            assert_eq!(begin(line), None, "{line}");
        }
    }
}
