//! Large commits: what grows with their size is done by their authors, while others commit to other trees.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hooks::Hooks;
use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use weald_forest::{
    Attributes, Bytes, Commit, CommitError, Committed, Conflict, Edit, Forest, NodeId, Operation,
    Query, Tree, TreeHandle, Where,
};

/// More steps than the combiner does for anybody.
const MANY: usize = 200;

struct Setup {
    forest: Forest,
    hooks: Hooks,
    clock: Arc<ManualClock>,
    tree: TreeHandle,
    other: TreeHandle,
}

fn setup() -> Setup {
    let (hooks, clock) = (Hooks::default(), Arc::new(ManualClock::default()));
    let builder = Forest::builder()
        .journal(hooks.clone())
        .clock(clock.clone());
    let forest = builder.build();
    let tree = forest.create("tree").wait().unwrap();
    let other = forest.create("other").wait().unwrap();
    tree.add_index("n").wait().unwrap();
    Setup {
        forest,
        hooks,
        clock,
        tree,
        other,
    }
}

/// An edit that appends many nodes, one by one.
fn many(tree: &TreeHandle, value: &str) -> Edit {
    let mut edit = tree.edit();
    let root = edit.root();
    for _ in 0..MANY {
        edit.append(root, Attributes::new().with("n", value))
            .unwrap();
    }
    edit
}

/// An edit that splices many nodes in.
fn splice(tree: &TreeHandle, value: &str) -> (Edit, NodeId) {
    let mut edit = tree.edit();
    let mut builder = edit.tree().builder(Attributes::new());
    for _ in 1..MANY {
        builder.leaf(Attributes::new().with("n", value));
    }
    let subtree = builder.finish();
    edit.splice(Where::Last(edit.root()), &subtree).unwrap();
    (edit, subtree.root())
}

type Committing = ByHand<Result<Committed, CommitError>>;

/// Polls these commits while the combiner is taken, so that one group serves them in this order.
fn queue<const N: usize>(setup: &Setup, commits: [Committing; N]) -> [Committing; N] {
    let queued = Arc::new(Mutex::new(None));
    let left = Arc::clone(&queued);
    setup.hooks.during_next(move || {
        let mut commits = commits;
        for commit in &mut commits {
            assert!(commit.is_pending(), "the combiner is taken");
        }
        *left.lock().unwrap() = Some(commits);
    });
    commit(&setup.other, "busy", "v");
    let mut queued = queued.lock().unwrap();
    queued.take().unwrap()
}

fn found(tree: &TreeHandle, value: &str) -> usize {
    let view = tree.view();
    let query = Query::equal("n", value);
    let found = view.find(&query).count();
    let walked = view
        .tree()
        .root()
        .find(|node| node.get_str("n") == Some(value));
    assert_eq!(found, walked.count(), "the index is that of the nodes");
    found
}

/// A large edit of an old base, which comes back to its author because it was overtaken.
fn overtaken(setup: &Setup, edit: Edit) -> Committing {
    commit(&setup.tree, "first", "v");
    let [large, mut small] = queue(
        setup,
        [
            ByHand::new(edit.commit()),
            ByHand::new(put(&setup.other, "k", "v").commit()),
        ],
    );
    small.ready().unwrap();
    // Its author was not polled yet, so it cannot be there, and other commits to the same tree wait.
    assert_eq!(found(&setup.tree, "large"), 0);
    let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
    assert!(same.is_pending(), "the tree's turn is the large edit's");
    commit(&setup.other, "k", "others do not wait");
    drop(same);
    large
}

#[test]
fn an_overtaken_large_edit_is_replayed_by_its_author_while_others_commit() {
    for is_splice in [false, true] {
        let setup = setup();
        let edit = match is_splice {
            true => splice(&setup.tree, "large").0,
            false => many(&setup.tree, "large"),
        };
        let mut large = overtaken(&setup, edit);
        let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
        assert!(same.is_pending());
        let done = large.ready().unwrap();
        assert_eq!(
            setup.tree.view().version(),
            done.version.max(same.ready().unwrap().version)
        );
        assert_eq!(found(&setup.tree, "large"), MANY - usize::from(is_splice));
        assert_eq!(value_of(&setup.tree, "first").unwrap(), "v");
        assert_eq!(value_of(&setup.tree, "same").unwrap(), "v");
        assert_eq!(setup.forest.stats().leases_revoked, 0);
    }
}

#[test]
fn an_overtaken_large_edit_alone_is_done_in_one_poll() {
    let setup = setup();
    let edit = many(&setup.tree, "large");
    commit(&setup.tree, "first", "v");
    ByHand::new(edit.commit()).ready().unwrap();
    assert_eq!(found(&setup.tree, "large"), MANY);
    assert_eq!(setup.forest.stats().rebases, 1);
    commit(&setup.tree, "free", "the turn has ended");
}

#[test]
fn a_large_edit_that_nobody_polls_stops_nobody() {
    let setup = setup();
    let edit = many(&setup.tree, "large");
    let mut large = overtaken(&setup, edit);
    let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
    assert!(same.is_pending());
    setup.clock.advance(Duration::from_millis(10));
    same.ready().unwrap();
    assert_eq!(found(&setup.tree, "large"), 0);
    // It was overtaken once more, and has the tree's turn again.
    large.ready().unwrap();
    assert_eq!(found(&setup.tree, "large"), MANY);
    commit(&setup.tree, "free", "the turn has ended");
}

#[test]
fn a_large_edit_that_is_dropped_gives_its_turn_back() {
    let setup = setup();
    let edit = many(&setup.tree, "large");
    let large = overtaken(&setup, edit);
    let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
    assert!(same.is_pending());
    drop(large);
    same.ready().unwrap();
    assert_eq!(found(&setup.tree, "large"), 0);
}

#[test]
fn an_overtaken_large_edit_that_conflicts_leaves_no_trace() {
    let setup = setup();
    let mut edit = many(&setup.tree, "large");
    let root = edit.root();
    edit.put_attribute(root, "first", "mine").unwrap();
    let mut large = overtaken(&setup, edit);
    let refused = large.ready().unwrap_err();
    assert!(
        matches!(&refused, CommitError::Conflict(conflict) if matches!(**conflict, Conflict::Stale { .. })),
        "{refused}"
    );
    assert_eq!(found(&setup.tree, "large"), 0);
    assert_eq!(setup.forest.stats().conflicts, 1);
    commit(&setup.tree, "free", "the turn has ended");
}

#[test]
fn an_overtaken_delete_of_many_is_checked_by_its_author() {
    let setup = setup();
    let (edit, top) = splice(&setup.tree, "large");
    edit.commit().wait().unwrap();
    let mut delete = setup.tree.edit();
    delete.delete(top).unwrap();
    commit(&setup.tree, "first", "v");
    let mut inside = setup.tree.edit();
    inside.put_attribute(top, "n", "changed").unwrap();
    let [mut inside, mut delete] = queue(
        &setup,
        [ByHand::new(inside.commit()), ByHand::new(delete.commit())],
    );
    inside.ready().unwrap();
    let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
    assert!(same.is_pending(), "the delete has the turn");
    assert!(matches!(delete.ready(), Err(CommitError::Conflict(_))));
    same.ready().unwrap();
    // A subtree that was not changed inside can be deleted, although much else was changed.
    let mut delete = setup.tree.edit();
    delete.delete(top).unwrap();
    commit(&setup.tree, "second", "v");
    let [mut delete] = queue(&setup, [ByHand::new(delete.commit())]);
    delete.ready().unwrap();
    assert_eq!(found(&setup.tree, "large"), 0);
}

/// A small edit whose check takes a comparison of two versions that differ much.
#[test]
fn a_small_edit_that_was_overtaken_by_much_is_checked_by_its_author() {
    let setup = setup();
    let mut edit = setup.tree.edit();
    edit.subtree(edit.root()).unwrap();
    edit.put_attribute(edit.root(), "k", "v").unwrap();
    many(&setup.tree, "large").commit().wait().unwrap();
    let [mut small] = queue(&setup, [ByHand::new(edit.commit())]);
    let mut same = ByHand::new(put(&setup.tree, "same", "v").commit());
    assert!(same.is_pending(), "the small edit has the turn");
    assert!(matches!(small.ready(), Err(CommitError::Conflict(_))));
    same.ready().unwrap();
}

#[test]
fn a_large_commit_over_several_trees_has_the_turn_of_all() {
    let setup = setup();
    let third = setup.forest.create("third").wait().unwrap();
    let edits = [many(&setup.tree, "large"), put(&third, "k", "large")];
    commit(&setup.tree, "first", "v");
    let [mut large] = queue(&setup, [ByHand::new(Commit::of(edits).unwrap())]);
    let mut waiting =
        [&setup.tree, &third].map(|tree| ByHand::new(put(tree, "same", "v").commit()));
    assert!(waiting.iter_mut().all(|commit| commit.is_pending()));
    commit(&setup.other, "k", "others do not wait");
    let done = large.ready().unwrap();
    for commit in &mut waiting {
        assert!(commit.ready().unwrap().version > done.version);
    }
    assert_eq!(found(&setup.tree, "large"), MANY);
    assert_eq!(value_of(&third, "k").unwrap(), "large");
}

#[test]
fn an_index_that_was_built_beside_a_large_commit_is_brought_forward_by_its_author() {
    let setup = setup();
    let large = ByHand::new(many(&setup.tree, "large").commit());
    let index = ByHand::new(setup.tree.add_index("m"));
    let [mut large, mut index] = queue(&setup, [large, index]);
    large.ready().unwrap();
    let mut same = ByHand::new(put(&setup.tree, "m", "v").commit());
    assert!(same.is_pending(), "the index has the turn");
    index.ready().unwrap();
    same.ready().unwrap();
    let view = setup.tree.view();
    assert_eq!(view.find(&Query::equal("m", "v")).count(), 1);
    assert_eq!(view.indexes().collect::<Vec<_>>(), ["n", "m"]);
}

#[test]
fn a_restored_version_has_the_indexes_of_its_nodes() {
    let setup = setup();
    let tree = &setup.tree;
    let (edit, top) = splice(tree, "old");
    let old = edit.commit().wait().unwrap().version;
    let mut edit = tree.edit();
    edit.delete(top).unwrap();
    edit.commit().wait().unwrap();
    // The old version has no index of `m`.
    tree.add_index("m").wait().unwrap();
    commit(tree, "n", "new");
    let [mut restored, mut dropped, mut again] = queue(
        &setup,
        [
            ByHand::new(tree.restore(old)),
            ByHand::new(tree.drop_index("m")),
            // Its author has found indexes that are no longer asked for.
            ByHand::new(tree.restore(old)),
        ],
    );
    restored.ready().unwrap();
    dropped.ready().unwrap();
    again.ready().unwrap();
    assert_eq!(tree.view().indexes().collect::<Vec<_>>(), ["n"]);
    assert_eq!((found(tree, "old"), found(tree, "new")), (MANY - 1, 0));
}

/// Commits to another tree when it is dropped, and counts if that can be done at once.
struct Commits(TreeHandle, Arc<AtomicUsize>);

impl Drop for Commits {
    fn drop(&mut self) {
        let mut commit = ByHand::new(put(&self.0, "dropped", "v").commit());
        let is_free = !commit.is_pending();
        self.1.fetch_add(usize::from(is_free), Ordering::SeqCst);
    }
}

fn watched(other: &TreeHandle) -> (Bytes, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let companion = Commits(other.clone(), Arc::clone(&count));
    let bytes = Bytes::with_companion(b"value", AssertUnwindSafe(companion));
    (bytes, count)
}

#[test]
fn a_deleted_tree_is_freed_outside_the_right_to_commit() {
    let setup = setup();
    let (bytes, freed) = watched(&setup.other);
    let mut edit = Tree::new().edit();
    edit.put_bytes(edit.tree().root().id(), "v", bytes).unwrap();
    let large = setup.forest.create_from("large", edit.freeze());
    drop(large.wait().unwrap());
    setup.forest.delete("large").wait().unwrap();
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    // Refused, it is freed as well.
    let (bytes, freed) = watched(&setup.other);
    let mut edit = Tree::new().edit();
    edit.put_bytes(edit.tree().root().id(), "v", bytes).unwrap();
    assert!(
        setup
            .forest
            .create_from("tree", edit.freeze())
            .wait()
            .is_err()
    );
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn the_operations_of_a_large_edit_are_freed_outside_the_right_to_commit() {
    let setup = setup();
    let (value, freed) = watched(&setup.other);
    let mut edit = many(&setup.tree, "large");
    let (node, name) = (edit.root(), Bytes::from("v"));
    let put = Operation::PutAttribute { node, name, value };
    edit.apply(&put).unwrap();
    drop(put);
    edit.delete_attribute(node, "v").unwrap();
    edit.commit().wait().unwrap();
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

/// A version that retention lets go is freed by an author of its tree, even if another one made the commits.
#[test]
fn a_large_version_that_is_let_go_is_freed_by_an_author_of_its_tree() {
    let hooks = Hooks::default();
    let forest = Forest::builder().keep(2).journal(hooks.clone()).build();
    let (tree, other) = (
        forest.create("tree").wait().unwrap(),
        forest.create("other").wait().unwrap(),
    );
    let (value, freed) = watched(&other);
    let mut edit = tree.edit();
    let mut builder = edit.tree().builder(Attributes::new());
    (0..5000).for_each(|_| _ = builder.leaf(Attributes::new()));
    let subtree = builder.finish();
    edit.splice(Where::Last(edit.root()), &subtree).unwrap();
    let (node, name) = (subtree.root(), Bytes::from("v"));
    edit.apply(&Operation::PutAttribute { node, name, value })
        .unwrap();
    edit.commit().wait().unwrap();
    let mut delete = tree.edit();
    delete.delete(node).unwrap();
    delete.commit().wait().unwrap();
    // Of two versions, the next one lets go the one before the delete.
    let queued = Arc::new(Mutex::new(None));
    let (left, small) = (
        Arc::clone(&queued),
        ByHand::new(put(&tree, "k", "v").commit()),
    );
    hooks.during_next(move || {
        let mut small = small;
        assert!(small.is_pending());
        *left.lock().unwrap() = Some(small);
    });
    commit(&other, "k", "v");
    assert_eq!(
        freed.load(Ordering::SeqCst),
        0,
        "it was left to the author of the other commit"
    );
    queued.lock().unwrap().take().unwrap().ready().unwrap();
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}
