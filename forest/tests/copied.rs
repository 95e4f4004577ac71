//! References to erasable bytes that were copied to other attributes: where they are known, and for how long.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::sync::{Arc, Mutex};

use hooks::Hooks;
use tools::{Wait, commit};
use weald_forest::journal::{BlobId, Journal};
use weald_forest::{Forest, MemoryJournal, TreeHandle, Value};

/// More commits than the forest makes before it asks what is settled.
const MANY: usize = 300;

fn open(journal: impl Journal) -> Forest {
    let builder = Forest::builder().keep(1).journal(journal);
    builder.recover().wait().unwrap()
}

/// The attribute gets the reference that another one of the root has; returns the id in it.
fn copy(tree: &TreeHandle, from: &str, to: &str) -> BlobId {
    let mut edit = tree.edit();
    let root = edit.root();
    let view = tree.view();
    let reference = view.tree().root().get(from).unwrap();
    edit.put_attribute(root, to, reference).unwrap();
    edit.commit().wait().unwrap();
    BlobId(u128::from_le_bytes(*reference.last_chunk().unwrap()))
}

fn put_erasable(tree: &TreeHandle, name: &str) {
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), name, name).unwrap();
    edit.commit().wait().unwrap();
}

fn erase(tree: &TreeHandle, name: &str) {
    let root = tree.view().tree().root().id();
    tree.erase(root, name).wait().unwrap();
}

/// Replaces attributes, and lets every version go that has had them.
fn forget(tree: &TreeHandle, names: &[&str]) {
    for name in names {
        commit(tree, name, "something else");
    }
    for number in 0..MANY {
        commit(tree, "number", &number.to_string());
    }
}

/// How often a checkpoint of the forest has an id, or those of its blobs.
fn found_in_checkpoint(forest: &Forest, id: BlobId) -> usize {
    let checkpoint = forest.checkpoint().wait().unwrap();
    let listed = checkpoint.blobs.iter().filter(|known| **known == id);
    let listed = listed.count();
    let bytes = checkpoint.pieces.collect::<Vec<_>>().concat();
    listed
        + bytes
            .windows(16)
            .filter(|it| **it == id.0.to_le_bytes())
            .count()
}

#[test]
fn a_copy_is_known_until_the_journal_has_the_bytes_no_more() {
    let journal = MemoryJournal::new();
    let forest = open(journal.clone());
    let tree = forest.create("t").wait().unwrap();
    let [erased, trimmed] = ["erased", "trimmed"].map(|name| {
        put_erasable(&tree, name);
        copy(&tree, name, &format!("{name} copy"))
    });
    forget(&tree, &["erased", "erased copy", "trimmed", "trimmed copy"]);
    assert_eq!(forest.stats().blobs, 0, "memory has let them go");
    // Each is known at one place: nothing refers to it any more.
    assert_eq!(found_in_checkpoint(&forest, erased), 1);
    assert_eq!(found_in_checkpoint(&forest, trimmed), 1);
    erase(&tree, "erased copy");
    assert_eq!(journal.blob(erased).wait(), Ok(None));
    assert_eq!(found_in_checkpoint(&forest, erased), 0);
    let checkpoint = forest.checkpoint().wait().unwrap();
    let at = checkpoint.at;
    journal.put_checkpoint(checkpoint).wait().unwrap();
    journal.trim(at).wait().unwrap();
    assert_eq!(journal.blob(trimmed).wait(), Ok(None));
    assert_eq!(found_in_checkpoint(&forest, trimmed), 0);
}

/// A checkpoint is made beside the writers. What they do after its moment may be lost with the power.
#[test]
fn a_checkpoint_has_no_copy_and_no_erasure_that_came_after_it() {
    let journal = MemoryJournal::new();
    let hooks = Hooks::of(journal.clone());
    let forest = open(hooks.clone());
    let tree = forest.create("t").wait().unwrap();
    for name in ["gone", "kept", "erased"] {
        put_erasable(&tree, name);
    }
    copy(&tree, "gone", "gone copy");
    let erased = copy(&tree, "erased", "erased copy");
    forget(&tree, &["gone", "gone copy", "erased copy"]);
    // The journal is asked after the moment of the checkpoint: the copied blob is no longer in memory.
    let before = Arc::new(Mutex::new(None));
    let (writer, found) = (tree.clone(), Arc::clone(&before));
    hooks.when_asked_for_blob(move || {
        *found.lock().unwrap() = Some(journal.copy());
        copy(&writer, "kept", "number");
        erase(&writer, "erased");
    });
    let checkpoint = forest.checkpoint().wait().unwrap();
    let before = before.lock().unwrap().take().unwrap();
    before.put_checkpoint(checkpoint).wait().unwrap();
    let forest = open(before.clone());
    let tree = forest.get("t").unwrap();
    let value = |name: &str| {
        let view = tree.view();
        match forest.value(view.tree().root(), name).unwrap() {
            Value::Erasable(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    };
    // The attribute never had the copy.
    erase(&tree, "number");
    assert_eq!(value("kept").as_deref(), Some(&b"kept"[..]));
    // The bytes were not erased, and can be, where the history has a copy of their reference.
    assert_eq!(value("erased").as_deref(), Some(&b"erased"[..]));
    erase(&tree, "erased copy");
    assert_eq!(value("erased"), None);
    assert_eq!(before.blob(erased).wait(), Ok(None));
}
