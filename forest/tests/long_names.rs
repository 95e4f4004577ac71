//! What no medium could hold is refused at the entrance.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::Wait;
use weald_forest::{
    Attributes, CommitError, EditError, Forest, MAX_ERASABLE_NAME, MemoryJournal, Value,
};

#[test]
fn an_erasable_attribute_has_a_short_name() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal).build();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    let (longest, longer) = (
        "n".repeat(MAX_ERASABLE_NAME),
        "n".repeat(MAX_ERASABLE_NAME + 1),
    );
    let refused = EditError::NameTooLong {
        len: MAX_ERASABLE_NAME + 1,
        max: MAX_ERASABLE_NAME,
    };
    assert_eq!(edit.put_erasable(root, &longer, "secret"), Err(refused));
    edit.put_erasable(root, &longest, "secret").unwrap();
    edit.commit().wait().unwrap();
    assert!(tree.view().tree().root().get(&longer).is_none());

    // Bytes that were copied to a longer name are erased through the name that they came from.
    let reference = tree.view().tree().root().get(&longest).unwrap().to_vec();
    let mut edit = tree.edit();
    let copy = edit
        .append(root, Attributes::new().with(&longer, reference))
        .unwrap();
    edit.commit().wait().unwrap();
    let error = CommitError::NameTooLong(MAX_ERASABLE_NAME + 1);
    assert_eq!(tree.erase(copy, &longer).wait().unwrap_err(), error);
    tree.erase(root, &longest).wait().unwrap();
    let view = tree.view();
    let copied = view.tree().node(copy).unwrap();
    let value = forest.value(copied, &longer);
    assert!(matches!(value, Some(Value::Erased { .. })), "{value:?}");
}
