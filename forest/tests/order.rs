//! Commits of all kinds become visible in their order, even within one group.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hooks::{Hooks, changes, elsewhere};
use tools::{ByHand, Wait, put, soak, value_of};
use weald_forest::journal::Change;
use weald_forest::{Commit, Forest, Path, Since, TreeHandle, Version, VersionError, WatchError};

/// Commits an edit of `tree` and then `second` in one group, and calls `look` between `second` and the next commit
/// of the group.
fn in_one_group<T: Send + 'static>(
    (forest, hooks): &(Forest, Hooks),
    tree: &TreeHandle,
    second: ByHand<T>,
    look: impl Fn() -> bool + Send + 'static,
) {
    let other = forest.create("busy").wait().unwrap();
    other.add_index("there").wait().unwrap();
    let first = ByHand::new(put(tree, "k", "v").commit());
    let last = ByHand::new(other.drop_index("there"));
    let group = Arc::new(Mutex::new((first, second, last)));
    let (asked, is_seen) = (Arc::clone(&group), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&is_seen);
    hooks.look(move |record| {
        // No other commit here adds or drops an index.
        match changes(record)[..] {
            [Change::AddIndex { .. }] => elsewhere(|| {
                let (first, second, last) = &mut *asked.lock().unwrap();
                let _ = (first.is_pending(), second.is_pending(), last.is_pending());
            }),
            [Change::DropIndex { .. }] => seen.store(look(), Ordering::SeqCst),
            _ => {}
        }
        Ok(())
    });
    other.add_index("busy").wait().unwrap();
    group.lock().unwrap().2.ready().unwrap();
    assert!(is_seen.load(Ordering::SeqCst));
}

fn forest() -> (Forest, Hooks) {
    let hooks = Hooks::default();
    (Forest::builder().journal(hooks.clone()).build(), hooks)
}

#[test]
fn a_reader_that_sees_a_tree_created_sees_the_commit_before_it() {
    let both = forest();
    let tree = both.0.create("t").wait().unwrap();
    let (forest, seen) = (both.0.clone(), tree.clone());
    let creation = ByHand::new(both.0.create("later"));
    in_one_group(&both, &tree, creation, move || {
        let created = forest.get("later").unwrap();
        let is_known = created.kept_at(created.view().version()).is_ok();
        is_known && value_of(&seen, "k").as_deref() == Some("v")
    });
}

#[test]
fn a_reader_that_sees_a_tree_renamed_sees_the_commit_before_it() {
    let both = forest();
    let tree = both.0.create("t").wait().unwrap();
    let seen = tree.clone();
    let renaming = ByHand::new(both.0.rename("t", "u"));
    in_one_group(&both, &tree, renaming, move || {
        seen.name() == "u" && value_of(&seen, "k").as_deref() == Some("v")
    });
}

#[test]
fn a_reader_that_sees_a_tag_sees_the_commit_before_it() {
    let both = forest();
    let tree = both.0.create("t").wait().unwrap();
    let seen = tree.clone();
    let tagging = ByHand::new(tree.tag("good", tree.view().version()));
    in_one_group(&both, &tree, tagging, move || {
        seen.tagged("good").is_some() && value_of(&seen, "k").as_deref() == Some("v")
    });
}

#[test]
fn a_version_is_not_known_before_its_commit_is_visible() {
    let both = forest();
    let tree = both.0.create("t").wait().unwrap();
    let second = both.0.create("u").wait().unwrap();
    let newest = second.view().version();
    // Before `second`: a tree, two indexes and the edit of `tree`.
    let asked = Version {
        number: newest.number + 5,
        ..newest
    };
    let seen = second.clone();
    let edit = ByHand::new(put(&second, "k", "v").commit());
    in_one_group(&both, &tree, edit, move || {
        matches!(seen.kept_at(asked), Err(VersionError::Future { .. }))
    });
    assert_eq!(second.kept_at(asked).unwrap().version(), asked);
}

/// However it is read: a version that was read is never one that is yet to come. It may be one that was let go, if this
/// thread stood still for as long as a thousand commits take.
fn is_known(tree: &TreeHandle) -> bool {
    let read = tree.snapshot().version();
    let is_watched = match tree.watch(&Path::default(), Since::Version(read)) {
        Ok(_) | Err(WatchError::TooOld { .. }) => true,
        Err(_) => false,
    };
    is_watched
        && match tree.kept_at(read) {
            Ok(root) => root.version() == read,
            Err(VersionError::TooOld { .. }) => true,
            Err(_) => false,
        }
}

#[test]
fn a_version_that_was_read_is_known_within_a_group() {
    let both = forest();
    let tree = both.0.create("t").wait().unwrap();
    let second = both.0.create("u").wait().unwrap();
    let joint = Commit::of([put(&second, "k", "v"), put(&tree, "l", "v")]).unwrap();
    let seen = [tree.clone(), second.clone()];
    in_one_group(&both, &tree, ByHand::new(joint), move || {
        seen.iter().all(|tree| {
            let is_joint = value_of(&seen[1], "k").as_deref() == Some("v");
            is_joint && is_known(tree)
        })
    });
}

#[test]
fn soak_a_version_that_was_read_is_known_beside_commits_over_two_trees() {
    let forest = Forest::new();
    let trees = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            soak(|random| {
                let edits = trees.each_ref().map(|tree| put(tree, "n", "v"));
                match random.below(2) {
                    0 => _ = Commit::of(edits).unwrap().wait().unwrap(),
                    _ => edits
                        .into_iter()
                        .for_each(|edit| _ = edit.commit().wait().unwrap()),
                }
            });
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            assert!(trees.iter().all(is_known));
        }
    });
}
