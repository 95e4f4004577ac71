//! An id that another tree of the forest gave out is refused, even after both were read from a journal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::Wait;
use weald_forest::{
    CommitError, EditError, Forest, MemoryJournal, NodeId, Since, TreeHandle, WatchError,
};

fn root(tree: &TreeHandle) -> NodeId {
    tree.view().tree().root().id()
}

fn is_refused_by((forest, tree): (&Forest, &TreeHandle), id: NodeId) {
    assert_eq!(id, root(tree), "the number is one of this tree, too");
    let refused = tree.edit().put_attribute(id, "k", "v");
    assert_eq!(refused, Err(EditError::OtherTree(id)));
    let refused = tree.erase(id, "k").wait();
    assert_eq!(refused, Err(CommitError::OtherTree(id)));
    let refused = forest.erase_in(tree.number(), id, "k").wait();
    assert_eq!(refused, Err(CommitError::OtherTree(id)));
    let refused = tree.watch_node(id, Since::Now).err();
    assert_eq!(refused, Some(WatchError::OtherTree(id)));
    assert!(
        tree.edit()
            .put_attribute(NodeId::new(id.get()).unwrap(), "k", "v")
            .is_ok()
    );
}

#[test]
fn an_id_of_another_tree_is_refused() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let [one, other] = ["one", "other"].map(|name| forest.create(name).wait().unwrap());
    let copy = one.snapshot().tree().clone();
    let copy = forest.create_from("copy", copy).wait().unwrap();
    for tree in [&other, &copy] {
        is_refused_by((&forest, tree), root(&one));
        is_refused_by((&forest, &one), root(tree));
    }
    let before = root(&one);
    drop((forest, one, other, copy));
    let forest = Forest::builder().journal(journal).recover().wait().unwrap();
    let [one, other, copy] = ["one", "other", "copy"].map(|name| forest.get(name).unwrap());
    for tree in [&other, &copy] {
        is_refused_by((&forest, tree), before);
        is_refused_by((&forest, tree), root(&one));
    }
    assert!(one.edit().put_attribute(before, "k", "v").is_ok());
}
