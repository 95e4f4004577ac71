//! An id of another tree is refused, whatever its number; one that is made of its number alone is not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use weald_tree::{Attributes, Builder, Edit, EditError, Ids, NodeId, Tree, Where};

/// A tree with a node under its root, and the ids of both.
fn tree() -> (Tree, [NodeId; 2]) {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    let node = edit.append(root, Attributes::new().with("n", "1")).unwrap();
    (edit.freeze(), [root, node])
}

/// What an edit may do with a node.
fn uses(edit: &mut Edit, node: NodeId) -> [Result<(), EditError>; 12] {
    let new = Attributes::new;
    let subtree = edit.tree().builder(new()).finish();
    [
        edit.append(node, new()).map(drop),
        edit.add(Where::First(node), new()).map(drop),
        edit.add(Where::AtKey(node), new()).map(drop),
        edit.add(Where::Before(node), new()).map(drop),
        edit.add(Where::After(node), new()).map(drop),
        edit.put_attribute(node, "n", "2"),
        edit.delete_attribute(node, "n"),
        edit.splice(Where::Last(node), &subtree),
        edit.attribute(node, "n").map(drop),
        edit.children(node).map(drop),
        edit.subtree(node).map(drop),
        edit.delete(node),
    ]
}

#[test]
fn an_id_of_another_tree_is_refused() {
    let ((tree, [_, own]), (_, [_, other])) = (tree(), tree());
    assert_eq!(own, other, "both trees count from one");
    let mut edit = tree.edit();
    for refused in uses(&mut edit, other) {
        assert_eq!(refused, Err(EditError::OtherTree(other)));
    }
    let root = tree.root().id();
    for (node, at) in [(other, Where::First(root)), (own, Where::Last(other))] {
        assert_eq!(edit.move_to(node, at), Err(EditError::OtherTree(other)));
    }
    assert!(edit.operations().is_empty());
    assert_eq!(uses(&mut edit, own), [const { Ok(()) }; 12]);
}

#[test]
fn ids_of_one_tree_are_its_own_wherever_they_come_from() {
    let (tree, [root, _]) = tree();
    let mut builder = tree.builder(Attributes::new());
    let built = builder.leaf(Attributes::new());
    let subtree = builder.finish();
    let mut edit = tree.edit();
    edit.splice(Where::Last(root), &subtree).unwrap();
    let above = edit.push_root(Attributes::new());
    let own = [built, subtree.root(), above, root];
    for id in own {
        edit.put_attribute(id, "n", "2").unwrap();
    }
    let next = edit.freeze();
    let mut found: Vec<_> = next.root().preorder().map(|node| node.id()).collect();
    found.extend(tree.diff(&next).map(|change| change.id()));
    found.extend(next.edit().children(root).unwrap());
    for id in found.into_iter().chain(own) {
        assert!(!tree.is_foreign(id));
        let refused = self::tree().0.edit().put_attribute(id, "n", "2");
        assert_eq!(refused, Err(EditError::OtherTree(id)));
    }
    let mut edit = next.edit();
    let root = edit.replace_root(Attributes::new());
    assert!(edit.freeze().root().id() == root && !next.is_foreign(root));
}

#[test]
fn an_id_that_is_made_of_its_number_is_of_any_tree() {
    let (one, [_, node]) = tree();
    let (other, _) = tree();
    let sent = NodeId::new(node.get()).unwrap();
    assert_eq!((sent, sent.to_string()), (node, node.to_string()));
    for tree in [one, other] {
        assert!(tree.edit().put_attribute(sent, "n", "2").is_ok());
    }
    assert_eq!(NodeId::new(1 << 63), None);
}

#[test]
fn a_tree_that_was_read_from_a_list_is_known_by_its_number() {
    let (tree, [_, node]) = tree();
    let read = |number| {
        let ids = Ids::above(tree.ids().last());
        Tree::from_records(ids, tree.records())
            .unwrap()
            .numbered(number)
    };
    let (one, again, other) = (read(7), read(7), read(8));
    let id = one.node(node).unwrap().id();
    assert!(!again.is_foreign(id) && other.is_foreign(id));
    // This one may be the same tree, from before it was written down.
    assert!(!tree.is_foreign(id) && !one.is_foreign(node));
    let built = Builder::new(Attributes::new()).finish().into_tree();
    assert!(!built.is_foreign(id));
}
