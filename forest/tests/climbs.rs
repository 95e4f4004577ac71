//! A chain of 100,000 nodes beside the nodes that are looked at: each node is climbed once, or the test never ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{Wait, with_children};
use weald_forest::{Attributes, Edit, Forest, NodeId, Path, Query, Since, Subtree, Where};

const DEPTH: usize = 100_000;

fn chain(edit: &Edit) -> Subtree {
    let mut builder = edit.tree().builder(Attributes::new());
    for _ in 0..DEPTH {
        builder.open(Attributes::new().with("k", "v"));
    }
    builder.finish()
}

/// Splices a chain in.
fn splice(mut edit: Edit, under: NodeId) {
    let chain = chain(&edit);
    edit.splice(Where::Last(under), &chain).unwrap();
    edit.commit().wait().unwrap();
}

#[test]
fn a_deletion_commutes_with_a_chain_that_was_added_meanwhile() {
    let (tree, children) = with_children(&Forest::new(), 2);
    let mut deletion = tree.edit();
    deletion.delete(children[0]).unwrap();
    splice(tree.edit(), children[1]);
    deletion.commit().wait().unwrap();
    assert_eq!(tree.view().tree().len(), DEPTH as u64 + 3);
}

#[test]
fn a_watch_and_a_query_skip_a_chain_elsewhere() {
    let (tree, children) = with_children(&Forest::new(), 2);
    tree.add_index("k").wait().unwrap();
    let path: Path = tree.view().tree().node(children[0]).unwrap().path();
    let mut watch = tree.watch(&path, Since::Now).unwrap();
    splice(tree.edit(), children[1]);
    let mut edit = tree.edit();
    edit.put_attribute(children[0], "k", "v").unwrap();
    let query = Query::equal("k", "v").under(children[0]);
    assert_eq!(edit.find(&query).unwrap(), [children[0]]);
    edit.commit().wait().unwrap();
    let seen = watch.next().wait().unwrap();
    assert_eq!(seen.after.version(), tree.view().version());
    let view = tree.view();
    let found: Vec<_> = view.find(&query).map(weald_forest::Node::id).collect();
    assert_eq!(found, [children[0]]);
}
