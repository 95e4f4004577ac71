//! The operations that lead from one version to another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/model.rs"]
mod model;

use std::collections::{BTreeMap, BTreeSet};

use model::{grown, perform, steps};
use proptest::prelude::*;
use weald_tree::{Attributes, EditError, Node, NodeId, NodeRecord, Operation, Tree, Where};

fn check(from: &Tree, to: &Tree) -> Vec<Operation> {
    let operations = from.operations_to(to);
    let (mut replayed, mut applied) = (from.edit(), from.edit());
    for operation in &operations {
        replayed.replay(operation).unwrap();
        applied.apply(operation).unwrap();
    }
    for made in [replayed.freeze(), applied.freeze()] {
        assert!(made.records().eq(to.records()), "{operations:?}");
        assert_eq!(made.root().to_json(), to.root().to_json());
        assert_eq!(made.len(), to.len());
        assert_eq!(made.diff(to).count(), 0);
    }
    operations
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn they_make_the_other_version(first in steps(60), one in steps(30), other in steps(30)) {
        let (base, model) = grown(&first);
        let [one, other] = [one, other].map(|steps| {
            let (mut edit, mut model) = (base.edit(), model.clone());
            steps.iter().for_each(|step| perform(&mut edit, &mut model, step));
            edit.freeze()
        });
        for (from, to) in [(&base, &one), (&one, &base), (&one, &other), (&other, &one)] {
            check(from, to);
        }
        prop_assert!(check(&base, &base).is_empty());
    }
}

/// The ids of the nodes that are in one of two versions, or are not the same in both.
fn differing(old: &Tree, new: &Tree) -> Vec<NodeId> {
    let all = |tree: &Tree| -> BTreeMap<NodeId, NodeRecord> {
        tree.records().map(|record| (record.id, record)).collect()
    };
    let (old, new) = (all(old), all(new));
    let ids: BTreeSet<NodeId> = old.keys().chain(new.keys()).copied().collect();
    let differs = |id: &NodeId| old.get(id) != new.get(id);
    ids.into_iter().filter(differs).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn versions_that_change_few_parents_again_and_again(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..7_u8, 1..5_usize), 1..30)
    ) {
        let mut first = Tree::new().edit();
        let mut nodes = vec![first.tree().root().id()];
        for number in 0..600 {
            nodes.push(node(&mut first, nodes[number / 7]));
        }
        let mut versions = vec![first.freeze()];
        for (number, (at, kind, times)) in (0..).zip(steps) {
            let parent = nodes[at.index(90)];
            for _ in 0..times {
                let mut edit = versions.last().unwrap().edit();
                match kind {
                    0 => edit.put_attribute(parent, "n", [number]).unwrap(),
                    1 => {
                        let last = edit.tree().node(parent).and_then(|node| node.child(0));
                        let last = last.filter(|node| node.child_count() == 0).map(Node::id);
                        last.into_iter().for_each(|last| edit.delete(last).unwrap());
                    }
                    _ => _ = node(&mut edit, parent),
                }
                versions.push(edit.freeze());
            }
        }
        for pair in versions.windows(2) {
            check(&pair[0], &pair[1]);
        }
        let newest = versions.last().unwrap();
        for version in &versions {
            let walked = version.root().preorder().map(Node::id);
            let records = version.records().map(|record| record.id);
            prop_assert_eq!(walked.collect::<BTreeSet<_>>(), records.collect());
            let found = version.diff(newest).map(|change| change.id());
            prop_assert_eq!(found.collect::<Vec<_>>(), differing(version, newest));
        }
    }
}

fn node(edit: &mut weald_tree::Edit, under: weald_tree::NodeId) -> weald_tree::NodeId {
    edit.append(under, Attributes::new()).unwrap()
}

#[test]
fn nodes_may_change_places_with_their_parents() {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    let a = node(&mut edit, root);
    let b = node(&mut edit, a);
    let c = node(&mut edit, b);
    let old = edit.freeze();
    let mut edit = old.edit();
    edit.move_to(c, Where::Last(root)).unwrap();
    edit.move_to(b, Where::Last(c)).unwrap();
    edit.move_to(a, Where::Last(b)).unwrap();
    let new = edit.freeze();
    check(&old, &new);
    check(&new, &old);
    // The root and its child: what was below comes to the top.
    let mut edit = old.edit();
    let top = edit.push_root(Attributes::new().with("n", "top"));
    edit.move_to(a, Where::Last(top)).unwrap();
    edit.move_to(root, Where::Last(c)).unwrap();
    edit.pop_root().unwrap();
    let turned = edit.freeze();
    assert_eq!(turned.root().id(), a);
    check(&old, &turned);
    check(&turned, &old);
}

#[test]
fn one_change_among_many_nodes_is_one_operation() {
    let mut builder = Tree::new().builder(Attributes::new());
    let nodes: Vec<_> = (0..10_000)
        .map(|_| builder.leaf(Attributes::new()))
        .collect();
    let old = builder.finish().into_tree();
    let mut edit = old.edit();
    edit.put_attribute(nodes[5_000], "k", "v").unwrap();
    edit.put_attribute(nodes[5_000], "l", "v").unwrap();
    edit.move_to(nodes[5_000], Where::First(old.root().id()))
        .unwrap();
    assert_eq!(check(&old, &edit.freeze()).len(), 3);
}

#[test]
fn only_a_root_with_one_child_is_popped() {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    assert_eq!(edit.pop_root(), Err(EditError::NotAlone(root)));
    let child = node(&mut edit, root);
    let other = node(&mut edit, root);
    assert_eq!(edit.pop_root(), Err(EditError::NotAlone(root)));
    let not_root = Operation::PopRoot { node: child };
    assert_eq!(edit.apply(&not_root), Err(EditError::NotAlone(child)));
    edit.delete(other).unwrap();
    edit.pop_root().unwrap();
    let tree = edit.freeze();
    assert_eq!((tree.root().id(), tree.len()), (child, 1));
    assert!(tree.node(root).is_none());
}
