//! The journal has everything that a forest is: its records can be replayed, and what it refuses is not done.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tools::{ByHand, Wait, commit, put, value_of};
use weald_forest::{
    Attributes, Change, Commit, CommitError, CommitId, Forest, Journal, Record, Tree, Version,
    Where,
};

/// Replays its records, in the plainest way.
#[derive(Clone, Default)]
struct Replay(Arc<Mutex<Replayed>>);

#[derive(Default)]
struct Replayed {
    trees: BTreeMap<u64, (String, BTreeMap<u64, Tree>)>,
    records: Vec<(u64, CommitId, Vec<u8>, usize)>,
}

impl Journal for Replay {
    fn append(&mut self, record: &Record<'_>) -> Result<(), String> {
        let mut known = self.0.lock().unwrap();
        let number = record.version.number;
        known.records.push((
            number,
            record.id,
            record.bytes.to_vec(),
            record.changes.len(),
        ));
        for change in record.changes {
            match change {
                Change::Create {
                    tree,
                    name,
                    content,
                } => {
                    let versions = BTreeMap::from([(number, (*content).clone())]);
                    known.trees.insert(*tree, (name.to_string(), versions));
                }
                Change::Edit {
                    tree, operations, ..
                } => {
                    let versions = &mut known.trees.get_mut(tree).unwrap().1;
                    let mut edit = versions.last_entry().unwrap().get().edit();
                    operations
                        .iter()
                        .for_each(|operation| edit.apply(operation).unwrap());
                    versions.insert(number, edit.freeze());
                }
                Change::Restore { tree, version } => {
                    let versions = &mut known.trees.get_mut(tree).unwrap().1;
                    let old = versions[&version.number].clone();
                    versions.insert(number, old);
                }
                Change::Rename { tree, name } => {
                    known.trees.get_mut(tree).unwrap().0 = name.to_string()
                }
                Change::Delete { tree } => _ = known.trees.remove(tree),
                _ => {}
            }
        }
        Ok(())
    }
}

#[test]
fn the_records_of_a_journal_make_the_same_forest() {
    let replay = Replay::default();
    let forest = Forest::builder().journal(replay.clone()).build();
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
    one.restore(good).wait().unwrap();
    let mut edit = one.edit();
    edit.push_root(Attributes::new());
    Commit::of([edit, put(&two, "x", "y")])
        .unwrap()
        .id(CommitId(5))
        .wait()
        .unwrap();
    forest.rename("two", "deux").wait().unwrap();

    let known = replay.0.lock().unwrap();
    let names: Vec<_> = known
        .trees
        .values()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["one", "deux"]);
    for tree in [&one, &two] {
        let versions = &known.trees[&tree.number()].1;
        let kept = tree.versions();
        assert_eq!(versions.len(), kept.len());
        for (root, (number, again)) in kept.iter().zip(versions) {
            assert_eq!(root.version().number, *number);
            assert_eq!(root.tree().diff(again).count(), 0);
            assert_eq!(root.tree().root().to_json(), again.root().to_json());
        }
    }
    assert!(
        known
            .records
            .iter()
            .map(|record| record.0)
            .eq(1..=known.records.len() as u64)
    );
    assert!(
        known
            .records
            .iter()
            .any(|record| record.1 == CommitId(5) && record.3 == 2)
    );
    assert!(known.records.iter().any(|record| record.2 == b"late"));
}

struct Refuses(Arc<Mutex<Option<&'static str>>>);

impl Journal for Refuses {
    fn append(&mut self, _: &Record<'_>) -> Result<(), String> {
        let refused = *self.0.lock().unwrap();
        match refused {
            Some("panic") => panic!("of the journal"),
            Some(reason) => Err(reason.to_owned()),
            None => Ok(()),
        }
    }
}

#[test]
fn what_the_journal_refuses_is_not_done() {
    let refusal = Arc::new(Mutex::new(None));
    let forest = Forest::builder().journal(Refuses(refusal.clone())).build();
    let (one, two) = (
        forest.create("one").wait().unwrap(),
        forest.create("two").wait().unwrap(),
    );
    let before = commit(&one, "k", "1");
    for (reason, said) in [("disk full", "disk full"), ("panic", "it panicked")] {
        *refusal.lock().unwrap() = Some(reason);
        let refused = Err(CommitError::Journal(said.to_owned()));
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
    *refusal.lock().unwrap() = None;
    let next = put(&one, "k", "3").commit().id(CommitId(1)).wait().unwrap();
    let follows = Version {
        number: before.version.number + 1,
        ..before.version
    };
    assert_eq!(next.version, follows, "what was refused used up no number");
}

/// Lets a test do something while it appends: at that moment the combiner is taken.
struct Busy(Arc<Mutex<Meanwhile>>);

/// What a test does once, meanwhile.
type Meanwhile = Option<Box<dyn FnOnce() + Send>>;

impl Journal for Busy {
    fn append(&mut self, _: &Record<'_>) -> Result<(), String> {
        let work = self.0.lock().unwrap().take();
        if let Some(work) = work {
            work();
        }
        Ok(())
    }
}

#[test]
fn a_commit_that_comes_during_another_is_served_by_its_thread() {
    let meanwhile = Arc::new(Mutex::new(None));
    let forest = Forest::builder().journal(Busy(meanwhile.clone())).build();
    let tree = forest.create("t").wait().unwrap();
    let mut futures: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| Some(ByHand::new(put(&tree, name, name).commit())))
        .into();
    let queued = Arc::new(Mutex::new(Vec::new()));
    let (to_queue, left) = (futures.split_off(0), queued.clone());
    *meanwhile.lock().unwrap() = Some(Box::new(move || {
        for mut future in to_queue.into_iter().flatten() {
            assert!(future.is_pending());
            left.lock().unwrap().push(future);
        }
        // This one has not been taken up, so it is withdrawn.
        drop(left.lock().unwrap().remove(1));
    }));
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
