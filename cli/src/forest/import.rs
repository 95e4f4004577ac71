//! `import`: trees from what `export` has printed.
//!
//! - All of the text is read and all names are checked before anything is written, so a text with a fault changes
//!   nothing.
//! - Each tree is a commit, and is printed once it is durable. An import that was ended half way continues with
//!   `--skip-existing`.
//! - A tree with erasable values needs two commits. It has the name [`UNFINISHED`] until both are durable, and the next
//!   import removes what an earlier one has left under that name. So a tree is whole if it is there.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use pollster::block_on;
use serde_json::json;
use weald_forest::{CommitError, Forest, NameError, TreeHandle, Value, Version};
use weald_journal::{Directory, DiskForest, DiskJournal, Settings};
use weald_lab::error::Error;

use super::failure::Failure;
use super::form::TreeForm;
use super::import_text::{self, Named, UNFINISHED};
use super::opened::Opened;
use super::text;
use crate::output::print;

/// What is to be imported, and how.
pub(crate) struct What<'a> {
    /// The name of the only tree.
    pub(crate) name: Option<&'a str>,
    /// The file with the text; stdin without one.
    pub(crate) from: Option<&'a Path>,
    pub(crate) form: TreeForm,
    /// A forest is to be created if there is none.
    pub(crate) creates: bool,
    /// Trees whose names are taken are left out.
    pub(crate) skips: bool,
    /// The result is printed as JSON.
    pub(crate) json: bool,
}

/// Creates trees.
pub(crate) fn import(directory: &Path, settings: Settings, what: &What<'_>) -> Result<(), Failure> {
    let seen = match Opened::open(directory, &settings) {
        Ok(opened) => Some(opened),
        Err(Failure::Absent(_)) if what.creates => None,
        Err(Failure::Absent(text)) => {
            let text = format!("{text} Or add --create to begin one.");
            return Err(Failure::Absent(text));
        }
        Err(failure) => return Err(failure),
    };
    let text = read(what.from)?;
    let trees = match what.name {
        Some(name) => vec![import_text::one(name, &text, what.form)?],
        None => import_text::several(&text)?,
    };
    // Opening for writing begins a segment, so it is not done in vain.
    if let Some(Opened(seen)) = seen {
        must_be_free(&seen, &trees, what)?;
        if trees.iter().all(|tree| seen.get(&tree.name).is_ok()) {
            return trees.iter().try_for_each(|tree| skipped(tree, what));
        }
    }
    let medium = Directory::create(directory).map_err(Error::file("create", directory))?;
    let journal = DiskJournal::open_on(medium, settings)?;
    let forest = block_on(DiskForest::recover(Forest::builder(), journal))?;
    // Another program may have written meanwhile.
    must_be_free(&forest, &trees, what)?;
    clear(&forest)?;
    for tree in trees {
        if forest.get(&tree.name).is_ok() {
            skipped(&tree, what)?;
            continue;
        }
        let (name, nodes) = (tree.name.clone(), tree.tree.len());
        let version = create(&forest, tree).map_err(|error| not_created(&name, error))?;
        // It is durable, so it is told at once.
        print(&match what.json {
            true => {
                let version = text::version_json(version);
                let line = json!({ "name": name, "nodes": nodes, "version": version });
                format!("{line}\n")
            }
            false => {
                let nodes = text::count(nodes, "node");
                let name = text::name(&name);
                format!("{name}: {nodes}, version {version}\n")
            }
        })?;
    }
    Ok(())
}

fn read(from: Option<&Path>) -> Result<String, Failure> {
    if let Some(path) = from {
        return Ok(fs::read_to_string(path).map_err(Error::file("read", path))?);
    }
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text);
    read.map_err(Error::file("read", "stdin"))?;
    Ok(text)
}

/// Refuses names that are taken, unless these trees are left out.
fn must_be_free(forest: &Forest, trees: &[Named], what: &What<'_>) -> Result<(), Failure> {
    let is_taken = |tree: &&Named| forest.get(&tree.name).is_ok();
    let Some(taken) = trees.iter().find(is_taken).filter(|_| !what.skips) else {
        return Ok(());
    };
    let advice = match what.name {
        Some(_) => "Give the new one another name",
        None => "Add --skip-existing to import the others only",
    };
    Err(Failure::Failed(format!(
        "there is a tree named `{}` already; nothing was imported. {advice}.",
        taken.name
    )))
}

fn skipped(tree: &Named, what: &What<'_>) -> Result<(), Failure> {
    let name = &tree.name;
    Ok(print(&match what.json {
        true => format!("{}\n", json!({ "name": name, "skipped": true })),
        false => format!("{}: skipped, there is one already\n", text::name(name)),
    })?)
}

/// Creates a tree, and returns its newest version once it is durable.
fn create(forest: &Forest, named: Named) -> Result<Version, CommitError> {
    let Named {
        name,
        tree,
        erasable,
    } = named;
    if erasable.is_empty() {
        return Ok(block_on(forest.create_from(&name, tree))?.view().version());
    }
    let created = block_on(forest.create_from(UNFINISHED, tree))?;
    let mut edit = created.edit();
    for (node, attribute, value) in &erasable {
        let put = edit.put_erasable(*node, attribute, value);
        put.expect("the node is in the text of the tree, and the names were checked");
    }
    block_on(edit.commit())?;
    block_on(forest.rename(UNFINISHED, &name))?;
    Ok(created.view().version())
}

fn not_created(name: &str, error: CommitError) -> Failure {
    let text = match error {
        CommitError::Name(NameError::Taken(name)) => format!("a tree named `{name}` came up"),
        error => error.to_string(),
    };
    Failure::Failed(format!(
        "`{name}` was not imported: {text}. The trees that were printed are there; to go on, add --skip-existing."
    ))
}

/// Erases and deletes the tree that an earlier import has left unfinished.
fn clear(forest: &Forest) -> Result<(), Failure> {
    let Ok(left) = forest.get(UNFINISHED) else {
        return Ok(());
    };
    erase_all(forest, &left)
        .and_then(|()| block_on(forest.delete(UNFINISHED)))
        .map_err(|error| not_created(UNFINISHED, error))?;
    Ok(())
}

fn erase_all(forest: &Forest, tree: &TreeHandle) -> Result<(), CommitError> {
    let newest = tree.snapshot();
    for node in newest.tree().root().preorder() {
        for (name, _) in node.attributes().iter() {
            if matches!(forest.value(node, name), Some(Value::Erasable(_))) {
                block_on(tree.erase(node.id(), name))?;
            }
        }
    }
    Ok(())
}
