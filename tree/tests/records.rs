//! Versions as lists of records, and operations that hold what happened.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/model.rs"]
mod model;

use model::{Model, grown, perform, steps};
use proptest::prelude::*;
use weald_tree::{
    Attributes, Ids, NodeId, NodeRecord, Operation, OrderKey, RecordsError, Subtree, Tree, Where,
};

fn list(tree: &Tree) -> Vec<NodeRecord> {
    tree.records().collect()
}

fn again(tree: &Tree) -> Tree {
    Tree::from_records(Ids::above(tree.ids().last()), tree.records()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_tree_is_its_records(first in steps(80), second in steps(20)) {
        let (tree, model) = grown(&first);
        let read = again(&tree);
        prop_assert_eq!(list(&read), list(&tree));
        prop_assert!(list(&tree).is_sorted_by_key(|record| record.id));
        prop_assert_eq!(Model::of(read.root()), model.clone());
        prop_assert_eq!(read.len(), tree.len());
        prop_assert_eq!(read.ids().last(), tree.ids().last());
        // Both go on in the same way, with the same ids and the same keys.
        let [one, other] = [&tree, &read].map(|tree| {
            let (mut edit, mut model) = (tree.edit(), model.clone());
            second.iter().for_each(|step| perform(&mut edit, &mut model, step));
            edit.freeze()
        });
        prop_assert_eq!(list(&one), list(&other));
        prop_assert_eq!(one.root().to_json(), other.root().to_json());
    }

    #[test]
    fn operations_that_were_rebased_hold_what_happened(
        first in steps(30), one in steps(12), other in steps(12)
    ) {
        let (base, model) = grown(&first);
        let [one, mut other] = [one, other].map(|steps| {
            let (mut edit, mut model) = (base.edit(), model.clone());
            steps.iter().for_each(|step| perform(&mut edit, &mut model, step));
            edit.finish()
        });
        let (mut recorded, mut applied) = (base.edit(), base.edit());
        for operation in one.1.operations() {
            recorded.replay(operation).unwrap();
            applied.apply(operation).unwrap();
        }
        prop_assert_eq!(list(recorded.tree()), list(&one.0));
        prop_assert_eq!(list(applied.tree()), list(&one.0));
        if let Ok(merged) = other.1.replay(&one.0) {
            let before = other.1.operations().len();
            for operation in other.1.operations() {
                // As a record has it: without the place that the author meant.
                recorded.replay(&without_place(operation)).unwrap();
            }
            prop_assert_eq!(list(recorded.tree()), list(&merged));
            prop_assert_eq!(recorded.finish().1.operations().len(), one.1.operations().len() + before);
        }
    }

    #[test]
    fn a_subtree_is_its_records(shape in prop::collection::vec(any::<bool>(), 0..80)) {
        let trees = [Tree::new(), Tree::new()];
        let mut builder = trees[0].builder(Attributes::new().with("n", "root"));
        for (number, is_open) in shape.into_iter().enumerate() {
            builder.open(Attributes::new().with("n", number.to_string()));
            if !is_open {
                builder.close();
            }
        }
        let built = builder.finish();
        let read = Subtree::from_records(trees[1].ids(), built.records()).unwrap();
        prop_assert!(read.records().eq(built.records()));
        prop_assert_eq!((read.root(), read.len()), (built.root(), built.len()));
        let [one, other] = [(&trees[0], built), (&trees[1], read)].map(|(tree, subtree)| {
            let mut edit = tree.edit();
            edit.splice(Where::Last(tree.root().id()), &subtree).unwrap();
            let next = edit.append(subtree.root(), Attributes::new()).unwrap();
            (list(&edit.freeze()), next)
        });
        prop_assert_eq!(one, other);
    }
}

fn without_place(operation: &Operation) -> Operation {
    let mut operation = operation.clone();
    if let Operation::Add { target, .. }
    | Operation::Splice { target, .. }
    | Operation::Move { target, .. } = &mut operation
    {
        target.at = Where::First(NodeId::new(u64::MAX / 2).unwrap());
    }
    operation
}

#[test]
fn applying_an_operation_tells_the_key_that_was_used() {
    let base = Tree::new();
    let root = base.root().id();
    let [one, other] = [(); 2].map(|()| {
        let mut edit = base.edit();
        edit.append(root, Attributes::new()).unwrap();
        edit.finish().1
    });
    let key = |operation: &Operation| match operation {
        Operation::Add { target, .. } => target.key.clone(),
        other => panic!("{other:?}"),
    };
    let wished = key(&one.operations()[0]);
    let mut edit = base.edit();
    edit.apply(&other.operations()[0]).unwrap();
    let used = edit.apply(&one.operations()[0]).unwrap().unwrap();
    assert_ne!(
        used, wished,
        "the other one has that key, and comes after it by its id"
    );
    let (tree, script) = edit.finish();
    assert_eq!(key(&script.operations()[1]), used);
    let last = tree.root().children().last().unwrap().id();
    assert_eq!(
        list(&tree)
            .iter()
            .find(|record| record.id == last)
            .unwrap()
            .key,
        used
    );
}

#[test]
fn a_list_that_describes_no_tree_is_refused() {
    let id = |number| NodeId::new(number).unwrap();
    let record = |number: u64, parent: Option<u64>| NodeRecord {
        id: id(number),
        parent: parent.map(id),
        key: OrderKey::from_words(&[number]).unwrap(),
        attributes: Attributes::new(),
    };
    let refused = |records: Vec<NodeRecord>| Tree::from_records(Ids::new(), records).unwrap_err();
    assert_eq!(refused(vec![]), RecordsError::NoRoot);
    assert_eq!(
        refused(vec![record(2, None), record(1, Some(2))]),
        RecordsError::OutOfOrder(id(1))
    );
    assert_eq!(
        refused(vec![record(1, None), record(2, None)]),
        RecordsError::TwoRoots(id(2))
    );
    assert_eq!(
        refused(vec![record(1, None), record(2, Some(7))]),
        RecordsError::NoParent {
            node: id(2),
            parent: id(7)
        }
    );
    assert_eq!(
        refused(vec![
            record(1, None),
            record(2, Some(3)),
            record(3, Some(2))
        ]),
        RecordsError::Circle(2)
    );
    assert_eq!(
        refused(vec![record(1, None), record(1 << 62, Some(1))]),
        RecordsError::IdTooLarge(id(1 << 62))
    );
}

#[test]
fn ids_that_records_bring_are_not_given_out_again() {
    let ids = Ids::new();
    let record = NodeRecord {
        id: NodeId::new(40).unwrap(),
        parent: None,
        key: OrderKey::from_words(&[1]).unwrap(),
        attributes: Attributes::new(),
    };
    Tree::from_records(ids.clone(), [record]).unwrap();
    assert_eq!(ids.last(), 40);
    assert_eq!(ids.take().get(), 41);
}

#[test]
fn an_edit_counts_its_steps() {
    let tree = Tree::new();
    let root = tree.root().id();
    let mut builder = tree.builder(Attributes::new());
    (0..9).for_each(|_| _ = builder.leaf(Attributes::new()));
    let subtree = builder.finish();
    let mut edit = tree.edit();
    edit.append(root, Attributes::new()).unwrap();
    assert_eq!(edit.steps(), 1);
    edit.splice(Where::Last(root), &subtree).unwrap();
    assert_eq!(edit.steps(), 2 + 10);
    edit.delete(subtree.root()).unwrap();
    assert_eq!(edit.steps(), 3 + 20);
    edit.subtree(root).unwrap();
    let (_, script) = edit.finish();
    assert_eq!(script.steps(), 23);
    // What is applied counts as what is done.
    let mut again = tree.edit();
    for operation in script.operations() {
        again.apply(operation).unwrap();
    }
    assert_eq!(again.steps(), 23);
    assert_eq!(script.steps_to_rebase(100), 23 + 1 + 100);
    let mut edit = tree.edit();
    edit.append(root, Attributes::new()).unwrap();
    assert_eq!(edit.into_script().steps_to_rebase(100), 1);
}

#[test]
fn the_long_values_of_a_subtree_are_counted() {
    let tree = Tree::new();
    let root = tree.root().id();
    let long = "v".repeat(100_000);
    let mut builder = tree.builder([("long", long.as_bytes())].into_iter().collect());
    builder.leaf([("short", &b"v"[..])].into_iter().collect());
    builder.leaf([("long", long.as_bytes())].into_iter().collect());
    let subtree = builder.finish();
    let mut edit = tree.edit();
    edit.splice(Where::Last(root), &subtree).unwrap();
    let (_, script) = edit.finish();
    let bytes = script.operations()[0].long_bytes();
    assert!((200_000..200_400).contains(&bytes), "{bytes}");
}

#[test]
fn a_long_value_is_shared_and_not_copied() {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    edit.put_attribute(root, "long", [7; 1000]).unwrap();
    let tree = edit.freeze();
    let value = tree.root().get_bytes("long").unwrap();
    assert_eq!(value.as_ptr(), tree.root().get("long").unwrap().as_ptr());
    assert_eq!(tree.root().get_bytes("other"), None);
}
