//! Trees by their names: create, get, list, rename, delete, each with its typed error.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{Wait, commit, put, value_of};
use weald_forest::{CommitError, Forest, NameError, Tree};

#[test]
fn a_name_names_one_tree() {
    let forest = Forest::new();
    let first = forest.create("b").wait().unwrap();
    forest
        .create_from("a", Tree::from_json(r#"{"children":[{},{}]}"#).unwrap())
        .wait()
        .unwrap();
    assert_eq!(forest.list(), ["a", "b"]);
    assert_eq!(forest.get("a").unwrap().view().tree().len(), 3);
    let taken = CommitError::Name(NameError::Taken("b".into()));
    assert_eq!(forest.create("b").wait().unwrap_err(), taken);
    assert_eq!(forest.rename("a", "b").wait(), Err(taken));
    let missing = NameError::Missing("c".into());
    assert_eq!(forest.get("c").unwrap_err(), missing);
    assert_eq!(
        forest.delete("c").wait(),
        Err(CommitError::Name(missing.clone()))
    );
    assert_eq!(
        forest.rename("c", "d").wait(),
        Err(CommitError::Name(missing))
    );
    assert_eq!(forest.get("b").unwrap().number(), first.number());
}

#[test]
fn a_renamed_tree_is_the_same_tree() {
    let forest = Forest::new();
    let tree = forest.create("old").wait().unwrap();
    let version = commit(&tree, "k", "1").version;
    forest.rename("old", "new").wait().unwrap();
    assert_eq!(
        (tree.name().as_str(), forest.list()),
        ("new", vec!["new".to_owned()])
    );
    commit(&tree, "k", "2");
    let found = forest.get("new").unwrap();
    assert_eq!(value_of(&found, "k").unwrap(), "2");
    assert_eq!(
        found.kept_at(version).unwrap().tree().root().get_str("k"),
        Some("1")
    );
    assert!(forest.get("old").is_err());
}

#[test]
fn a_deleted_tree_can_be_read_but_not_changed() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let last = commit(&tree, "k", "v");
    let edit = put(&tree, "k", "w");
    forest.delete("t").wait().unwrap();
    assert!(tree.is_deleted());
    assert_eq!(edit.commit().wait(), Err(CommitError::Deleted("t".into())));
    assert_eq!(value_of(&tree, "k").unwrap(), "v");
    let anew = forest.create("t").wait().unwrap();
    assert!(
        anew.view().version().number > last.version.number + 1,
        "no number is reused"
    );
    assert_ne!(anew.number(), tree.number());
    assert_eq!(value_of(&anew, "k"), None);
}

#[test]
#[should_panic(expected = "an edit of a tree begins from a version of that tree")]
fn a_tree_that_was_created_from_another_is_a_tree_of_its_own() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let content = tree.view().tree().clone();
    let copy = forest.create_from("copy", content).wait().unwrap();
    let _ = copy.edit_from(&tree.snapshot());
}

#[test]
fn a_name_is_looked_up_when_the_change_is_made() {
    let forest = Forest::new();
    let first = forest.create("t").wait().unwrap();
    let (deletion, renaming) = (forest.delete("t"), forest.rename("u", "v"));
    forest.rename("t", "kept").wait().unwrap();
    let second = forest.create("t").wait().unwrap();
    deletion.wait().unwrap();
    assert!(second.is_deleted() && !first.is_deleted());
    forest.create("u").wait().unwrap();
    renaming.wait().unwrap();
    assert_eq!(forest.list(), ["kept", "v"]);
}

#[test]
fn a_name_has_a_length_and_no_control_characters() {
    let forest = Forest::new();
    let long = "n".repeat(1024);
    for name in ["a", "é", "e\u{301}", " ", &long] {
        forest.create(name).wait().unwrap();
    }
    assert_eq!(forest.list().len(), 5, "names are compared by bytes");
    let too_long = "n".repeat(1025);
    for name in ["", "\0", "a\nb", "\u{85}", &too_long] {
        let refused = forest.create(name).wait();
        let is_invalid =
            |error: &CommitError| matches!(error, CommitError::Name(NameError::Invalid(_)));
        assert!(refused.is_err_and(|error| is_invalid(&error)), "{name:?}");
        assert!(is_invalid(&forest.rename("a", name).wait().unwrap_err()));
    }
}

/// Short names are compared in words that are filled up with zeros.
#[test]
fn a_name_that_ends_in_a_zero_names_no_tree() {
    let forest = Forest::new();
    forest.create("tea").wait().unwrap();
    let missing = NameError::Missing("tea\0".into());
    assert_eq!(forest.get("tea\0").unwrap_err(), missing);
    let missing = Err(CommitError::Name(missing));
    assert_eq!(forest.delete("tea\0").wait(), missing);
    assert_eq!(forest.rename("tea\0", "x").wait(), missing);
    assert!(forest.get_or_create("tea\0").wait().is_err());
    assert_eq!(forest.list(), ["tea"]);
}

#[test]
fn trees_are_got_or_created_and_listed_by_prefix() {
    let forest = Forest::new();
    let first = forest.get_or_create("notes/1").wait().unwrap();
    let again = forest.get_or_create("notes/1").wait().unwrap();
    assert_eq!(first.number(), again.number());
    for name in ["notes/2", "notes", "note", "notf", "z"] {
        forest.create(name).wait().unwrap();
    }
    assert_eq!(forest.list_prefix("notes"), ["notes", "notes/1", "notes/2"]);
    assert_eq!(forest.list_prefix("notes/"), ["notes/1", "notes/2"]);
    assert_eq!(forest.list_prefix("x"), Vec::<String>::new());
    assert_eq!(forest.list_prefix("").len(), 6);
    assert!(forest.get_or_create("").wait().is_err());
}
