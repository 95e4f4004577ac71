//! A million children under one node: an edit touches as little as under a thousand children.
//!
//! The tests count what two versions do not share; they never measure time.

use weald_tree::{Attributes, Builder, NodeId, Tree, Where};

/// A root whose children do not form a run, because some of them have a child of their own.
fn wide(children: usize) -> (Tree, Vec<NodeId>) {
    let mut builder = Builder::new(Attributes::new());
    let mut ids = Vec::new();
    for number in 0..children {
        ids.push(builder.open(Attributes::new()));
        if number % 7 == 0 {
            builder.leaf(Attributes::new());
        }
        builder.close();
    }
    (builder.finish().into_tree(), ids)
}

#[test]
fn a_million_children_are_found_by_position_and_by_id() {
    let (tree, ids) = wide(1_000_000);
    let root = tree.root();
    assert_eq!(root.child_count(), ids.len());
    for position in [0, 1, 499_999, 999_999] {
        assert_eq!(
            root.child(position).map(|node| node.id()),
            Some(ids[position])
        );
        assert_eq!(
            tree.node(ids[position]).map(|node| node.position()),
            Some(position)
        );
    }
    let page: Vec<_> = root
        .children_in(700_000..700_020)
        .map(|node| node.id())
        .collect();
    assert_eq!(page, ids[700_000..700_020]);
    assert_eq!(root.child(1_000_000), None);
}

#[test]
fn edits_anywhere_in_a_million_children_change_only_what_they_name() {
    let (tree, ids) = wide(1_000_000);
    let root = tree.root().id();
    let mut edit = tree.edit();
    let last = edit.append(root, Attributes::new()).unwrap();
    let first = edit.add(Where::First(root), Attributes::new()).unwrap();
    let middle = edit
        .add(Where::After(ids[499_999]), Attributes::new())
        .unwrap();
    edit.delete(ids[10]).unwrap();
    edit.move_to(ids[20], Where::Before(ids[999_999])).unwrap();
    let new = edit.freeze();
    let position = |id| new.node(id).unwrap().position();
    // One was added before them, one was deleted, and one moved after them.
    assert_eq!(
        (position(first), position(ids[0]), position(ids[11])),
        (0, 1, 11)
    );
    assert_eq!(
        (position(ids[499_999]), position(middle)),
        (499_998, 499_999)
    );
    assert_eq!(
        (position(ids[20]), position(ids[999_999]), position(last)),
        (999_999, 1_000_000, 1_000_001)
    );
    assert_eq!(tree.diff(&new).count(), 5 + usize::from(10 % 7 == 0));
}

#[test]
fn a_version_that_is_taken_over_is_changed_in_place() {
    let mut edit = Tree::new().edit();
    let root = edit.tree().root().id();
    let [one, other] = [1, 2].map(|number| {
        let node = edit.append(root, Attributes::new().with("n", [number]));
        node.expect("the root is there")
    });
    let address = |tree: &Tree| {
        tree.node(one)
            .and_then(|node| node.get("n"))
            .map(<[u8]>::as_ptr)
    };
    let put = |mut edit: weald_tree::Edit| {
        edit.put_attribute(other, "n", "3").expect("it is there");
        edit.freeze()
    };
    let mut tree = edit.freeze();
    let before = address(&tree);
    tree = put(tree.into_edit());
    assert_eq!(address(&tree), before);
    let old = tree.clone();
    let new = put(tree.into_edit());
    assert_ne!(address(&new), address(&old));
    assert_eq!(address(&old), before);
}

#[test]
fn a_million_appends_one_by_one_keep_their_order() {
    let tree = Tree::new();
    let root = tree.root().id();
    let mut edit = tree.edit();
    let mut ids = Vec::new();
    for number in 0..500_000 {
        ids.push(edit.append(root, Attributes::new()).unwrap());
        if number % 2 == 0 {
            // Another family in between, so that the children of the root do not form a run.
            edit.append(ids[number / 2], Attributes::new()).unwrap();
        }
    }
    let tree = edit.freeze();
    assert!(
        tree.root()
            .children()
            .map(|node| node.id())
            .eq(ids.iter().copied())
    );
}
