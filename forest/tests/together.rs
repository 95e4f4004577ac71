//! Commits over several trees: all or nothing for writers, and all or nothing for readers at any moment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::atomic::{AtomicBool, Ordering};

use tools::{Random, Wait, commit, put, soak, value_of};
use weald_forest::{Commit, CommitError, Forest, TreeHandle};

fn trees<const N: usize>(forest: &Forest) -> [TreeHandle; N] {
    std::array::from_fn(|number| {
        let tree = forest.create(&number.to_string()).wait().unwrap();
        commit(&tree, "n", "0");
        tree
    })
}

fn number(root: &weald_forest::Root) -> u64 {
    root.tree().root().get_str("n").unwrap().parse().unwrap()
}

#[test]
fn a_conflict_in_one_tree_stops_all() {
    let forest = Forest::new();
    let [one, two] = trees(&forest);
    let both = Commit::of([put(&one, "n", "1"), put(&two, "n", "1")]).unwrap();
    commit(&two, "n", "rival");
    let versions = (one.versions().len(), two.versions().len());
    assert!(matches!(both.wait(), Err(CommitError::Conflict(_))));
    assert_eq!((one.versions().len(), two.versions().len()), versions);
    assert_eq!(value_of(&one, "n").unwrap(), "0");
}

#[test]
fn each_tree_is_rebased_on_its_own() {
    let forest = Forest::new();
    let [one, two, three] = trees(&forest);
    let edits = [put(&one, "k", "1"), put(&two, "k", "1")];
    commit(&two, "other", "v");
    let reader = three.edit();
    reader.attribute(reader.root(), "n").unwrap();
    let committed = Commit::of(edits.into_iter().chain([reader]))
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(one.view().version(), committed.version);
    assert_eq!(two.view().version(), committed.version);
    assert_eq!(value_of(&two, "other").unwrap(), "v");
    assert!(
        three.view().version() < committed.version,
        "it was only read"
    );
}

#[test]
fn what_was_read_in_one_tree_guards_what_is_written_in_another() {
    let forest = Forest::new();
    let [one, two] = trees(&forest);
    let crossed = |read: &TreeHandle, write: &TreeHandle| {
        let reader = read.edit();
        reader.attribute(reader.root(), "n").unwrap();
        Commit::of([reader, put(write, "n", "mine")]).unwrap()
    };
    let (first, second) = (crossed(&one, &two), crossed(&two, &one));
    first.wait().unwrap();
    assert!(second.wait().is_err(), "no write skew");
}

#[test]
fn mistakes_are_reported() {
    let forest = Forest::new();
    let [one] = trees(&forest);
    let [stranger] = trees(&Forest::new());
    let twice = Commit::of([put(&one, "a", "1"), put(&one, "b", "1")]).err();
    assert_eq!(twice, Some(CommitError::TreeTwice("0".into())));
    let other = Commit::of([put(&one, "a", "1"), put(&stranger, "b", "1")]).err();
    assert_eq!(other, Some(CommitError::OtherForest("0".into())));
    let other = forest.snapshot([&one, &stranger]).err();
    assert_eq!(other, Some(CommitError::OtherForest("0".into())));
}

/// Writers move one unit from tree to tree, so the sum stays the same; others commit to single trees.
fn transfers(random: &mut Random) {
    let forest = Forest::builder().keep(2 + random.below(30)).build();
    let trees: [TreeHandle; 4] = trees(&forest);
    let is_over = AtomicBool::new(false);
    let seeds: Vec<u64> = (0..2).map(|_| random.below(1 << 30) as u64).collect();
    std::thread::scope(|scope| {
        let trees = &trees;
        let transfer = |seed: &u64| {
            let mut random = Random(*seed);
            scope.spawn(move || transfer(trees, &mut random))
        };
        let writers: Vec<_> = seeds.iter().map(transfer).collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                commit(&trees[0], "noise", "x");
            }
        });
        scope.spawn(|| {
            let mut last = [0; 4].map(|_| 0);
            while !is_over.load(Ordering::SeqCst) {
                let roots = forest
                    .snapshot([&trees[0], &trees[1], &trees[2], &trees[3]])
                    .unwrap();
                assert_eq!(
                    roots
                        .iter()
                        .map(|root| number(root))
                        .fold(0, u64::wrapping_add),
                    0
                );
                let numbers = roots.each_ref().map(|root| root.version().number);
                assert!(
                    last.iter()
                        .zip(&numbers)
                        .all(|(last, number)| last <= number)
                );
                last = numbers;
            }
        });
        scope.spawn(|| {
            // One tree after the other: a reader that sees a joint commit in the first sees it in the second.
            while !is_over.load(Ordering::SeqCst) {
                let first = trees[2].view().version();
                let joint = trees[3].snapshot();
                if let Ok(then) = trees[3].kept_at(first) {
                    assert!(then.version() <= joint.version());
                }
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
}

fn transfer(trees: &[TreeHandle; 4], random: &mut Random) {
    for _ in 0..100 {
        let from = random.below(4);
        let to = (from + 1 + random.below(3)) % 4;
        loop {
            let mut edits = [trees[from].edit(), trees[to].edit()];
            for (edit, by) in edits.iter_mut().zip([1_u64.wrapping_neg(), 1]) {
                let root = edit.root();
                let text = edit.attribute(root, "n").unwrap().unwrap();
                let count: u64 = str::from_utf8(text).unwrap().parse().unwrap();
                edit.put_attribute(root, "n", count.wrapping_add(by).to_string())
                    .unwrap();
            }
            std::thread::yield_now(); // So that others come in between.
            if Commit::of(edits).unwrap().wait().is_ok() {
                break;
            }
        }
    }
}

#[test]
fn soak_transfers_between_trees_keep_the_sum() {
    soak(transfers);
}
