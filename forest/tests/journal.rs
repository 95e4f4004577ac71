//! The journal has everything that a forest is: its records can be replayed, and what it refuses is not done.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/replay.rs"]
mod replay;
#[path = "support/tools.rs"]
mod tools;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hooks::{Hooks, numbered};
use replay::Replayed;
use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use weald_forest::journal::{Change, Journal, Position, RecordError, Stored};
use weald_forest::{
    AppendError, Attributes, Commit, CommitError, CommitId, EditError, Forest, MemoryJournal,
    Query, Tree, UpdateError, Where,
};

#[test]
fn the_records_of_a_journal_make_the_same_forest() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let one = forest.create("one").wait().unwrap();
    let two = forest
        .create_from("two", Tree::from_json(r#"{"children":[{}]}"#).unwrap())
        .wait()
        .unwrap();
    forest.create("gone").wait().unwrap();
    forest.delete("gone").wait().unwrap();
    let good = commit(&one, "k", "1").version;
    // Two edits of one base; the second is rebased, and its keys are created again.
    let (mut first, mut second) = (one.edit(), one.edit());
    for edit in [&mut first, &mut second] {
        let node = edit
            .append(edit.root(), Attributes::new().with("a", "b"))
            .unwrap();
        edit.add(Where::Before(node), Attributes::new()).unwrap();
    }
    second.commit().wait().unwrap();
    first.commit().bytes(b"late").wait().unwrap();
    // A large one, with a subtree, that is replayed by its author.
    let (mut large, early) = (one.edit(), put(&one, "early", "v"));
    let mut builder = large
        .tree()
        .builder(Attributes::new().with("long", [7; 100]));
    (0..200_u64).for_each(|n| _ = builder.leaf(Attributes::new().with("n", n.to_le_bytes())));
    let subtree = builder.finish();
    large.splice(Where::First(large.root()), &subtree).unwrap();
    large
        .move_to(subtree.root(), Where::Last(large.root()))
        .unwrap();
    early.commit().wait().unwrap();
    large.commit().wait().unwrap();
    one.add_index("n").wait().unwrap();
    one.restore(good).wait().unwrap();
    let mut edit = one.edit();
    edit.push_root(Attributes::new());
    edit.put_erasable(edit.root(), "name", "Ada").unwrap();
    Commit::of([edit, put(&two, "x", "y")])
        .unwrap()
        .id(CommitId(5))
        .wait()
        .unwrap();
    let mut edit = two.edit();
    edit.replace_root(Attributes::new().with("new", "root"));
    edit.commit().wait().unwrap();
    forest.rename("two", "deux").wait().unwrap();

    let entries = journal.read(Position::default(), 1000).wait().unwrap();
    let known = Replayed::of(&entries);
    let names: Vec<_> = known
        .trees
        .values()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["one", "deux"]);
    known.check(&one);
    known.check(&two);
    let numbers = known.records.iter().map(|record| record.version.number);
    assert!(numbers.eq(1..=known.records.len() as u64));
    let both = known.records.iter().find(|record| record.id == CommitId(5));
    let ids = |_| Some(one.snapshot().tree().ids().clone());
    let changes = both.unwrap().changes(&mut { ids }).unwrap();
    assert!(
        matches!(&changes[..], [Change::Edit { blobs, .. }, Change::Edit { .. }] if blobs[0].name == "name".into())
    );
    assert!(known.records.iter().any(|record| record.bytes == b"late"));
    let newest = one.view();
    let time = known.records[known.records.len() - 3].time;
    assert_eq!(newest.time(), time);
}

#[test]
fn a_damaged_record_is_an_error_and_no_panic() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let content = r#"{"attributes":{"a":"b"},"children":[{},{"children":[{}]}]}"#;
    let tree = forest.create_from("one", Tree::from_json(content).unwrap());
    let tree = tree.wait().unwrap();
    let mut edit = tree.edit();
    let mut builder = edit.tree().builder(Attributes::new().with("c", "d"));
    builder.leaf(Attributes::new());
    let subtree = builder.finish();
    edit.splice(Where::First(edit.root()), &subtree).unwrap();
    edit.put_erasable(subtree.root(), "e", "f").unwrap();
    edit.commit().bytes(b"bytes").wait().unwrap();
    let ids = || tree.snapshot().tree().ids().clone();
    for entry in journal.read(Position::default(), 10).wait().unwrap() {
        let read = |bytes: &[u8]| -> Result<usize, RecordError> {
            let stored = Stored::read(bytes)?;
            Ok(stored.changes(&mut |_| Some(ids()))?.len())
        };
        assert_eq!(read(&entry.record), Ok(1));
        for at in 0..entry.record.len() {
            // A record that is cut off may only lack whole changes.
            assert!(matches!(read(&entry.record[..at]), Err(_) | Ok(0)), "{at}");
            for bit in 0..8 {
                let mut damaged = entry.record.clone();
                damaged[at] ^= 1 << bit;
                let _ = read(&damaged);
            }
        }
    }
}

#[test]
fn what_the_journal_refuses_is_not_done() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let (one, two) = (
        forest.create("one").wait().unwrap(),
        forest.create("two").wait().unwrap(),
    );
    let before = commit(&one, "k", "1");
    // A journal that panics does not know; asked by the id, it tells that it has nothing.
    for error in [AppendError::Full, AppendError::Lost] {
        journal.look(move |_| match error {
            AppendError::Lost => panic!("of the journal"),
            _ => Err(error),
        });
        let refused = Err(CommitError::Journal(error));
        assert_eq!(put(&one, "k", "2").commit().id(CommitId(1)).wait(), refused);
        let both = Commit::of([put(&one, "k", "2"), put(&two, "k", "2")]).unwrap();
        assert_eq!(both.wait(), refused);
        assert!(forest.create("three").wait().is_err());
        assert_eq!(
            (value_of(&one, "k").unwrap(), value_of(&two, "k")),
            ("1".into(), None)
        );
        assert_eq!(forest.list(), ["one", "two"]);
    }
    journal.look(|_| Ok(()));
    let next = put(&one, "k", "3").commit().id(CommitId(1)).wait().unwrap();
    let follows = numbered(before.version, before.version.number + 1);
    assert_eq!(next.version, follows, "what was refused used up no number");
}

#[test]
fn a_commit_that_comes_during_another_is_served_by_its_thread() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let to_queue = ["a", "b", "c", "d"].map(|name| ByHand::new(put(&tree, name, name).commit()));
    let queued = Arc::new(Mutex::new(Vec::new()));
    let left = queued.clone();
    journal.during_next(move || {
        for mut future in to_queue {
            assert!(future.is_pending());
            left.lock().unwrap().push(future);
        }
        // This one has not been taken up, so it is withdrawn.
        drop(left.lock().unwrap().remove(1));
    });
    let first = commit(&tree, "first", "v").version.number;
    let served: Vec<_> = queued
        .lock()
        .unwrap()
        .iter_mut()
        .map(|future| future.ready().unwrap())
        .collect();
    let numbers: Vec<_> = served.iter().map(|commit| commit.version.number).collect();
    assert_eq!(numbers, [first + 1, first + 2, first + 3]);
    assert_eq!(value_of(&tree, "b"), None);
    assert_eq!(value_of(&tree, "d").unwrap(), "d");
    assert_eq!(forest.stats().groups[2], 1, "one group of four");
}

/// A journal that commits to its own forest would wait for itself.
#[test]
fn a_journal_that_commits_is_refused() {
    let journal = Hooks::default();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let other = Forest::new().create("other").wait().unwrap();
    let tried = Arc::new(Mutex::new(Vec::new()));
    let (inner, notes, elsewhere) = (tree.clone(), tried.clone(), other.clone());
    let forest_inside = forest.clone();
    journal.look(move |_| {
        let mut notes = notes.lock().unwrap();
        notes.push(put(&inner, "k", "inside").commit().wait().err());
        notes.push(forest_inside.create("inside").wait().err());
        notes.push(inner.add_index("inside").wait().err());
        let updated = inner.update(|edit| edit.put_attribute(edit.root(), "k", "inside"));
        let refused = match updated.wait() {
            Err(UpdateError::<EditError>::Commit(error)) => Some(error),
            _ => None,
        };
        notes.push(refused);
        // Reading is free, and so is another forest.
        assert_eq!(value_of(&inner, "k"), None);
        commit(&elsewhere, "k", "v");
        Ok(())
    });
    put(&tree, "k", "v").commit().wait().unwrap();
    let tried = std::mem::take(&mut *tried.lock().unwrap());
    assert_eq!(tried, vec![Some(CommitError::InJournal); 4]);
    assert_eq!(value_of(&tree, "k").unwrap(), "v");
    assert_eq!(value_of(&other, "k").unwrap(), "v");
    assert_eq!(tree.view().find(&Query::equal("k", "v")).count(), 1);
}

/// What a forest writes of these edits. The ids that it drew itself are left out.
fn written() -> Vec<Vec<u8>> {
    let journal = MemoryJournal::new();
    let clock = Arc::new(ManualClock::default());
    let builder = Forest::builder().clock(clock.clone());
    let forest = builder.journal(journal.clone()).build();
    let tree = forest.create("tree").wait().unwrap();
    tree.add_index("number").wait().unwrap();
    for number in 0..100_u64 {
        clock.advance(Duration::from_millis(number));
        // The second is merged with the first, and its order keys are chosen again.
        let (mut one, mut two) = (tree.edit(), tree.edit());
        for edit in [&mut one, &mut two] {
            let attributes = Attributes::new().with("number", number.to_le_bytes());
            let node = edit.append(edit.root(), attributes).unwrap();
            edit.add(Where::Before(node), Attributes::new()).unwrap();
            edit.put_attribute(edit.root(), &number.to_string(), "x".repeat(50))
                .ok();
        }
        let id = |nth: u64| CommitId(u128::from(10 + 2 * number + nth));
        two.commit().id(id(0)).bytes(b"two").wait().unwrap();
        one.commit().id(id(1)).wait().ok();
    }
    let entries = journal.read(Position::default(), 1000).wait().unwrap();
    let records = entries.into_iter().map(|entry| entry.record);
    let without_id = |mut record: Vec<u8>| {
        if Stored::read(&record).unwrap().digest.is_none() {
            record[16..32].fill(0);
        }
        record
    };
    records.map(without_id).collect()
}

/// A journal on several machines can compare what each of them would have written.
#[test]
fn two_forests_that_do_the_same_write_the_same_bytes() {
    let (one, other) = (written(), written());
    assert!(one.len() > 100);
    for (at, (one, other)) in one.iter().zip(&other).enumerate() {
        assert_eq!(one, other, "record {at}");
    }
    assert_eq!(one.len(), other.len());
}
