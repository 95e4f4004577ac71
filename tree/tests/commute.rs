//! How two edits of one base affect each other when both are replayed on the same head.

#[path = "support/model.rs"]
mod model;

use model::{Model, Step, grown, perform, steps};
use proptest::prelude::*;
use weald_tree::{
    Attributes, Bytes, EditError, NodeId, Operation, OrderKey, Read, Script, Target, Tree, Where,
};

/// A root with three children, and their ids.
fn three() -> (Tree, [NodeId; 3]) {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    let children = [(); 3].map(|()| edit.append(root, Attributes::new()).expect("it is there"));
    (edit.freeze(), children)
}

fn replay(base: &Tree, scripts: &[&Script]) -> Result<Tree, EditError> {
    let mut edit = base.edit();
    for operation in scripts.iter().flat_map(|script| script.operations()) {
        edit.apply(operation)?;
    }
    Ok(edit.freeze())
}

fn children(tree: &Tree) -> Vec<NodeId> {
    tree.root().children().map(|node| node.id()).collect()
}

proptest! {
    /// Inserts next to siblings, replayed in either order.
    #[test]
    fn inserts_between_siblings_commute(places in prop::collection::vec((any::<bool>(), 0..3_usize, any::<bool>()), 0..40)) {
        let (base, siblings) = three();
        let mut edits = [base.edit(), base.edit()];
        for (is_second, sibling, is_after) in places {
            let sibling = siblings[sibling];
            let at = if is_after { Where::After(sibling) } else { Where::Before(sibling) };
            edits[usize::from(is_second)].add(at, Attributes::new()).unwrap();
        }
        let scripts = edits.map(|edit| edit.finish().1);
        let one = replay(&base, &[&scripts[0], &scripts[1]]).unwrap();
        let other = replay(&base, &[&scripts[1], &scripts[0]]).unwrap();
        prop_assert_eq!(Model::of(one.root()), Model::of(other.root()));
        let kept: Vec<_> = children(&one).into_iter().filter(|id| siblings.contains(id)).collect();
        prop_assert_eq!(kept, siblings);
    }

    /// Whatever two edits do, the second either applies and leaves a sound tree, or is refused.
    #[test]
    fn a_replay_on_a_newer_head_is_sound(first in steps(30), one in steps(12), other in steps(12)) {
        let (base, model) = grown(&first);
        let scripts = [one, other].map(|steps: Vec<Step>| {
            let (mut edit, mut model) = (base.edit(), model.clone());
            steps.iter().for_each(|step| perform(&mut edit, &mut model, step));
            edit.finish().1
        });
        let head = replay(&base, &[&scripts[0]]).unwrap();
        let before = Model::of(head.root());
        if let Ok(merged) = replay(&head, &[&scripts[1]]) {
            let ids = Model::of(merged.root()).ids();
            prop_assert_eq!(ids.len() as u64, merged.len());
            for node in merged.root().preorder() {
                prop_assert_eq!(node.parent().map_or(0, |parent| parent.children().position(|c| c == node).unwrap()), node.position());
            }
        }
        prop_assert_eq!(Model::of(head.root()), before);
    }
}

#[test]
fn appends_are_in_the_order_of_commits() {
    let (base, old) = three();
    let root = base.root().id();
    let mut edits = [base.edit(), base.edit()];
    let first = edits[0].append(root, Attributes::new()).unwrap();
    let second = edits[1].append(root, Attributes::new()).unwrap();
    let beside = edits[0]
        .add(Where::After(first), Attributes::new())
        .unwrap();
    let scripts = edits.map(|edit| edit.finish().1);
    let tree = replay(&base, &[&scripts[1], &scripts[0]]).unwrap();
    assert_eq!(
        children(&tree),
        [&old[..], &[second, first, beside]].concat()
    );
    let tree = replay(&base, &[&scripts[0], &scripts[1]]).unwrap();
    assert_eq!(
        children(&tree),
        [&old[..], &[first, beside, second]].concat()
    );
}

#[test]
fn an_operation_whose_nodes_are_gone_or_moved_is_refused() {
    let (base, [a, b, c]) = three();
    let script = |change: &dyn Fn(&mut weald_tree::Edit)| {
        let mut edit = base.edit();
        change(&mut edit);
        edit.finish().1
    };
    let gone = script(&|edit| edit.delete(a).unwrap());
    let put = script(&|edit| edit.put_attribute(a, "k", "v").unwrap());
    assert_eq!(
        replay(&base, &[&gone, &put]).err(),
        Some(EditError::Missing(a))
    );
    assert!(replay(&base, &[&put, &gone]).is_ok());

    let a_under_b = script(&|edit| edit.move_to(a, Where::Last(b)).unwrap());
    let b_under_a = script(&|edit| edit.move_to(b, Where::Last(a)).unwrap());
    let cycle = EditError::Cycle { node: b, parent: a };
    assert_eq!(replay(&base, &[&a_under_b, &b_under_a]).err(), Some(cycle));

    let beside_a = script(&|edit| _ = edit.add(Where::After(a), Attributes::new()).unwrap());
    assert_eq!(
        replay(&base, &[&a_under_b, &beside_a]).err(),
        Some(EditError::SiblingMoved(a))
    );
    assert_eq!(
        replay(&base, &[&beside_a, &beside_a])
            .err()
            .map(|e| matches!(e, EditError::AlreadyThere(_))),
        Some(true)
    );
    assert!(
        replay(
            &base,
            &[
                &beside_a,
                &a_under_b,
                &script(&|edit| edit.delete(c).unwrap())
            ]
        )
        .is_ok()
    );
}

#[test]
fn a_read_is_stale_only_when_what_it_read_has_changed() {
    let (base, [a, b, _]) = three();
    let root = base.root().id();
    let stale = |read: &dyn Fn(&weald_tree::Edit), change: &dyn Fn(&mut weald_tree::Edit)| {
        let reader = base.edit();
        read(&reader);
        let mut writer = base.edit();
        change(&mut writer);
        reader.finish().1.stale(&base, &writer.freeze())
    };
    let attribute = |edit: &weald_tree::Edit| _ = edit.attribute(a, "k").unwrap();
    let list = |edit: &weald_tree::Edit| _ = edit.children(root).unwrap().count();
    let all = |edit: &weald_tree::Edit| _ = edit.subtree(a).unwrap();
    let put = |node, name| {
        move |edit: &mut weald_tree::Edit| edit.put_attribute(node, name, "v").unwrap()
    };
    let append =
        |node| move |edit: &mut weald_tree::Edit| _ = edit.append(node, Attributes::new()).unwrap();

    let read = Read::Attribute {
        node: a,
        name: "k".into(),
    };
    assert_eq!(stale(&attribute, &put(a, "k")), Some(read));
    assert_eq!(stale(&attribute, &put(a, "other")), None);
    assert_eq!(stale(&attribute, &append(a)), None);
    assert_eq!(stale(&list, &append(root)), Some(Read::Children(root)));
    assert_eq!(stale(&list, &append(a)), None);
    assert_eq!(stale(&list, &put(a, "k")), None);
    assert_eq!(stale(&all, &append(a)), Some(Read::Subtree(a)));
    assert_eq!(stale(&all, &put(a, "k")), Some(Read::Subtree(a)));
    assert_eq!(stale(&all, &append(b)), None);
    assert_eq!(
        stale(&all, &|edit| edit.delete(a).unwrap()),
        Some(Read::Subtree(a))
    );
    assert_eq!(stale(&|_| (), &|edit| edit.delete(a).unwrap()), None);
}

#[test]
fn a_blind_edit_records_no_reads() {
    let (base, [a, ..]) = three();
    let edit = base.edit().blind();
    edit.subtree(a).unwrap();
    assert_eq!(edit.finish().1.reads(), []);
}

#[test]
fn ids_of_operations_from_elsewhere_are_not_given_out_again() {
    let (tree, [a, ..]) = three();
    let far = NodeId::new(1000).unwrap();
    let key = OrderKey::from_words(&[7]).unwrap();
    let target = Target {
        at: Where::First(a),
        parent: a,
        key,
    };
    let add = Operation::Add {
        node: far,
        target,
        attributes: Attributes::new(),
    };
    let mut edit = tree.edit();
    edit.apply(&add).unwrap();
    assert_eq!(edit.apply(&add), Err(EditError::AlreadyThere(far)));
    assert!(edit.append(a, Attributes::new()).unwrap() > far);
    let name = Bytes::new(&[0xff]);
    let put = Operation::PutAttribute {
        node: a,
        name,
        value: "v".into(),
    };
    assert_eq!(edit.apply(&put), Err(EditError::NameNotText(a)));
    assert_eq!(edit.freeze().node(a).unwrap().child(0).unwrap().id(), far);
}
