//! Operations that no edit made: an id that no source gave out is refused, and the source keeps working.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use weald_tree::{
    Attributes, EditError, Ids, NodeId, NodeRecord, Operation, RecordsError, Subtree, Target, Tree,
    Where,
};

/// The operations that bring a node with this id.
fn bring(tree: &Tree, id: u64) -> [Operation; 3] {
    let (parent, node) = (tree.root().id(), NodeId::new(id).unwrap());
    let mut model = tree.edit();
    model.append(parent, Attributes::new()).unwrap();
    let (_, script) = model.finish();
    let key = match &script.operations()[0] {
        Operation::Add { target, .. } => target.key.clone(),
        other => panic!("{other:?}"),
    };
    let at = Where::Last(parent);
    let target = Target { at, parent, key };
    let attributes = Attributes::new();
    [
        Operation::Add {
            node,
            target,
            attributes: attributes.clone(),
        },
        Operation::PushRoot {
            node,
            attributes: attributes.clone(),
        },
        Operation::ReplaceRoot { node, attributes },
    ]
}

#[test]
fn an_id_that_no_source_gave_out_is_refused() {
    let tree = Tree::new();
    for id in [
        u64::MAX / 2,
        u64::MAX / 2 - 1,
        1 << 62,
        (1 << 62) - 1,
        1 << 61,
    ] {
        let refused = EditError::IdTooLarge(NodeId::new(id).unwrap());
        for operation in bring(&tree, id) {
            assert_eq!(tree.edit().apply(&operation), Err(refused.clone()));
        }
    }
    let mut edit = tree.edit();
    let root = tree.root().id();
    edit.append(root, Attributes::new()).unwrap();
    assert_eq!(edit.freeze().len(), 2);
}

#[test]
fn the_largest_id_from_elsewhere_leaves_enough_ids() {
    let tree = Tree::new();
    let id = (1 << 61) - 1;
    let mut edit = tree.edit();
    edit.apply(&bring(&tree, id)[0]).unwrap();
    let root = tree.root().id();
    let next = edit.append(root, Attributes::new()).unwrap();
    assert!(next.get() > id);
    let new = edit.freeze();
    assert_eq!((new.len(), tree.diff(&new).count()), (3, 2));
}

/// What is given out after the largest id from elsewhere fits into an edit that is overtaken, and into a record.
#[test]
fn what_comes_after_the_largest_id_from_elsewhere_can_be_replayed() {
    let tree = Tree::new();
    let root = tree.root().id();
    let mut edit = tree.edit();
    edit.apply(&bring(&tree, (1 << 61) - 1)[0]).unwrap();
    let base = edit.freeze();
    let [first, second] = [(); 2].map(|()| {
        let mut edit = base.edit();
        edit.append(root, Attributes::new()).unwrap();
        edit.finish()
    });
    let (head, mut overtaken) = (first.0, second.1);
    let merged = overtaken.replay(&head).unwrap();
    assert_eq!(merged.len(), 4);
    let mut again = head.edit();
    again.replay(&overtaken.operations()[0]).unwrap();
    assert!(again.freeze().records().eq(merged.records()));
}

/// A node with this id, below another one or at the top.
fn record(id: u64, parent: Option<NodeId>) -> NodeRecord {
    let record = Tree::new().records().next().unwrap();
    let id = NodeId::new(id).unwrap();
    NodeRecord {
        id,
        parent,
        ..record
    }
}

#[test]
fn a_list_with_an_id_that_no_source_gave_out_is_refused() {
    for id in [1 << 61, (1 << 62) - 1, 1 << 62] {
        let refused = RecordsError::IdTooLarge(NodeId::new(id).unwrap());
        let tree = Tree::from_records(Ids::new(), [record(id, None)]);
        assert_eq!(tree.unwrap_err(), refused);
        let other = Tree::new();
        let subtree = Subtree::from_records(other.ids(), [record(id, None)]);
        assert_eq!(subtree.unwrap_err(), refused);
        assert_eq!(other.ids().last(), 1, "nothing was passed");
    }
    // A source that says that it has given them out is believed, so a tree that has such ids can be copied.
    let greatest = (1 << 62) - 1;
    let tree = Tree::from_records(Ids::above(greatest), [record(greatest, None)]).unwrap();
    let root = tree.root().id();
    assert_eq!(
        tree.edit().append(root, Attributes::new()),
        Err(EditError::NoIdLeft)
    );
    assert_eq!(tree.ids().last(), greatest);
    tree.ids().skip(10);
    assert_eq!(tree.ids().last(), greatest);
}

#[test]
fn what_a_journal_has_of_a_subtree_may_have_any_id_that_a_source_gives_out() {
    let tree = Tree::new();
    let [last, beyond] = [(1 << 62) - 1, 1 << 62];
    let refused = Subtree::recovered(tree.ids(), [record(beyond, None)]);
    assert!(matches!(refused, Err(RecordsError::IdTooLarge(_))));
    assert!(Subtree::recovered(tree.ids(), [record(last, None)]).is_ok());
}
