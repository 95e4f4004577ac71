//! Erasable attributes are read like others; once erased they are gone from every version, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hooks::{Hooks, changes};
use tools::{ManualClock, Wait};
use weald_forest::journal::Change;
use weald_forest::{
    Attributes, Commit, CommitError, Forest, NodeId, Query, Tree, TreeHandle, Value,
};

fn bytes(forest: &Forest, root: &weald_forest::Root) -> Option<Vec<u8>> {
    let value = forest.value(root.tree().root(), "name")?;
    Some(value.bytes().expect("it was not erased").to_vec())
}

#[test]
fn what_is_erased_is_gone_from_every_version() {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    tree.add_index("name").wait().unwrap();
    let mut versions = Vec::new();
    for name in ["Ada", "Augusta"] {
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_attribute(root, "born", "1815").unwrap();
        edit.put_erasable(root, "name", name).unwrap();
        assert_eq!(
            edit.value(root, "name").unwrap(),
            Some(Value::Erasable(name.as_bytes().into()))
        );
        edit.commit().wait().unwrap();
        versions.push(tree.snapshot());
        assert_eq!(edit_sees(&tree), name);
    }
    assert_eq!(bytes(&forest, &versions[0]).unwrap(), b"Ada");
    assert_eq!(bytes(&forest, &versions[1]).unwrap(), b"Augusta");
    let root = versions[0].tree().root();
    assert_eq!(
        root.get("name").unwrap().len(),
        22,
        "the tree has only a reference"
    );
    let raw = root.to_json();
    assert!(!raw.contains("Ada"));
    assert_eq!(
        forest.export(root),
        r#"{"attributes":{"born":"1815","name":{"erasable":"Ada"}}}"#
    );
    assert_eq!(
        tree.view().find(&Query::prefix("name", "")).count(),
        0,
        "no index keeps it"
    );

    clock.advance(Duration::from_secs(5));
    let when = tree.erase(root.id(), "name").wait().unwrap().time;
    assert_eq!(
        when,
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_005)
    );
    for version in &versions {
        let node = version.tree().root();
        assert_eq!(forest.value(node, "name"), Some(Value::Erased { when }));
        assert_eq!(forest.value(node, "born"), Some(Value::Plain(b"1815")));
        assert_eq!(
            forest.export(node),
            r#"{"attributes":{"born":"1815","name":{"erased":"1000005"}}}"#
        );
    }
    // A value that is put afterwards is a new one.
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "name", "Lovelace").unwrap();
    edit.commit().wait().unwrap();
    assert_eq!(bytes(&forest, &tree.view()).unwrap(), b"Lovelace");
}

fn edit_sees(tree: &weald_forest::TreeHandle) -> String {
    let edit = tree.edit();
    let value = edit.value(edit.root(), "name").unwrap().unwrap();
    String::from_utf8(value.bytes().unwrap().to_vec()).unwrap()
}

#[test]
fn bytes_are_stored_with_their_commit_only() {
    let forest = Forest::new();
    let (tree, other) = (
        forest.create("t").wait().unwrap(),
        forest.create("o").wait().unwrap(),
    );
    let (mut lost, mut kept) = (tree.edit(), tree.edit());
    lost.put_erasable(lost.root(), "name", "lost").unwrap();
    kept.put_erasable(kept.root(), "name", "kept").unwrap();
    let reference = lost.tree().root().get("name").unwrap().to_vec();
    Commit::of([kept, tools::put(&other, "k", "v")])
        .unwrap()
        .wait()
        .unwrap();
    assert!(lost.commit().wait().is_err(), "the same attribute");
    let mut edit = other.edit();
    edit.put_attribute(edit.root(), "name", &reference).unwrap();
    edit.commit().wait().unwrap();
    let view = other.view();
    assert_eq!(
        forest.value(view.tree().root(), "name"),
        Some(Value::Elsewhere)
    );
    assert_eq!(
        forest.export(view.tree().root()),
        r#"{"attributes":{"k":"v","name":{"elsewhere":"erasable"}}}"#
    );
    let text = forest.export(view.tree().root());
    assert_eq!(
        Tree::from_json(&text).unwrap().root().to_json(),
        r#"{"attributes":{"k":"v"}}"#
    );
    assert_eq!(
        forest.draw(view.tree().root()),
        "#1 k=\"v\" name=(erasable, elsewhere)\n"
    );
    let elsewhere = Forest::new();
    let root = tree.snapshot();
    let root = root.tree().root();
    assert_eq!(elsewhere.value(root, "name"), Some(Value::Elsewhere));
    assert_eq!(bytes(&forest, &tree.view()).unwrap(), b"kept");
    // Erasing in one tree leaves other trees alone.
    let (node, name) = (view.tree().root().id(), "name".to_owned());
    let nothing = CommitError::NothingToErase { node, name };
    let before = forest.stats().commits;
    assert_eq!(other.erase(node, "name").wait(), Err(nothing));
    assert_eq!(forest.stats().commits, before);
    assert_eq!(bytes(&forest, &tree.view()).unwrap(), b"kept");
}

#[test]
fn an_erasure_does_not_reach_what_an_edit_has_yet_to_commit() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    edit.put_erasable(root, "name", "second").unwrap();
    let nothing = tree.erase(root, "name").wait();
    assert!(matches!(nothing, Err(CommitError::NothingToErase { .. })));
    // Its author reads it through the forest, too.
    assert_eq!(
        forest.value(edit.tree().root(), "name"),
        Some(Value::Erasable(b"second"[..].into()))
    );

    let mut first = tree.edit();
    first.put_erasable(root, "other", "first").unwrap();
    first.commit().wait().unwrap();
    tree.erase(root, "other").wait().unwrap();
    edit.commit().wait().unwrap();
    assert_eq!(bytes(&forest, &tree.view()).unwrap(), b"second");
    tree.erase(root, "name").wait().unwrap();
    let view = tree.view();
    let erased = forest.value(view.tree().root(), "name");
    assert!(matches!(erased, Some(Value::Erased { .. })));
    drop(view);
    let mut edit = tree.edit();
    edit.put_erasable(root, "name", "lost").unwrap();
    assert_eq!(forest.stats().blobs, 1);
    drop(edit);
    assert_eq!(forest.stats().blobs, 0, "an edit leaves no trace");
}

/// A commit that brings many references leaves them to its author. An erasure finds them all the same.
#[test]
fn many_copied_references_are_erased_before_their_author_has_noted_them() {
    let (hooks, many) = (Hooks::default(), 500);
    let forest = Forest::builder().journal(hooks.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let other = forest.create("o").wait().unwrap();
    let mut edit = tree.edit();
    let nodes: Vec<_> = (0..many)
        .map(|_| {
            let node = edit.append(edit.root(), Attributes::new()).unwrap();
            edit.put_erasable(node, "name", "Ada").unwrap();
            node
        })
        .collect();
    edit.commit().wait().unwrap();

    let queued = Arc::new(Mutex::new(None));
    let copy = tools::ByHand::new(forest.create_from("copy", tree.view().tree().clone()));
    let left = Arc::clone(&queued);
    hooks.during_next(move || {
        let mut copy = copy;
        assert!(copy.is_pending());
        *left.lock().unwrap() = Some(copy);
    });
    tools::commit(&other, "k", "v");
    // It is visible, and nobody has told its author.
    let copy = forest.get("copy").unwrap();
    let [first, last] = [nodes[0], nodes[many - 1]].map(|node| NodeId::new(node.get()).unwrap());
    copy.erase(first, "name").wait().unwrap();
    let is_erased = |tree: &TreeHandle, node: NodeId| {
        let view = tree.view();
        let value = forest.value(view.tree().node(node).unwrap(), "name");
        matches!(value, Some(Value::Erased { .. }))
    };
    assert!(is_erased(&tree, first) && is_erased(&copy, first));
    queued.lock().unwrap().take().unwrap().ready().unwrap();
    assert!(is_erased(&copy, first) && !is_erased(&copy, last));
    copy.erase(last, "name").wait().unwrap();
    assert!(is_erased(&tree, last));
    let again = copy.erase(first, "name").wait();
    assert!(again.is_ok(), "a journal may have more");
    assert_eq!(forest.stats().blobs, many as u64 - 2);
}

#[test]
fn values_of_a_deleted_tree_can_be_erased() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_erasable(root, "name", "Ada").unwrap();
    edit.commit().wait().unwrap();
    forest.delete("t").wait().unwrap();
    assert_eq!(bytes(&forest, &tree.view()).unwrap(), b"Ada");
    tree.erase(root, "name").wait().unwrap();
    let view = tree.view();
    let value = forest.value(view.tree().root(), "name");
    assert!(matches!(value, Some(Value::Erased { .. })));
}

/// Puts an erasable value, replacing any that is there.
fn put_erasable(tree: &TreeHandle, value: impl AsRef<[u8]>) {
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "name", value).unwrap();
    edit.commit().wait().unwrap();
}

#[test]
fn bytes_go_with_the_last_version_that_refers_to_them() {
    let forest = Forest::builder().keep(3).build();
    let tree = forest.create("t").wait().unwrap();
    let stored = || (forest.stats().blobs, forest.stats().blob_bytes);
    for number in 1..=10_u8 {
        put_erasable(&tree, [number; 100]);
        let kept = u64::from(number.min(3));
        assert_eq!(stored(), (kept, 100 * kept), "commit {number}");
    }
    // A tag and a reader keep what their versions refer to.
    tree.tag("t", tree.view().version()).wait().unwrap();
    let reader = tree.snapshot();
    for number in 0..5 {
        tools::commit(&tree, "name", &number.to_string());
    }
    assert_eq!(stored(), (1, 100));
    tree.untag("t").wait().unwrap();
    assert_eq!(bytes(&forest, &reader).unwrap(), [10; 100]);
    // A tree that was created from such a version keeps it, too.
    let copy = forest.create_from("copy", reader.tree().clone()).wait();
    drop(reader);
    assert_eq!(bytes(&forest, &copy.unwrap().view()).unwrap(), [10; 100]);
    assert_eq!(stored(), (1, 100));
    forest.delete("copy").wait().unwrap();
    assert_eq!(stored(), (0, 0));
    let root = tree.view().tree().root().id();
    assert!(tree.erase(root, "name").wait().is_err(), "nothing is left");
}

#[test]
fn bytes_of_edits_that_are_dropped_or_refused_are_not_stored() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let mut dropped = tree.edit();
    dropped.put_erasable(dropped.root(), "name", "a").unwrap();
    let mut refused = tree.edit();
    refused.put_erasable(refused.root(), "name", "b").unwrap();
    let mut overwritten = tree.edit();
    overwritten
        .put_erasable(overwritten.root(), "name", "c")
        .unwrap();
    overwritten
        .put_attribute(overwritten.root(), "name", "plain")
        .unwrap();
    overwritten.commit().wait().unwrap();
    assert!(refused.commit().wait().is_err());
    drop(dropped);
    assert_eq!(forest.stats().blobs, 0);
}

#[test]
fn an_erased_value_is_reported_as_long_as_a_version_refers_to_it() {
    let forest = Forest::builder().keep(1).build();
    let tree = forest.create("t").wait().unwrap();
    put_erasable(&tree, "Ada");
    let reader = tree.snapshot();
    let root = reader.tree().root();
    tree.erase(root.id(), "name").wait().unwrap();
    tools::commit(&tree, "name", "plain");
    assert!(matches!(
        forest.value(root, "name"),
        Some(Value::Erased { .. })
    ));
    assert_eq!(forest.stats().blobs, 0);
}

#[test]
fn a_journal_is_told_to_erase_what_no_version_has_any_longer() {
    let erased = Arc::new(Mutex::new(Vec::new()));
    let (journal, noted) = (Hooks::default(), Arc::clone(&erased));
    journal.look(move |record| {
        for change in changes(record) {
            if let Change::Erase(erasure) = change {
                noted.lock().unwrap().push(erasure.place.2);
            }
        }
        Ok(())
    });
    let forest = Forest::builder().keep(1).journal(journal).build();
    let tree = forest.create("t").wait().unwrap();
    put_erasable(&tree, "Ada");
    tools::commit(&tree, "name", "plain");
    assert_eq!(forest.stats().blobs, 0);
    let root = tree.view().tree().root().id();
    tree.erase(root, "name").wait().unwrap();
    assert_eq!(*erased.lock().unwrap(), ["name".into()]);
}

#[test]
fn an_export_can_be_imported_without_what_was_erased() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_attribute(root, "born", "1815").unwrap();
    edit.put_erasable(root, "name", "Ada").unwrap();
    edit.put_erasable(root, "title", "Countess").unwrap();
    edit.commit().wait().unwrap();
    tree.erase(root, "name").wait().unwrap();
    let text = forest.export(tree.view().tree().root());
    let again = Tree::from_json(&text).unwrap();
    assert_eq!(
        again.root().to_json(),
        r#"{"attributes":{"born":"1815","title":"Countess"}}"#
    );
    let mut taken = Vec::new();
    let again = Tree::from_json_with(&text, &mut |node, name, value| {
        taken.push((node, name.to_owned(), value.to_vec()));
    });
    let again = again.unwrap();
    assert_eq!(again.root().to_json(), r#"{"attributes":{"born":"1815"}}"#);
    let title = ("title".to_owned(), b"Countess".to_vec());
    assert_eq!(taken, [(again.root().id(), title.0, title.1)]);
}

/// A record is duplicated, and the copy gets a value of its own, in one commit: so no version has the first value
/// there.
#[test]
fn what_replaces_a_copied_reference_in_the_same_commit_is_erased_alone() {
    let changes: [fn(&mut weald_forest::Edit, NodeId); 3] = [
        |edit, node| edit.put_erasable(node, "name", "Bob").unwrap(),
        |edit, node| {
            edit.delete_attribute(node, "name").unwrap();
            edit.put_erasable(node, "name", "Bob").unwrap();
        },
        |edit, node| {
            edit.put_attribute(node, "name", "Bob").unwrap();
        },
    ];
    for change in changes {
        let journal = weald_forest::MemoryJournal::new();
        let forest = Forest::builder().journal(journal.clone()).build();
        let people = forest.create("people").wait().unwrap();
        put_erasable(&people, "Ada");
        let ada = people.snapshot();
        let mut edit = people.edit();
        let copied = ada.tree().root().attributes().clone();
        let bob = edit.append(edit.root(), copied).unwrap();
        change(&mut edit, bob);
        edit.commit().wait().unwrap();
        people.erase(bob, "name").wait().unwrap();
        let again = Forest::builder().journal(journal).recover().wait().unwrap();
        for forest in [forest, again] {
            let view = forest.get("people").unwrap().snapshot();
            let value = forest.value(view.tree().root(), "name").unwrap();
            assert_eq!(value.bytes(), Some(&b"Ada"[..]));
        }
    }
}

#[test]
fn a_copied_reference_is_erased_wherever_it_is() {
    let journal = weald_forest::MemoryJournal::new();
    let forest = Forest::builder().keep(1).journal(journal.clone()).build();
    let first = forest.create("first").wait().unwrap();
    put_erasable(&first, "Ada");
    let old = first.snapshot();
    let root = old.tree().root();
    let copy = forest
        .create_from("copy", old.tree().clone())
        .wait()
        .unwrap();
    // Byte by byte, in all ways.
    let raw = root.get("name").unwrap();
    let third = forest.create("third").wait().unwrap();
    let mut edit = third.edit();
    let top = edit.root();
    edit.put_attribute(top, "copied", raw).unwrap();
    let child = edit
        .append(top, Attributes::new().with("copied", raw))
        .unwrap();
    edit.commit().wait().unwrap();
    forest.delete("first").wait().unwrap();
    drop((old, first));
    let check = |forest: &Forest, is_erased: bool| {
        let [copy, third] = ["copy", "third"].map(|name| forest.get(name).unwrap().snapshot());
        let nodes = [
            (copy.tree().root(), "name"),
            (third.tree().root(), "copied"),
            (third.tree().node(child).unwrap(), "copied"),
        ];
        for (node, name) in nodes {
            match forest.value(node, name).unwrap() {
                Value::Erasable(bytes) => assert!(!is_erased && &*bytes == b"Ada"),
                Value::Erased { .. } => assert!(is_erased),
                Value::Plain(_) | Value::Elsewhere => panic!("the bytes are here"),
            }
        }
    };
    check(&forest, false);
    let again = Forest::builder().keep(1).journal(journal.copy());
    let again = again.recover().wait().unwrap();
    check(&again, false);
    drop(again);
    // Erasing works for everybody who has the reference.
    third.erase(child, "copied").wait().unwrap();
    check(&forest, true);
    let again = Forest::builder().keep(1).journal(journal.copy());
    check(&again.recover().wait().unwrap(), true);
    let copied = copy.view().tree().root().id();
    copy.erase(copied, "name").wait().unwrap();
}

#[test]
fn what_is_read_ahead_is_what_it_was() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let elsewhere = Forest::new();
    let other = elsewhere.create("t").wait().unwrap();
    let mut edit = other.edit();
    edit.put_erasable(edit.root(), "name", "Eve").unwrap();
    edit.commit().wait().unwrap();
    let foreign = other.view().tree().root().get_bytes("name").unwrap();

    // With so many nodes a tree is large.
    for count in [6, 1 << 14] {
        let mut edit = tree.edit();
        let root = edit.replace_root(Attributes::new());
        let append = |_| edit.append(root, Attributes::new()).unwrap();
        let nodes: Vec<_> = (0..count).map(append).collect();
        edit.put_attribute(nodes[0], "name", "plain").unwrap();
        edit.put_erasable(nodes[1], "name", "Ada").unwrap();
        edit.put_erasable(nodes[2], "name", "gone").unwrap();
        edit.put_attribute(nodes[3], "name", &*foreign).unwrap();
        edit.put_erasable(nodes[4], "name", "").unwrap();
        edit.commit().wait().unwrap();
        tree.erase(nodes[2], "name").wait().unwrap();

        let snapshot = tree.snapshot();
        let nodes: Vec<_> = snapshot.tree().root().children().take(6).collect();
        let values = || nodes.iter().map(|node| forest.value(*node, "name"));
        let before: Vec<_> = values().collect();
        for few in 0..=nodes.len() {
            forest.prefetch(&nodes[..few], "name");
            assert!(values().eq(before.iter().cloned()));
        }
        assert_eq!(before[0], Some(Value::Plain(b"plain")));
        assert!(matches!(&before[1], Some(Value::Erasable(name)) if **name == *b"Ada"));
        assert!(matches!(before[2], Some(Value::Erased { .. })));
        assert_eq!(before[3], Some(Value::Elsewhere));
        assert!(matches!(&before[4], Some(Value::Erasable(name)) if name.is_empty()));
        assert_eq!(before[5], None);
    }
}
