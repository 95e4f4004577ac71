//! A forest opens again after every commit that it acknowledged, even if a tree came with the last ids that there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use pollster::block_on;
use weald_forest::{Attributes, EditError, Forest, MemoryJournal, NodeId, Tree, Where};
use weald_tree::{Ids, NodeRecord};

const OWN_END: u64 = 1 << 62;

/// A tree of one node with this id, which is said to come from a source of ids.
fn with_id(id: u64) -> Tree {
    let record = Tree::new().records().next().unwrap();
    let node = NodeId::new(id).unwrap();
    Tree::from_records(Ids::above(id), [NodeRecord { id: node, ..record }]).unwrap()
}

/// Appends and splices until no id is left, or there are enough. Returns how many nodes there are then.
fn fill(forest: &Forest) -> u64 {
    let tree = forest.get("a").unwrap();
    for _ in 0..5 {
        let mut edit = tree.edit();
        if let Err(error) = edit.append(edit.root(), Attributes::new()) {
            assert_eq!(error, EditError::NoIdLeft);
            break;
        }
        block_on(edit.commit()).unwrap();
        let mut edit = tree.edit();
        if edit.tree().ids().last() < OWN_END - 1 {
            let subtree = edit.tree().builder(Attributes::new()).finish();
            edit.splice(Where::Last(edit.root()), &subtree).unwrap();
            block_on(edit.commit()).unwrap();
        }
    }
    tree.view().tree().len()
}

#[test]
fn a_forest_opens_after_every_commit_to_a_tree_with_the_greatest_ids() {
    // With 2²⁰ ids left, an opening skips the last of them.
    for id in [
        OWN_END / 2,
        OWN_END - (1 << 20),
        OWN_END - 17,
        OWN_END - 2,
        OWN_END - 1,
    ] {
        let journal = MemoryJournal::new();
        let forest = Forest::builder().journal(journal.clone()).build();
        block_on(forest.create_from("a", with_id(id))).unwrap();
        let filled = fill(&forest);
        assert!(filled > 1 || id == OWN_END - 1, "{filled} from {id}");
        drop(forest);
        for _ in 0..2 {
            let opening = Forest::builder().journal(journal.clone()).recover();
            let forest = block_on(opening).unwrap();
            let tree = forest.get("a").unwrap();
            assert_eq!(tree.view().tree().len(), filled, "from {id}");
            let mut edit = tree.edit();
            edit.put_attribute(edit.root(), "still", "used").unwrap();
            block_on(edit.commit()).unwrap();
        }
    }
}
