//! Authors wait for room in the journal before their commits are taken up. A commit id stands for one request.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;

use hooks::Hooks;

use tools::{ByHand, Wait, put, value_of};
use weald_forest::{
    Attributes, Commit, CommitError, CommitId, Edit, EditError, Forest, Level, MemoryJournal,
    Terms, UpdateError, Where,
};

#[test]
fn authors_wait_for_room_before_their_commits_are_taken_up() {
    let journal = MemoryJournal::by_hand();
    let forest = Forest::builder()
        .journal(journal.clone())
        .level(Level::Accepted)
        .build();
    let mut creation = ByHand::new(forest.create("t"));
    assert!(creation.is_pending());
    journal.accept(1);
    let tree = creation.ready().unwrap();
    journal.set_crowd(Some(2));
    let mut commits: Vec<_> = (0..5)
        .map(|n| ByHand::new(put(&tree, &n.to_string(), "v").commit()))
        .collect();
    assert!(commits.iter_mut().all(ByHand::is_pending));
    assert_eq!(journal.waiting(), 2);
    // One that is dropped while it waits for room was never made.
    drop(commits.remove(4));
    journal.accept(1);
    commits.remove(0).ready().unwrap();
    assert!(commits.iter_mut().all(ByHand::is_pending));
    assert_eq!(journal.waiting(), 2);
    journal.set_crowd(None);
    assert!(commits.iter_mut().all(ByHand::is_pending));
    assert_eq!(journal.waiting(), 3);
    journal.accept(3);
    commits
        .iter_mut()
        .for_each(|commit| _ = commit.ready().unwrap());
    assert_eq!(value_of(&tree, "3").as_deref(), Some("v"));
    assert_eq!(value_of(&tree, "4"), None);
}

#[test]
fn whoever_waits_for_room_is_woken_when_there_is_some() {
    let journal = MemoryJournal::by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    journal.set_crowd(Some(0));
    let waiting = std::thread::spawn({
        let forest = forest.clone();
        move || forest.create("t").wait().map(|tree| tree.name())
    });
    let (accepting, is_over) = (journal.clone(), std::sync::Arc::new(()));
    let until = std::sync::Arc::downgrade(&is_over);
    let helper = std::thread::spawn(move || {
        accepting.set_crowd(Some(1));
        while until.strong_count() > 0 {
            accepting.accept(1);
            accepting.sync(Level::Durable);
            std::thread::yield_now();
        }
    });
    assert_eq!(waiting.join().unwrap().unwrap(), "t");
    drop(is_over);
    helper.join().unwrap();
}

#[test]
fn who_commits_many_bytes_waits_for_their_room_and_nobody_behind_it() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    journal.set_narrow(true);
    let long = "v".repeat(100_000);
    let mut large = ByHand::new(put(&tree, "large", &long).commit());
    let mut edit = weald_tree::Tree::new().edit();
    let root = edit.tree().root().id();
    edit.put_attribute(root, "large", &long).unwrap();
    let mut created = ByHand::new(forest.create_from("c", edit.freeze()));
    assert!(large.is_pending() && created.is_pending());
    // It does not ask again.
    assert!(large.is_pending());
    let wanted = journal.wanted();
    assert_eq!(wanted.len(), 2, "{wanted:?}");
    assert!(
        wanted
            .iter()
            .all(|bytes| (100_000..100_400).contains(bytes)),
        "{wanted:?}"
    );
    put(&tree, "small", "v").commit().wait().unwrap();
    // It was overtaken meanwhile, and is replayed.
    journal.set_narrow(false);
    large.ready().unwrap();
    created.ready().unwrap();
    assert_eq!(value_of(&tree, "large").as_deref(), Some(&*long));
    assert_eq!(value_of(&tree, "small").as_deref(), Some("v"));
    assert_eq!(journal.wanted().len(), 2);
}

/// An author that waited for room while it holds the leases of its overtaken commit would hold up all writers of its
/// trees.
#[test]
fn a_large_commit_that_was_overtaken_before_it_asked_for_room_waits_for_none() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let long = "v".repeat(100_000);
    let large = put(&tree, "large", &long);
    put(&tree, "small", "v").commit().wait().unwrap();
    journal.set_narrow(true);
    let mut large = ByHand::new(large.commit());
    large.ready().unwrap();
    put(&tree, "small", "w").commit().wait().unwrap();
    assert_eq!(value_of(&tree, "large").as_deref(), Some(&*long));
}

/// So the journal may write it beforehand.
#[test]
fn the_journal_is_told_what_a_large_record_changes_until_that_is_appended() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let trees = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let long = "v".repeat(100_000);
    let commit = || {
        let edits = [0, 1].map(|at| put(&trees[at], "k", &long));
        Commit::of(edits).unwrap()
    };
    let told = journal.clone();
    let (seen, appended) = std::sync::mpsc::channel();
    journal.look(move |record| {
        let known = told.told();
        let same = known
            .iter()
            .zip(record.changes)
            .filter(|(a, b)| Arc::ptr_eq(a, b));
        let is_told = same.count() == record.changes.len();
        seen.send((record.changes.len(), is_told, told.held()))
            .unwrap();
        Ok(())
    });
    commit().wait().unwrap();
    assert_eq!(appended.recv().unwrap(), (2, true, 1));
    assert_eq!(journal.held(), 0);

    // Once it is overtaken it changes another thing.
    journal.set_narrow(true);
    let mut large = ByHand::new(commit());
    assert!(large.is_pending());
    put(&trees[0], "other", "v").commit().wait().unwrap();
    appended.recv().unwrap();
    journal.set_narrow(false);
    large.ready().unwrap();
    assert_eq!(appended.recv().unwrap(), (2, false, 0));

    // What comes with erasable bytes is not told, nor is what was not encoded.
    let mut edit = put(&trees[0], "k", &long);
    let root = edit.root();
    edit.put_erasable(root, "secret", &*long).unwrap();
    edit.commit().wait().unwrap();
    assert!(journal.told().is_empty());
    assert_eq!(journal.held(), 0);
}

/// An edit of everything that an edit can do, with other ids each time.
fn varied(edit: &mut Edit, text: &str) {
    let root = edit.root();
    let node = edit
        .append(root, Attributes::new().with("t", text))
        .unwrap();
    let other = edit.add(Where::Before(node), Attributes::new()).unwrap();
    edit.put_attribute(other, "name", "value").unwrap();
    edit.put_erasable(node, "secret", text).unwrap();
    let mut builder = edit.tree().builder(Attributes::new());
    builder.leaf(Attributes::new().with("leaf", "1"));
    let subtree = builder.finish();
    edit.splice(Where::First(node), &subtree).unwrap();
    edit.move_to(subtree.root(), Where::After(other)).unwrap();
    edit.delete_attribute(node, "t").unwrap();
    edit.delete(other).unwrap();
    edit.push_root(Attributes::new().with("top", text));
}

#[test]
fn an_id_stands_for_one_request_which_may_be_tried_again() {
    let forest = Forest::new();
    let trees = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let commit = |texts: [&str; 2]| {
        let edits = [0, 1].map(|at| {
            let mut edit = trees[at].edit();
            edit.append(edit.root(), Attributes::new()).unwrap();
            let mut edit = trees[at].edit(); // The ids that were taken are lost.
            varied(&mut edit, texts[at]);
            edit
        });
        Commit::of(edits).unwrap().id(CommitId(7)).wait()
    };
    let first = commit(["x", "y"]).unwrap();
    // The root is another one now, and so an edit that names it asks for something else.
    assert_eq!(commit(["x", "y"]), Err(CommitError::IdTaken(first)));
    let edit = |text: &str| {
        let tree = &trees[0];
        let base = tree.versions()[0].clone();
        let mut edit = tree.edit_from(&base);
        varied(&mut edit, text);
        edit.commit().id(CommitId(8)).wait()
    };
    let first = edit("x").unwrap();
    assert_eq!(edit("x").unwrap(), first, "it was tried again");
    assert_eq!(edit("y"), Err(CommitError::IdTaken(first)));
    assert_eq!(trees[0].versions().len(), 3);
}

/// The digest stays after an erasure, so it tells nothing about the bytes.
#[test]
fn erasable_bytes_make_no_difference_for_an_id() {
    let tree = Forest::new().create("t").wait().unwrap();
    let commit = |name: &str, bytes: &str| {
        let base = tree.versions()[0].clone();
        let mut edit = tree.edit_from(&base);
        edit.put_erasable(edit.root(), name, bytes).unwrap();
        edit.commit().id(CommitId(7)).wait()
    };
    let first = commit("born", "1815-12-10").unwrap();
    assert_eq!(commit("born", "1852"), Ok(first));
    assert_eq!(commit("died", "1852"), Err(CommitError::IdTaken(first)));
}

#[test]
fn every_change_but_an_erasure_says_at_which_level_it_is_acknowledged() {
    let journal = MemoryJournal::synced_by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").level(Level::Accepted).wait().unwrap();
    let version = tree.view().version();
    let accepted = Level::Accepted;
    tree.add_index("k").level(accepted).wait().unwrap();
    tree.drop_index("k").level(accepted).wait().unwrap();
    tree.tag("tag", version).level(accepted).wait().unwrap();
    tree.untag("tag").level(accepted).wait().unwrap();
    tree.restore(version).level(accepted).wait().unwrap();
    forest.rename("t", "u").level(accepted).wait().unwrap();
    let terms = Terms::new().level(accepted).id(CommitId(3)).bytes(b"who");
    let update = tree.update_with(terms, |edit| edit.put_attribute(edit.root(), "k", "v"));
    let receipt = update.wait().unwrap().1;
    assert_eq!(
        (receipt.id, tree.view().bytes()),
        (CommitId(3), &b"who"[..])
    );
    // By default a change is durable, and so is not acknowledged yet.
    let mut deletion = ByHand::new(forest.delete("u"));
    assert!(deletion.is_pending());
    journal.sync(Level::Buffered);
    assert!(deletion.is_pending());
    journal.sync(Level::Durable);
    deletion.ready().unwrap();
    let mut creation = ByHand::new(forest.create("v").level(Level::Buffered));
    assert!(creation.is_pending());
    journal.sync(Level::Buffered);
    creation.ready().unwrap();
}

/// The commit was made and the answer lost, so the author tries again.
#[test]
fn an_update_that_is_repeated_has_the_receipt_and_the_value_of_the_first() {
    let forest = Forest::new();
    let [tree, other] = ["t", "other"].map(|name| forest.create(name).wait().unwrap());
    let count = |edit: &mut Edit| {
        let root = edit.root();
        let count = edit.attribute(root, "count")?.map_or(0, |bytes| bytes[0]) + 1;
        edit.put_attribute(root, "count", [count])?;
        Ok::<_, EditError>(count)
    };
    let once = |id| {
        tree.update_with(Terms::new().id(CommitId(id)), count)
            .wait()
    };
    let first = once(7).unwrap();
    let second = once(8).unwrap();
    assert_eq!((first.0, second.0), (1, 2));
    assert_eq!(once(7), Ok(first));
    assert_eq!(once(8), Ok(second));
    assert_eq!(tree.view().tree().root().get("count"), Some(&[2][..]));

    // One that would give up on what it has made itself, and one over two trees.
    let take = |edit: &mut Edit| match edit.attribute(edit.root(), "left").unwrap() {
        None => edit
            .put_attribute(edit.root(), "left", "none")
            .map_err(|error| error.to_string()),
        Some(_) => Err("nothing is left".to_owned()),
    };
    let taken = || tree.update_with(Terms::new().id(CommitId(9)), take).wait();
    assert_eq!(taken().unwrap(), taken().unwrap());
    let both = || {
        let terms = Terms::new().id(CommitId(10));
        let change =
            |edits: &mut [Edit]| Ok::<_, EditError>((count(&mut edits[0])?, count(&mut edits[1])?));
        forest
            .update_all(&[&tree, &other], terms, change)
            .wait()
            .unwrap()
    };
    let first = both();
    assert_eq!(first.0, (3, 1));
    assert_eq!(both(), first);
    // Another closure asks for something else.
    let terms = Terms::new().id(CommitId(7));
    let other = tree.update_with(terms, |edit| edit.put_attribute(edit.root(), "x", "y"));
    assert!(matches!(
        other.wait(),
        Err(UpdateError::Commit(CommitError::IdTaken(_)))
    ));
}

#[test]
fn a_commit_that_changes_nothing_is_known_by_its_id() {
    let tree = Forest::new().create("t").wait().unwrap();
    let idle = || tree.edit().commit().id(CommitId(7)).wait();
    let first = idle().unwrap();
    assert_eq!(first.version, tree.view().version());
    tools::commit(&tree, "k", "v");
    assert_eq!(idle(), Ok(first));
    let other = tools::put(&tree, "x", "y").commit().id(CommitId(7));
    assert_eq!(other.wait(), Err(CommitError::IdTaken(first)));
}
