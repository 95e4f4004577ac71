//! Undo and redo: the inverse of one commit, beside the work of others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{Random, Wait, commit, put, value_of, with_children};
use weald_forest::journal::Journal;
use weald_forest::{
    Attributes, Commit, CommitError, CommitId, Committed, Conflict, Edit, Forest, MemoryJournal,
    NodeId, TreeHandle, Value, VersionError, Where,
};

fn order(tree: &TreeHandle) -> Vec<NodeId> {
    let view = tree.view();
    view.tree()
        .root()
        .children()
        .map(|node| node.id())
        .collect()
}

#[test]
fn a_deleted_subtree_comes_back_where_it_was() {
    let forest = Forest::new();
    let (tree, children) = with_children(&forest, 5);
    let mut edit = tree.edit();
    let below = edit
        .append(children[2], Attributes::new().with("k", "v"))
        .unwrap();
    edit.put_erasable(below, "secret", "s").unwrap();
    edit.commit().wait().unwrap();
    let before = tree.snapshot();
    let mut edit = tree.edit();
    edit.delete(children[2]).unwrap();
    let deletion = edit.commit().wait().unwrap();
    // Others go on: before it, behind it, and they delete its neighbours.
    let mut edit = tree.edit();
    let new = edit
        .add(Where::After(children[0]), Attributes::new())
        .unwrap();
    edit.delete(children[1]).unwrap();
    edit.delete(children[3]).unwrap();
    edit.commit().wait().unwrap();
    let undone = tree.revert(deletion.version).unwrap();
    let undone = undone.commit().wait().unwrap();
    assert_eq!(order(&tree), [children[0], new, children[2], children[4]]);
    let view = tree.snapshot();
    let node = view.tree().node(below).unwrap();
    assert_eq!(node.get_str("k"), Some("v"));
    assert_eq!(
        forest.value(node, "secret").unwrap().bytes(),
        Some(&b"s"[..])
    );
    assert_eq!(node.parent().unwrap().id(), children[2]);
    // Redo is the undo of the undo.
    let redone = tree.revert(undone.version).unwrap();
    redone.commit().wait().unwrap();
    assert_eq!(order(&tree), [children[0], new, children[4]]);
    assert!(before.tree().node(below).is_some());
    tree.erase(below, "secret").wait().unwrap();
    let old = before.tree().node(below).unwrap();
    assert!(matches!(
        forest.value(old, "secret"),
        Some(Value::Erased { .. })
    ));
}

#[test]
fn what_others_have_changed_since_is_a_conflict() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    commit(&tree, "k", "1");
    let second = commit(&tree, "k", "2");
    commit(&tree, "other", "x");
    tree.revert(second.version)
        .unwrap()
        .commit()
        .wait()
        .unwrap();
    assert_eq!(value_of(&tree, "k").as_deref(), Some("1"));
    assert_eq!(value_of(&tree, "other").as_deref(), Some("x"));
    commit(&tree, "k", "3");
    let late = tree.revert(second.version).unwrap().commit().wait();
    let Err(CommitError::Conflict(conflict)) = late else {
        panic!("{late:?}")
    };
    assert!(matches!(*conflict, Conflict::Stale { .. }));
    let blind = tree.revert(second.version).unwrap().blind();
    blind.commit().wait().unwrap();
    assert_eq!(value_of(&tree, "k").as_deref(), Some("1"));
}

#[test]
fn what_cannot_be_reverted_is_said() {
    let forest = Forest::builder().keep(2).build();
    let tree = forest.create("t").wait().unwrap();
    let first = tree.view().version();
    assert!(matches!(
        tree.revert(first),
        Err(VersionError::NotCreated { .. })
    ));
    let commits = ["1", "2", "3"].map(|value| commit(&tree, "k", value));
    let oldest = tree.revert(commits[1].version);
    assert!(matches!(oldest, Err(VersionError::TooOld { .. })));
    assert!(tree.revert(commits[0].version).is_err());
    assert!(tree.revert(commits[2].version).is_ok());
}

/// Does something at random, even to the root.
fn step(edit: &mut Edit, random: &mut Random) {
    let nodes: Vec<NodeId> = edit
        .tree()
        .root()
        .preorder()
        .map(|node| node.id())
        .collect();
    let [one, other] = [0, 1].map(|_| nodes[random.below(nodes.len())]);
    match random.below(8) {
        0 | 1 => _ = edit.append(one, Attributes::new()),
        2 => _ = edit.move_to(one, Where::First(other)),
        3 => _ = edit.delete(one),
        4 => _ = edit.push_root(Attributes::new()),
        5 => _ = edit.pop_root(),
        6 if random.below(6) == 0 => _ = edit.replace_root(Attributes::new().with("n", "w")),
        _ => edit
            .put_attribute(one, "k", random.below(9).to_string())
            .unwrap(),
    }
}

#[test]
fn an_undone_commit_leaves_the_version_before_it() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let forest = Forest::new();
        let tree = forest.create("t").wait().unwrap();
        for _ in 0..20 {
            let before = tree.snapshot();
            let mut edit = tree.edit();
            (0..1 + random.below(6)).for_each(|_| step(&mut edit, &mut random));
            let made = edit.commit().wait().unwrap();
            let after = tree.snapshot();
            if after.version() == before.version() {
                continue; // It changed nothing.
            }
            let undone = tree.revert(made.version).unwrap().commit().wait().unwrap();
            assert!(tree.view().tree().records().eq(before.tree().records()));
            if tree.view().version() != after.version() {
                tree.revert(undone.version)
                    .unwrap()
                    .commit()
                    .wait()
                    .unwrap();
            }
            assert!(tree.view().tree().records().eq(after.tree().records()));
        }
    }
    // It relies on nothing that is not there any more.
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let edit = put(&tree, "k", "v").commit().wait().unwrap();
    tree.revert(edit.version).unwrap().commit().wait().unwrap();
    assert_eq!(value_of(&tree, "k"), None);
}

/// Only what the commit of the receipt did is taken back, and not what somebody else has done before.
#[test]
fn a_receipt_stands_for_its_own_commit() {
    let forest = Forest::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| forest.create(name).wait().unwrap());
    let of_others = tools::commit(&c, "k", "others");
    let both = [&a, &b].map(|tree| tools::put(tree, "k", "both"));
    let both = Commit::of(both).unwrap().wait().unwrap();
    for tree in [&a, &b] {
        let seen = tree.seen_by(&both).unwrap().unwrap();
        assert_eq!(seen.after.version(), both.version);
        assert_eq!(seen.before.tree().root().get("k"), None);
    }
    assert!(c.seen_by(&both).unwrap().is_none());
    assert!(c.revert_commit(&both).unwrap().is_none());
    assert_eq!(
        c.seen(both.version).unwrap().after.version(),
        of_others.version
    );

    // One that changed nothing has the version of another commit, and not its id.
    for idle in [c.edit().commit(), c.edit().commit().id(CommitId(7))] {
        let idle = idle.wait().unwrap();
        assert_eq!(idle.version, of_others.version);
        assert_ne!(idle.id, of_others.id);
        assert!(c.seen_by(&idle).unwrap().is_none());
        assert!(forest.revert(&idle).unwrap().is_empty());
    }

    tools::commit(&a, "later", "1");
    let young = forest.create("young").wait().unwrap();
    let undo = forest.revert(&both).unwrap();
    assert_eq!(undo.len(), 2);
    let undone = Commit::of(undo).unwrap().wait().unwrap();
    for tree in [&a, &b] {
        assert_eq!(tools::value_of(tree, "k"), None);
    }
    assert_eq!(tools::value_of(&a, "later").as_deref(), Some("1"));
    assert!(young.seen_by(&both).unwrap().is_none());
    let redo = forest.revert(&undone).unwrap();
    Commit::of(redo).unwrap().wait().unwrap();
    assert_eq!(tools::value_of(&b, "k").as_deref(), Some("both"));
}

/// A version of the commit names the trees that the commit changed, so no others are asked.
#[test]
fn a_busy_tree_keeps_none_of_the_others_from_reverting() {
    let forest = Forest::builder().keep(3).build();
    let [a, b, busy] = ["a", "b", "busy"].map(|name| forest.create(name).wait().unwrap());
    let both = Commit::of([&a, &b].map(|tree| put(tree, "k", "both")));
    let both = both.unwrap().wait().unwrap();
    for value in ["1", "2", "3", "4"] {
        commit(&busy, "k", value);
    }
    let is_too_old = |error| matches!(error, Some(VersionError::TooOld { .. }));
    assert!(is_too_old(busy.revert_commit(&both).err()));
    let undo = forest.revert(&both).unwrap();
    let undone = Commit::of(undo).unwrap().wait().unwrap();
    assert_eq!((value_of(&a, "k"), value_of(&b, "k")), (None, None));
    // Of a commit to one tree, too.
    let alone = commit(&a, "alone", "1");
    assert_eq!(numbers(&forest, &alone), [a.number()]);
    assert_eq!(forest.revert(&alone).unwrap().len(), 1);

    // It is all or nothing; what can still be taken back is known.
    for value in ["1", "2", "3"] {
        commit(&b, "later", value);
    }
    assert!(is_too_old(forest.revert(&undone).err()));
    assert_eq!(numbers(&forest, &undone), [a.number(), b.number()]);
    assert!(is_too_old(b.revert_commit(&undone).err()));
    assert!(a.revert_commit(&undone).unwrap().is_some());
    // One that is deleted is left out.
    forest.delete("b").wait().unwrap();
    assert_eq!(numbers(&forest, &undone), [a.number()]);
    assert_eq!(forest.revert(&undone).unwrap().len(), 1);
    // Nobody knows any more.
    for value in ["1", "2", "3"] {
        commit(&a, "later", value);
    }
    assert!(is_too_old(forest.changed_by(&undone).err()));

    for name in ["a", "busy"] {
        forest.delete(name).wait().unwrap();
    }
    let undo = forest.revert(&both).unwrap();
    assert!(undo.is_empty());
    assert_eq!(Commit::of(undo).err(), Some(CommitError::NoEdits));
}

fn numbers(forest: &Forest, receipt: &Committed) -> Vec<u64> {
    let trees = forest.changed_by(receipt).unwrap();
    trees.iter().map(TreeHandle::number).collect()
}

#[test]
fn an_opening_knows_the_trees_of_a_commit() {
    let journal = MemoryJournal::new();
    let builder = || Forest::builder().keep(3);
    let forest = builder().journal(journal.clone()).build();
    let [a, b, busy] = ["a", "b", "busy"].map(|name| forest.create(name).wait().unwrap());
    let both = Commit::of([&a, &b].map(|tree| put(tree, "k", "both")));
    let both = both.unwrap().wait().unwrap();
    for value in ["1", "2", "3", "4"] {
        commit(&busy, "k", value);
    }
    let open = || {
        let forest = builder().journal(journal.copy());
        forest.recover().wait().unwrap()
    };
    let again = open();
    assert_eq!(numbers(&again, &both), [a.number(), b.number()]);
    assert_eq!(again.revert(&both).unwrap().len(), 2);
    // A checkpoint has the versions of each tree for itself.
    let checkpoint = forest.checkpoint().wait().unwrap();
    journal.put_checkpoint(checkpoint).wait().unwrap();
    let again = open();
    assert!(matches!(
        again.revert(&both),
        Err(VersionError::TooOld { .. })
    ));
    again.delete("busy").wait().unwrap();
    assert_eq!(numbers(&again, &both), [a.number(), b.number()]);
    assert_eq!(again.revert(&both).unwrap().len(), 2);
}

#[test]
fn a_tree_that_is_renamed_meanwhile_is_reverted() {
    let forest = Forest::new();
    let [a, b] = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let both = Commit::of([&a, &b].map(|tree| put(tree, "k", "both")));
    let both = both.unwrap().wait().unwrap();
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| {
            for _ in 0..2_000 {
                forest.rename("b", "c").wait().unwrap();
                forest.rename("c", "b").wait().unwrap();
            }
        });
        while !renames.is_finished() {
            assert_eq!(forest.revert(&both).unwrap().len(), 2);
        }
    });
}
