//! A tree of depth 100,000 on a small stack: commits, rebases, queries, watches, restore, export, drop.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::Wait;
use weald_forest::{Attributes, Forest, NodeId, Path, Query, Since, Tree};

const DEPTH: usize = 100_000;

/// A chain of nodes, and its lowest node.
fn chain() -> (Tree, NodeId) {
    let mut edit = Tree::new().edit();
    let mut lowest = edit.tree().root().id();
    for _ in 0..DEPTH {
        lowest = edit.append(lowest, Attributes::new()).unwrap();
    }
    (edit.freeze(), lowest)
}

fn all() {
    let forest = Forest::new();
    let (tree, lowest) = chain();
    let tree = forest.create_from("deep", tree).wait().unwrap();
    tree.add_index("k").wait().unwrap();
    let before = tree.view().version();
    let mut watch = tree.watch(&Path::new(vec![0]), Since::Now).unwrap();

    let mut edit = tree.edit();
    edit.put_attribute(lowest, "k", "deep").unwrap();
    let root = edit.root();
    tools::commit(&tree, "other", "v");
    edit.commit().wait().unwrap();
    assert_eq!(forest.stats().rebases, 1);
    assert!(watch.next().wait().unwrap().touches(lowest));
    let query = Query::equal("k", "deep").under(root);
    assert_eq!(tree.view().find(&query).next().unwrap().id(), lowest);
    assert!(forest.export(tree.view().tree().root()).contains("deep"));

    let mut reader = tree.edit();
    reader.subtree(root).unwrap();
    reader.put_attribute(root, "k", "v").unwrap();
    let mut writer = tree.edit();
    writer.append(lowest, Attributes::new()).unwrap();
    writer.commit().wait().unwrap();
    assert!(reader.commit().wait().is_err());

    let mut edit = tree.edit();
    let child = edit.tree().root().child(0).unwrap().id();
    edit.delete(child).unwrap();
    edit.commit().wait().unwrap();
    assert_eq!(tree.view().tree().len(), 1);
    tree.restore(before).wait().unwrap();
    assert_eq!(tree.view().tree().len(), DEPTH as u64 + 1);
    assert!(forest.weigh().trees.records() > DEPTH as u64);
    forest.delete("deep").wait().unwrap();
}

#[test]
fn depth_costs_no_stack() {
    let thread = std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(all);
    thread.unwrap().join().unwrap();
}
