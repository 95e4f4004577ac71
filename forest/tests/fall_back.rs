//! A forest whose journal fails shows what is durable, all of it at one instant, and takes no more commits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tools::{ByHand, Wait, put, value_of};
use weald_forest::journal::CheckpointError;
use weald_forest::{
    AppendError, Builder, Commit, CommitError, CommitId, Forest, Level, MemoryJournal, NameError,
    Path, Since, TreeHandle, VersionError, WatchEnd,
};

fn setup(keep: usize) -> (Forest, MemoryJournal) {
    let journal = MemoryJournal::synced_by_hand();
    let builder: Builder = Forest::builder().keep(keep).journal(journal.clone());
    (builder.level(Level::Accepted).build(), journal)
}

fn set(tree: &TreeHandle, value: &str) -> weald_forest::Committed {
    put(tree, "x", value).commit().wait().unwrap()
}

#[test]
fn readers_see_the_last_durable_version() {
    for keep in [1, 3, 1000] {
        let (forest, journal) = setup(keep);
        let a = forest.create("a").wait().unwrap();
        let b = forest.create("b").wait().unwrap();
        let durable = set(&a, "durable");
        journal.sync(Level::Durable);
        let mut last = durable;
        for step in 0..600 {
            last = set(&a, &format!("lost {step}"));
        }
        let held = a.snapshot();
        assert!(forest.has_reached(durable.version, Level::Durable));
        assert!(!forest.has_reached(last.version, Level::Durable));
        let mut waits = ByHand::new(put(&b, "x", "1").commit().level(Level::Durable));
        assert!(waits.is_pending());

        journal.fail();
        assert_eq!(value_of(&a, "x").as_deref(), Some("durable"));
        assert_eq!(value_of(&b, "x"), None);
        assert_eq!(a.snapshot().version(), durable.version);
        assert_eq!(a.versions().last().unwrap().version(), durable.version);
        assert!(matches!(waits.ready(), Err(CommitError::Unknown(_))));
        // What somebody has stays as it is, and says that it is not durable.
        assert_eq!(held.tree().root().get_str("x"), Some("lost 599"));
        assert!(!forest.has_reached(held.version(), Level::Accepted));
        assert_eq!(
            a.kept_at(last.version).unwrap_err(),
            VersionError::Lost {
                asked: last.version,
                durable: durable.version
            }
        );
        a.kept_at(durable.version).unwrap();
        let poisoned = CommitError::Journal(AppendError::Poisoned);
        assert_eq!(put(&a, "x", "2").commit().wait(), Err(poisoned));
        assert!(matches!(
            forest.checkpoint().wait(),
            Err(CheckpointError::Failed(_))
        ));
    }
}

#[test]
fn names_and_tags_fall_back_too() {
    let (forest, journal) = setup(2);
    let renamed = forest.create("old").wait().unwrap();
    let deleted = forest.create("deleted").wait().unwrap();
    let tagged = forest.create("tagged").wait().unwrap();
    let version = set(&tagged, "1").version;
    tagged.tag("kept", version).wait().unwrap();
    tagged.tag("moved", version).wait().unwrap();
    journal.sync(Level::Durable);

    forest.rename("old", "new").wait().unwrap();
    forest.rename("new", "newer").wait().unwrap();
    forest.delete("deleted").wait().unwrap();
    let created = forest.create("deleted").wait().unwrap();
    forest.rename("deleted", "old").wait().unwrap();
    let later = set(&tagged, "2").version;
    tagged.tag("moved", later).wait().unwrap();
    tagged.tag("new", later).wait().unwrap();
    tagged.untag("kept").wait().unwrap();
    assert_eq!(forest.list(), ["newer", "old", "tagged"]);

    journal.fail();
    assert_eq!(forest.list(), ["deleted", "old", "tagged"]);
    assert_eq!(renamed.name(), "old");
    assert_eq!(forest.get("old").unwrap().number(), renamed.number());
    assert!(!deleted.is_deleted());
    assert_eq!(forest.get("deleted").unwrap().number(), deleted.number());
    assert!(created.is_deleted());
    assert!(matches!(forest.get("newer"), Err(NameError::Missing(_))));
    let tags = [("kept".to_owned(), version), ("moved".to_owned(), version)];
    assert_eq!(tagged.tags(), tags);
    assert_eq!(value_of(&tagged, "x").as_deref(), Some("1"));
}

#[test]
fn a_change_of_names_that_is_durable_stays() {
    let (forest, journal) = setup(2);
    forest.create("a").wait().unwrap();
    forest.rename("a", "b").wait().unwrap();
    journal.sync(Level::Durable);
    forest.create("c").wait().unwrap();
    journal.fail();
    assert_eq!(forest.list(), ["b"]);
}

#[test]
fn watches_end_and_ids_are_unknown() {
    let (forest, journal) = setup(100);
    let a = forest.create("a").wait().unwrap();
    journal.sync(Level::Durable);
    let mut watch = a.watch(&Path::default(), Since::Now).unwrap();
    let mut idle = a.watch(&Path::default(), Since::Now).unwrap();
    let id = CommitId(7);
    let edit = || put(&a, "x", "1").blind();
    edit().commit().id(id).wait().unwrap();
    watch.next().wait().unwrap();
    idle.next().wait().unwrap();
    let mut next = ByHand::new(async move { idle.next().await });
    assert!(next.is_pending());
    journal.fail();
    assert_eq!(next.ready().unwrap_err(), WatchEnd::Unknown);
    assert_eq!(watch.next().wait().unwrap_err(), WatchEnd::Unknown);
    assert_eq!(edit().commit().id(id).wait(), Err(CommitError::Unknown(id)));
}

#[test]
fn a_journal_that_fails_before_it_is_asked_fails_the_forest() {
    let journal = MemoryJournal::synced_by_hand();
    journal.fail();
    let forest = Forest::builder().journal(journal).build();
    assert!(matches!(
        forest.create("a").wait(),
        Err(CommitError::Journal(AppendError::Poisoned))
    ));
}

#[test]
fn what_the_journal_has_not_answered_is_answered() {
    let journal = MemoryJournal::by_hand();
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Accepted).build();
    let mut creation = ByHand::new(forest.create("a"));
    assert!(creation.is_pending());
    journal.accept(1);
    let a = creation.ready().unwrap();
    let mut first = ByHand::new(put(&a, "x", "1").commit());
    assert!(first.is_pending());
    journal.fail();
    let poisoned = CommitError::Journal(AppendError::Poisoned);
    assert_eq!(first.ready(), Err(poisoned));
    assert!(forest.list().is_empty());
}

/// All trees have the same value in each commit, so a reader that sees two values has seen two
/// moments.
#[test]
fn all_trees_fall_back_at_one_instant() {
    for _ in 0..20 {
        let (forest, journal) = setup(2);
        let trees: Vec<_> = (0..8)
            .map(|at| forest.create(&format!("{at}")).wait().unwrap())
            .collect();
        let step = |value: &str| {
            let edits = trees.iter().map(|tree| put(tree, "x", value));
            Commit::of(edits).unwrap().wait().map(drop)
        };
        step("durable").unwrap();
        journal.sync(Level::Durable);
        let is_over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (forest, trees, is_over) =
                    (forest.clone(), trees.clone(), Arc::clone(&is_over));
                std::thread::spawn(move || {
                    let handles: Vec<_> = trees.iter().collect();
                    loop {
                        let was_over = is_over.load(Ordering::SeqCst);
                        let all = forest.snapshot_all(&handles).unwrap();
                        let value = |at: usize| all[at].tree().root().get("x").unwrap().to_vec();
                        assert!((0..8).all(|at| value(at) == value(0)));
                        if was_over {
                            return value(0);
                        }
                    }
                })
            })
            .collect();
        for value in 0..50 {
            step(&value.to_string()).unwrap();
        }
        journal.fail();
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), b"durable");
        }
    }
}

#[test]
fn commits_after_another_writer_has_taken_over_are_told_so() {
    let (forest, journal) = setup(10);
    let a = forest.create("a").wait().unwrap();
    journal.sync(Level::Durable);
    set(&a, "lost");
    journal.fence();
    journal.fail();
    assert_eq!(value_of(&a, "x"), None, "it has fallen back");
    let refused = put(&a, "x", "1").commit().wait().unwrap_err();
    assert_eq!(refused, CommitError::Journal(AppendError::Fenced));
}
