//! Indexes give the same answers as a walk over all nodes, in every version, after any operations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../tree/tests/support/model.rs"]
#[allow(dead_code, reason = "only the random steps are used")]
mod model;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::ops::Bound;

use model::{Model, Step, perform, steps};
use proptest::prelude::*;
use tools::{Wait, with_children};
use weald_forest::{Forest, NodeId, Plan, Query, Root};

/// Finds nodes by a look at every node.
fn scan(root: &Root, is_sought: &dyn Fn(&[u8]) -> bool) -> BTreeSet<NodeId> {
    let nodes = root
        .tree()
        .root()
        .find(|node| node.get("a").is_some_and(is_sought));
    nodes.map(|node| node.id()).collect()
}

fn find(root: &Root, query: &Query) -> BTreeSet<NodeId> {
    let found: Vec<NodeId> = root.find(query).map(|node| node.id()).collect();
    let set: BTreeSet<_> = found.iter().copied().collect();
    assert_eq!(set.len(), found.len(), "no node is found twice");
    set
}

fn check(root: &Root, value: &[u8], end: &[u8]) {
    let has_index = root.indexes().any(|name| name == "a");
    let agree = |query: Query, is_sought: &dyn Fn(&[u8]) -> bool| {
        let expected = scan(root, is_sought);
        assert_eq!(find(root, &query), expected);
        match root.explain(&query) {
            Plan::Index { candidates } => assert!(has_index && candidates == expected.len()),
            plan => assert!(
                !has_index
                    && plan
                        == Plan::Walk {
                            nodes: root.tree().len()
                        }
            ),
        }
    };
    agree(Query::equal("a", value), &|v| v == value);
    agree(Query::prefix("a", value), &|v| v.starts_with(value));
    let (low, high) = if value <= end {
        (value, end)
    } else {
        (end, value)
    };
    agree(Query::range("a", low..high), &|v| low <= v && v < high);
    agree(Query::range("a", low..=high), &|v| low <= v && v <= high);
    agree(
        Query::range::<&[u8]>("a", (Bound::Excluded(low), Bound::Unbounded)),
        &|v| v > low,
    );
    agree(Query::range::<&[u8]>("a", ..), &|_| true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_index_answers_as_a_walk_does(
        commits in prop::collection::vec((steps(12), any::<bool>()), 1..8_usize),
        values in (prop::collection::vec(any::<u8>(), 0..3), prop::collection::vec(any::<u8>(), 0..3)),
    ) {
        let forest = Forest::new();
        let tree = forest.create("t").wait().unwrap();
        let mut snapshots = vec![tree.snapshot()];
        for (number, (steps, is_together)) in (0_u8..).zip(&commits) {
            if number == 1 {
                tree.add_index("a").wait().unwrap();
                tree.add_index("b").wait().unwrap();
            }
            let mut plain = tree.view().tree().edit();
            let mut model = Model::of(plain.tree().root());
            steps.iter().for_each(|step: &Step| perform(&mut plain, &mut model, step));
            let mut edit = tree.edit().blind();
            plain.finish().1.operations().iter().for_each(|step| _ = edit.apply(step).unwrap());
            if *is_together {
                // Another commit comes first, so this one is rebased to it.
                let mut rival = tree.edit();
                rival.put_attribute(rival.root(), "a", [number]).unwrap();
                rival.commit().wait().unwrap();
            }
            edit.commit().wait().unwrap();
            snapshots.push(tree.snapshot());
        }
        let first = snapshots[0].version();
        tree.restore(first).wait().unwrap();
        snapshots.push(tree.snapshot());
        for snapshot in &snapshots {
            check(snapshot, &values.0, &values.1);
        }
        tree.drop_index("a").wait().unwrap();
        check(&tree.view(), &values.0, &values.1);
        let view = tree.view();
        let left: Vec<_> = view.indexes().collect();
        prop_assert_eq!(left, if commits.len() > 1 { vec!["b"] } else { vec![] });
    }
}

#[test]
fn an_edit_finds_what_it_wrote_and_what_it_did_not() {
    let forest = Forest::new();
    for has_index in [false, true] {
        let forest_tree = format!("{has_index}");
        let tree = forest.create(&forest_tree).wait().unwrap();
        let mut edit = tree.edit();
        let root = edit.root();
        let nodes: Vec<_> = (0..6_u8)
            .map(|n| {
                edit.append(root, weald_forest::Attributes::new().with("a", [n % 2]))
                    .unwrap()
            })
            .collect();
        edit.commit().wait().unwrap();
        if has_index {
            tree.add_index("a").wait().unwrap();
        }
        let mut edit = tree.edit();
        edit.put_attribute(nodes[0], "a", [1]).unwrap();
        edit.put_attribute(nodes[1], "a", [0]).unwrap();
        edit.delete(nodes[3]).unwrap();
        edit.move_to(nodes[5], weald_forest::Where::Last(nodes[4]))
            .unwrap();
        let new = edit
            .append(nodes[4], weald_forest::Attributes::new().with("a", [1]))
            .unwrap();
        let found = |query| -> BTreeSet<_> { edit.find(&query).unwrap().into_iter().collect() };
        assert_eq!(
            found(Query::equal("a", [1])),
            BTreeSet::from([nodes[0], nodes[5], new])
        );
        assert_eq!(
            found(Query::equal("a", [1]).under(nodes[4])),
            BTreeSet::from([nodes[5], new])
        );
        let gone = edit.find(&Query::equal("a", [1]).under(nodes[3]));
        assert_eq!(
            gone.unwrap_err(),
            weald_forest::EditError::Missing(nodes[3])
        );
        // The search is a read of the node's whole subtree.
        tools::commit(&tree, "a", "x");
        assert!(edit.commit().wait().is_err());
    }
}

#[test]
fn a_find_under_a_node_leaves_out_the_rest() {
    let (tree, children) = with_children(&Forest::new(), 3);
    let mut edit = tree.edit();
    for child in &children {
        edit.append(*child, weald_forest::Attributes::new().with("a", "x"))
            .unwrap();
    }
    edit.commit().wait().unwrap();
    let query = Query::equal("a", "x").under(children[1]);
    for _ in 0..2 {
        let view = tree.view();
        let found: Vec<_> = view
            .find(&query)
            .map(|node| node.parent().unwrap().id())
            .collect();
        assert_eq!(found, [children[1]]);
        tree.add_index("a").wait().unwrap();
    }
    let nowhere = Query::equal("a", "x").under(NodeId::new(999).unwrap());
    assert_eq!(tree.view().find(&nowhere).count(), 0);
    assert_eq!(
        tree.view().explain(&query).to_string(),
        "through the index; candidates: 3"
    );
}

/// In order of the leading attribute, its index is walked, unless another one yields far fewer nodes.
#[test]
fn a_plan_counts_the_index_that_is_walked() {
    let (tree, children) = with_children(&Forest::new(), 100);
    tree.add_index("many").wait().unwrap();
    tree.add_index("few").wait().unwrap();
    let mut edit = tree.edit();
    for (number, child) in children.iter().enumerate() {
        edit.put_attribute(*child, "many", "x").unwrap();
        if number < 50 {
            edit.put_attribute(*child, "few", "y").unwrap();
        }
        if number < 5 {
            edit.put_attribute(*child, "few", "z").unwrap();
        }
    }
    edit.commit().wait().unwrap();
    let plan = |value: &str| {
        let query = Query::equal("many", "x").and(Query::equal("few", value));
        tree.view().explain(&query)
    };
    assert!(matches!(plan("y"), Plan::Index { candidates: 100 }));
    assert!(matches!(plan("z"), Plan::Index { candidates: 5 }));
}
