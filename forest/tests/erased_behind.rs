//! An erasure that stands behind commits which the journal refuses is not refused with them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use hooks::Hooks;
use tools::{ByHand, Wait, put};
use weald_forest::journal::{BlobId, Journal};
use weald_forest::{AppendError, CommitError, Committed, Forest, Level, MemoryJournal, TreeHandle};

type Commit = ByHand<Result<Committed, CommitError>>;

/// A tree whose root has the erasable attributes `a`, `b` and `c`, and a commit that waits for the journal's answer.
fn setup() -> (Forest, Hooks, MemoryJournal, TreeHandle, Commit) {
    let journal = MemoryJournal::by_hand();
    let hooks = Hooks::of(journal.clone());
    let forest = Forest::builder()
        .journal(hooks.clone())
        .level(Level::Accepted)
        .build();
    let mut creation = ByHand::new(forest.create("t"));
    assert!(creation.is_pending());
    journal.accept(1);
    let tree = creation.ready().unwrap();
    let mut edit = tree.edit();
    for name in ["a", "b", "c"] {
        edit.put_erasable(edit.root(), name, name).unwrap();
    }
    let mut first = ByHand::new(edit.commit());
    assert!(first.is_pending());
    journal.accept(1);
    first.ready().unwrap();
    let mut refused = ByHand::new(put(&tree, "x", "1").commit());
    assert!(refused.is_pending());
    (forest, hooks, journal, tree, refused)
}

fn erase(tree: &TreeHandle, name: &str) -> Commit {
    let mut erasing = ByHand::new(tree.erase(tree.view().tree().root().id(), name));
    assert!(erasing.is_pending());
    erasing
}

fn must_be_refused(mut commit: Commit, error: AppendError) {
    assert_eq!(commit.ready(), Err(CommitError::Journal(error)));
}

#[test]
fn erasures_come_first_when_those_before_them_are_refused() {
    let (forest, _, journal, tree, refused) = setup();
    let first = erase(&tree, "a");
    let mut between = ByHand::new(put(&tree, "y", "1").commit());
    assert!(between.is_pending());
    let second = erase(&tree, "b");
    journal.refuse(AppendError::Full);
    must_be_refused(refused, AppendError::Full);
    must_be_refused(between, AppendError::Behind);
    assert_eq!(journal.waiting(), 2);
    // A request that is made later is served later.
    let mut later = ByHand::new(put(&tree, "z", "1").commit());
    assert!(later.is_pending());
    journal.accept(3);
    let mut numbers = Vec::new();
    let mut erasures = [first, second];
    assert!(erasures.iter_mut().all(ByHand::is_pending));
    journal.sync(Level::Durable);
    for mut erasure in erasures {
        numbers.push(erasure.ready().unwrap().version.number);
    }
    numbers.push(later.ready().unwrap().version.number);
    assert!(numbers.is_sorted());
    let view = tree.view();
    for (name, is_there) in [("a", false), ("b", false), ("c", true)] {
        let value = forest.value(view.tree().root(), name).unwrap();
        assert_eq!(value.bytes().is_some(), is_there, "{name}");
    }
}

#[test]
fn an_erasure_that_comes_before_the_refusal_is_noticed_is_appended_again() {
    let (_forest, hooks, journal, tree, refused) = setup();
    let refuses = journal.clone();
    hooks.during_next(move || refuses.refuse(AppendError::Full));
    let mut erasure = erase(&tree, "a");
    must_be_refused(refused, AppendError::Full);
    assert_eq!(journal.waiting(), 1);
    journal.accept(1);
    assert!(erasure.is_pending(), "it is not durable");
    journal.sync(Level::Durable);
    erasure.ready().unwrap();
}

#[test]
fn an_erasure_is_refused_once_it_is_the_oldest() {
    let (_forest, _, journal, tree, refused) = setup();
    let erasures = ["a", "b", "c"].map(|name| erase(&tree, name));
    journal.refuse(AppendError::Full);
    must_be_refused(refused, AppendError::Full);
    for erasure in erasures {
        journal.refuse(AppendError::Full);
        must_be_refused(erasure, AppendError::Full);
    }
    assert_eq!(journal.waiting(), 0);
}

#[test]
fn a_reference_that_is_on_its_way_is_erased_in_the_journal_too() {
    let (_forest, _, journal, tree, mut first) = setup();
    journal.accept(1);
    first.ready().unwrap();
    let view = tree.view();
    let reference = view.tree().root().get("c").unwrap();
    let id = BlobId(u128::from_le_bytes(*reference.last_chunk().unwrap()));
    assert!(journal.blob(id).wait().unwrap().is_some());
    let mut edit = tree.edit();
    edit.put_attribute(edit.root(), "copy", reference).unwrap();
    let mut copies = ByHand::new(edit.commit());
    assert!(copies.is_pending());
    let mut erasure = erase(&tree, "copy");
    journal.accept(2);
    copies.ready().unwrap();
    assert!(erasure.is_pending(), "it is not durable");
    journal.sync(Level::Durable);
    erasure.ready().unwrap();
    assert_eq!(journal.blob(id).wait().unwrap(), None);
}
