//! Every operation, and random sequences of operations, against a naive tree that is copied whole.

#[path = "support/model.rs"]
mod model;

use std::collections::VecDeque;

use model::{Model, grown, perform, steps};
use proptest::prelude::*;
use weald_tree::{Attributes, Change, Node, NodeId, Tree, Where};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_version_for_each_step_and_no_old_one_changes(steps in steps(60)) {
        let mut tree = Tree::new();
        let mut model = Model::of(tree.root());
        let mut versions = vec![(tree.clone(), model.clone())];
        for step in &steps {
            let mut edit = tree.edit();
            perform(&mut edit, &mut model, step);
            tree = edit.freeze();
            prop_assert_eq!(&Model::of(tree.root()), &model);
            prop_assert_eq!(tree.len(), model.ids().len() as u64);
            versions.push((tree.clone(), model.clone()));
            for (old, old_model) in &versions {
                prop_assert_eq!(&Model::of(old.root()), old_model);
            }
        }
    }

    #[test]
    fn many_steps_in_one_edit_leave_the_base_alone(first in steps(60), second in steps(120)) {
        let (base, before) = grown(&first);
        let mut model = before.clone();
        let mut edit = base.edit();
        for step in &second {
            perform(&mut edit, &mut model, step);
        }
        let tree = edit.freeze();
        prop_assert_eq!(Model::of(tree.root()), model);
        prop_assert_eq!(Model::of(base.root()), before);
    }

    #[test]
    fn the_operations_of_an_edit_make_the_same_version_again(first in steps(40), second in steps(40)) {
        let (base, mut model) = grown(&first);
        let mut edit = base.edit();
        for step in &second {
            perform(&mut edit, &mut model, step);
        }
        let (_, script) = edit.finish();
        let mut again = base.edit();
        for operation in script.operations() {
            again.apply(operation).unwrap();
        }
        prop_assert_eq!(Model::of(again.freeze().root()), model);
    }

    #[test]
    fn walks_see_each_node_in_their_order(steps in steps(80)) {
        let (tree, model) = grown(&steps);
        let root = tree.root();
        prop_assert_eq!(root.preorder().map(|n| n.id()).collect::<Vec<_>>(), model.ids());
        prop_assert_eq!(root.postorder().map(|n| n.id()).collect::<Vec<_>>(), postorder(&model));
        prop_assert_eq!(root.breadth_first().map(|n| n.id()).collect::<Vec<_>>(), breadth(&model));
        // `for_each` has an implementation of its own, which starts from wherever the walk is.
        for start in 0..4 {
            let mut walk = root.preorder();
            let mut ids: Vec<_> = walk.by_ref().take(start).map(|n| n.id()).collect();
            walk.for_each(|node| ids.push(node.id()));
            prop_assert_eq!(ids, model.ids());
        }
        for node in root.preorder() {
            prop_assert_eq!(tree.at(&node.path()), Ok(node));
            let children: Vec<_> = node.children().collect();
            prop_assert_eq!(node.children().len(), node.child_count());
            for (position, child) in children.iter().enumerate() {
                prop_assert_eq!(child.parent(), Some(node));
                prop_assert_eq!(child.position(), position);
                prop_assert_eq!(node.child(position), Some(*child));
                let rest: Vec<_> = node.children_in(position..usize::MAX).collect();
                prop_assert_eq!(&rest[..], &children[position..]);
                let some: Vec<_> = node.children_in(position..position + 2).collect();
                prop_assert_eq!(&some[..], &children[position..children.len().min(position + 2)]);
            }
        }
    }

    #[test]
    fn a_diff_is_what_a_comparison_of_all_nodes_finds(first in steps(60), second in steps(20)) {
        let (old, mut model) = grown(&first);
        let mut edit = old.edit();
        for step in &second {
            perform(&mut edit, &mut model, step);
        }
        let new = edit.freeze();
        let mut ids: Vec<NodeId> = [&old, &new].iter().flat_map(|t| Model::of(t.root()).ids()).collect();
        ids.sort();
        ids.dedup();
        let mut changes = old.diff(&new);
        for id in ids {
            match (old.node(id), new.node(id)) {
                (None, Some(node)) => prop_assert_eq!(changes.next(), Some(Change::Added(node))),
                (Some(node), None) => prop_assert_eq!(changes.next(), Some(Change::Deleted(node))),
                (Some(a), Some(b)) => {
                    let other_parent = a.parent().map(|n| n.id()) != b.parent().map(|n| n.id());
                    if other_parent || a.attributes() != b.attributes() {
                        let change = changes.next();
                        prop_assert_eq!(change, Some(Change::Changed { old: a, new: b }));
                        prop_assert!(!other_parent || change.is_some_and(|c| c.is_moved()));
                    } else if a.parent().is_some() {
                        // A move under the same parent sets a new key, and shows up as a move.
                        let is_moved = changes.by_ref().clone().next().is_some_and(|c| c.id() == id);
                        if is_moved {
                            prop_assert!(changes.next().is_some_and(|c| c.is_moved()));
                        }
                    }
                }
                (None, None) => prop_assert!(false, "{} is in neither version", id),
            }
        }
        prop_assert_eq!(changes.next(), None);
    }
}

fn postorder(model: &Model) -> Vec<NodeId> {
    let below = model.children.iter().flat_map(postorder);
    below.chain([model.id]).collect()
}

fn breadth(model: &Model) -> Vec<NodeId> {
    let (mut queue, mut ids) = (VecDeque::from([model]), Vec::new());
    while let Some(node) = queue.pop_front() {
        ids.push(node.id);
        queue.extend(&node.children);
    }
    ids
}

/// An edit remembers where it appended last; whatever it does in between, it appends where a fresh edit would.
#[test]
fn an_append_finds_its_place_whatever_came_before_it() {
    // Two trees, whose ids are alike, and are told to the other one by their numbers.
    let (mut one, mut each) = (Tree::new().edit(), Tree::new());
    let number = |node: Node<'_>| NodeId::new(node.id().get()).expect("not zero");
    let mut nodes = vec![number(each.root())];
    for step in 0..400_usize {
        let [node, other] = [7, 11].map(|factor| nodes[(step / 3 * factor) % nodes.len()]);
        let mut fresh = each.edit();
        let is_root = node == nodes[0];
        for edit in [&mut one, &mut fresh] {
            let at = match step % 9 {
                5 if !is_root => Where::Before(node),
                6 => Where::First(node),
                7 if !is_root => Where::After(node),
                _ => Where::Last(node),
            };
            let added = edit.add(at, Attributes::new()).expect("it is there");
            if step % 9 == 8 && other != nodes[0] {
                edit.delete(other).expect("it is there");
            }
            if step % 5 == 4 {
                // It moves unless it would end up under itself.
                let _ = edit.move_to(node, Where::Last(added));
                let _ = edit.move_to(added, Where::Last(nodes[0]));
            }
        }
        each = fresh.freeze();
        nodes = each.root().preorder().map(number).collect();
        assert!(one.tree().records().eq(each.records()), "step {step}");
    }
    assert!(nodes.len() > 100);
}
