//! A forest that is read back from its journal is the one that was there, and continues from it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tools::{ManualClock, Random, Wait, commit, put, value_of};
use weald_forest::journal::{Checkpoint, Journal, Position};
use weald_forest::{
    Attributes, Commit, CommitError, CommitId, Edit, Forest, MemoryJournal, NodeId, Path, Query,
    RecoverError, Since, Snapshot, TreeHandle, Value, Version, VersionError, Where,
};

fn recovered(journal: &MemoryJournal, keep: usize) -> Forest {
    let builder = Forest::builder().keep(keep).journal(journal.copy());
    builder.recover().wait().unwrap()
}

fn put_checkpoint(forest: &Forest, journal: &MemoryJournal) -> Position {
    let checkpoint = forest.checkpoint().wait().unwrap();
    let at = checkpoint.at;
    journal.put_checkpoint(checkpoint).wait().unwrap();
    at
}

/// Both are equal in everything that a user can see.
fn check_same(one: &Forest, other: &Forest) {
    assert_eq!(one.list(), other.list());
    for name in one.list() {
        let (a, b) = (one.get(&name).unwrap(), other.get(&name).unwrap());
        assert_eq!(a.number(), b.number());
        let (all, again) = (a.versions(), b.versions());
        let versions = |all: &[Snapshot]| all.iter().map(|root| root.version()).collect::<Vec<_>>();
        assert_eq!(versions(&all), versions(&again));
        for (one_root, other_root) in all.iter().zip(&again) {
            check_same_root((one, one_root), (other, other_root));
        }
        assert_eq!(a.tags(), b.tags());
        for (tag, _) in a.tags() {
            let [x, y] = [&a, &b].map(|tree| tree.tagged(&tag).unwrap());
            check_same_root((one, &x), (other, &y));
        }
        for root in &all {
            let time = root.time() - Duration::from_nanos(1);
            let found = [&a, &b].map(|tree| tree.at_time(time).wait().map(|root| root.version()));
            assert_eq!(found[0], found[1]);
        }
    }
    assert_eq!(one.stats().blob_bytes, other.stats().blob_bytes);
}

fn check_same_root((one, a): (&Forest, &Snapshot), (other, b): (&Forest, &Snapshot)) {
    assert_eq!(a.version(), b.version());
    assert_eq!(
        (a.time(), a.commit_id(), a.bytes()),
        (b.time(), b.commit_id(), b.bytes())
    );
    assert!(a.tree().records().eq(b.tree().records()));
    assert!(a.indexes().eq(b.indexes()));
    for node in a.tree().root().preorder() {
        let again = b.tree().node(node.id()).unwrap();
        assert_eq!(one.value(node, "secret"), other.value(again, "secret"));
    }
    let query = Query::range("k", "".."z");
    let [x, y] = [a, b].map(|root| root.find(&query).map(|node| node.id()).collect::<Vec<_>>());
    assert_eq!(x, y);
}

/// Changes a tree at random.
fn change(edit: &mut Edit, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let nodes: Vec<NodeId> = edit
            .tree()
            .root()
            .preorder()
            .map(|node| node.id())
            .collect();
        let [node, other] = [0, 1].map(|_| nodes[random.below(nodes.len())]);
        let text = random.below(100).to_string();
        // An impossible record is refused, without further harm.
        match random.below(12) {
            0..3 => _ = edit.append(node, Attributes::new().with("k", &text)),
            3 => _ = edit.add(Where::Before(node), Attributes::new()),
            4 => _ = edit.move_to(node, Where::First(other)),
            5 if nodes.len() > 5 => _ = edit.delete(node),
            6 => _ = edit.put_erasable(node, "secret", &text),
            7 => _ = edit.delete_attribute(node, "k"),
            8 if random.below(4) == 0 => _ = edit.push_root(Attributes::new().with("k", &text)),
            9 => _ = edit.pop_root(),
            10 => {
                let mut builder = edit.tree().builder(Attributes::new());
                (0..random.below(30))
                    .for_each(|_| _ = builder.leaf(Attributes::new().with("k", &text)));
                edit.splice(Where::Last(node), &builder.finish()).unwrap();
            }
            _ => edit.put_attribute(node, "k", &text).unwrap(),
        }
    }
}

/// Does something at random.
fn go_on(forest: &Forest, random: &mut Random, clock: &ManualClock) {
    clock.advance(Duration::from_millis(random.below(3) as u64));
    let names = forest.list();
    if names.len() < 2 {
        let number = random.below(1000);
        _ = forest.create(&format!("tree {number}")).wait();
        return;
    }
    let tree = forest.get(&names[random.below(names.len())]).unwrap();
    let versions = tree.versions();
    let old = versions[random.below(versions.len())].clone();
    let tag = ["a", "b", "c"][random.below(3)];
    let root = tree.view().tree().root().id();
    match random.below(24) {
        0 => _ = forest.create(&format!("tree {}", random.below(5))).wait(),
        1 => _ = forest.delete(&tree.name()).wait(),
        2 => {
            _ = forest
                .rename(&tree.name(), &format!("new {}", random.below(5)))
                .wait()
        }
        3 => _ = tree.restore(old.version()).wait().unwrap(),
        4 | 5 => _ = tree.tag(tag, old.version()).wait().unwrap(),
        6 => _ = tree.untag(tag).wait().unwrap(),
        7 => _ = tree.add_index("k").wait().unwrap(),
        8 => _ = tree.drop_index("k").wait().unwrap(),
        9 => _ = tree.erase(root, "secret").wait(),
        10 | 11 => {
            let other = forest.get(&names[0]).unwrap();
            if other.number() != tree.number() {
                let edits = [&tree, &other].map(|tree| {
                    let mut edit = tree.edit();
                    change(&mut edit, random);
                    edit
                });
                Commit::of(edits).unwrap().bytes(b"both").wait().unwrap();
            }
        }
        12 => {
            let content = old.tree().clone();
            _ = forest
                .create_from(&format!("copy {}", random.below(3)), content)
                .wait();
        }
        13 if tree.tagged(tag).is_some() => {
            // A tag of a version that only a tag keeps.
            let version = tree.tagged(tag).unwrap().version();
            tree.tag("d", version).wait().unwrap();
        }
        _ => {
            let mut edit = tree.edit();
            change(&mut edit, random);
            let id = CommitId(random.below(1 << 30) as u128);
            edit.commit().id(id).bytes(&[1, 2]).wait().unwrap();
        }
    }
}

#[test]
fn a_forest_is_read_back_as_it_was() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let (journal, clock) = (MemoryJournal::new(), Arc::new(ManualClock::default()));
        let keep = 1 + random.below(8);
        let builder = || {
            let builder = Forest::builder().keep(keep).clock(clock.clone());
            builder.journal(journal.clone())
        };
        let mut forest = builder().build();
        for step in 0..120 {
            go_on(&forest, &mut random, &clock);
            if random.below(20) == 0 {
                let at = put_checkpoint(&forest, &journal);
                if random.below(2) == 0 {
                    journal.trim(at).wait().unwrap();
                }
            }
            if random.below(30) == 0 {
                // Go on with the one or the other.
                if step % 2 == 0 {
                    let again = builder().recover().wait().unwrap();
                    check_same(&forest, &again);
                    forest = again;
                } else {
                    check_same(&forest, &recovered(&journal, keep));
                }
            }
        }
        check_same(&forest, &recovered(&journal, keep));
    }
}

#[test]
fn a_forest_of_many_records_is_read_back_as_it_was() {
    let (mut random, clock) = (Random(7), Arc::new(ManualClock::default()));
    let journal = MemoryJournal::new();
    let builder = Forest::builder().keep(4).clock(clock.clone());
    let forest = builder.journal(journal.clone()).build();
    // A second thread takes part when more than a thousand are read at once.
    (0..1_400).for_each(|_| go_on(&forest, &mut random, &clock));
    check_same(&forest, &recovered(&journal, 4));
}

#[test]
fn a_tag_is_read_back_though_fewer_versions_are_kept() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(50).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let commits: Vec<_> = (0..40)
        .map(|n| commit(&tree, "n", &n.to_string()))
        .collect();
    tree.tag("old", commits[3].version).wait().unwrap();
    tree.tag("older", commits[1].version).wait().unwrap();
    tree.untag("older").wait().unwrap();
    let again = recovered(&journal, 2);
    let tree = again.get("t").unwrap();
    let old = tree.tagged("old").unwrap();
    assert_eq!(old.tree().root().get_str("n"), Some("3"));
    assert_eq!(old.version(), commits[3].version);
    assert_eq!(tree.versions().len(), 2);
    assert_eq!(
        tree.kept_at(commits[3].version).unwrap().version(),
        commits[3].version
    );
    assert!(matches!(
        tree.kept_at(commits[5].version),
        Err(VersionError::TooOld { .. })
    ));
}

/// What is tagged and untagged while a checkpoint is written may be lost with the power; what was tagged before may
/// not.
#[test]
fn a_checkpoint_has_the_tags_of_its_moment() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(1).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let old = commit(&tree, "n", "0");
    tree.tag("before", old.version).wait().unwrap();
    let newer = commit(&tree, "n", "1");
    let checkpoint = forest.checkpoint().wait().unwrap();
    let found = journal.copy();
    tree.untag("before").wait().unwrap();
    tree.tag("after", newer.version).wait().unwrap();
    commit(&tree, "n", "2");
    found.put_checkpoint(checkpoint).wait().unwrap();
    let again = recovered(&found, 1);
    let tree = again.get("t").unwrap();
    assert_eq!(tree.tags(), [("before".to_owned(), old.version)]);
    let before = tree.tagged("before").unwrap();
    assert_eq!(before.tree().root().get_str("n"), Some("0"));
}

/// A tag behind a checkpoint names a version of its moment that the tree has let go before the checkpoint came to it.
#[test]
fn a_checkpoint_has_every_version_of_its_moment_that_a_later_tag_may_name() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(3).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let old = commit(&tree, "n", "0");
    commit(&tree, "n", "1");
    let checkpoint = forest.checkpoint().wait().unwrap();
    tree.tag("release", old.version).wait().unwrap();
    tree.tag("gone", old.version).wait().unwrap();
    tree.untag("gone").wait().unwrap();
    (2..9).for_each(|n| _ = commit(&tree, "n", &n.to_string()));
    journal.put_checkpoint(checkpoint).wait().unwrap();
    let again = recovered(&journal, 3);
    let found = again.get("t").unwrap().tagged("release").unwrap();
    assert_eq!(
        (found.version(), found.tree().root().get_str("n")),
        (old.version, Some("0"))
    );
}

#[test]
fn versions_that_a_checkpoint_needed_are_freed_with_it() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(1).journal(journal).build();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "n", "held").unwrap();
    edit.commit().wait().unwrap();
    let one = forest.checkpoint().wait().unwrap();
    let other = forest.checkpoint().wait().unwrap();
    commit(&tree, "n", "another");
    commit(&tree, "n", "and another");
    drop(one);
    assert_eq!(forest.stats().blobs, 1, "the other needs it");
    drop(other);
    assert_eq!(forest.stats().blobs, 0);
}

#[test]
fn numbers_ids_and_time_go_on_whatever_the_clock_says() {
    let journal = MemoryJournal::new();
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1000));
    let forest = Forest::builder()
        .clock(clock)
        .journal(journal.clone())
        .build();
    let tree = forest.create("t").wait().unwrap();
    let first = put(&tree, "k", "1")
        .commit()
        .id(CommitId(7))
        .wait()
        .unwrap();
    let mut edit = tree.edit();
    let node = edit.append(edit.root(), Attributes::new()).unwrap();
    edit.delete(node).unwrap();
    let last = edit.commit().wait().unwrap();
    // The clock of the next opening is behind.
    let builder = Forest::builder().clock(Arc::new(ManualClock::default()));
    let forest = builder.journal(journal.clone()).recover().wait().unwrap();
    let tree = forest.get("t").unwrap();
    assert_eq!(tree.view().version(), last.version);
    // The same id gives the first receipt, and another request is refused.
    assert_eq!(
        put(&tree, "k", "1")
            .commit()
            .id(CommitId(7))
            .wait()
            .unwrap(),
        first
    );
    let other = put(&tree, "k", "2").commit().id(CommitId(7)).wait();
    assert_eq!(other, Err(CommitError::IdTaken(first)));
    let mut edit = tree.edit();
    assert!(edit.append(edit.root(), Attributes::new()).unwrap() > node);
    let next = edit.commit().wait().unwrap();
    assert!(next.version.incarnation > last.version.incarnation);
    assert!(next.version.number > last.version.number);
    assert!(next.time >= last.time);
    let created = forest.create("u").wait().unwrap();
    assert!(created.number() > next.version.number);
    check_versions(
        &journal,
        &forest,
        [first.version, last.version, next.version],
    );
}

/// Old versions are there, watches go on, and lost versions are no versions.
fn check_versions(journal: &MemoryJournal, forest: &Forest, [first, last, next]: [Version; 3]) {
    let tree = forest.get("t").unwrap();
    assert_eq!(tree.kept_at(first).unwrap().version(), first);
    let mut watch = tree.watch(&Path::default(), Since::Version(first)).unwrap();
    assert_eq!(watch.next().wait().unwrap().after.version(), last);
    assert_eq!(watch.next().wait().unwrap().after.version(), next);
    let lost = Version {
        number: last.number + 1,
        ..last
    };
    let invented = Version {
        number: last.number,
        ..next
    };
    for version in [lost, invented] {
        let refused = Some(VersionError::OtherIncarnation(version));
        assert_eq!(tree.kept_at(version).err(), refused);
    }
    tree.restore(first).wait().unwrap();
    let again = recovered(journal, 1000);
    check_same(forest, &again);
    let tree = again.get("t").unwrap();
    let old = tree.kept_at(last).unwrap();
    assert_eq!(tree.edit_from(&old).base().version(), last);
}

/// A reference is gone from all versions that a forest keeps, and comes back from a snapshot, or from a version that
/// another forest keeps. Nothing was erased, so the value is there even after the records were replayed.
#[test]
fn a_value_whose_reference_comes_back_is_there_again() {
    for (is_restored, checkpoints) in [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1)] {
        let journal = MemoryJournal::new();
        let keep = if is_restored { 10 } else { 1 };
        let forest = Forest::builder().keep(keep).journal(journal.clone());
        let forest = forest.build();
        let tree = forest.create("t").wait().unwrap();
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_erasable(root, "secret", "s").unwrap();
        edit.commit().wait().unwrap();
        let had = tree.snapshot();
        let put_checkpoints = |when| {
            if checkpoints > when {
                put_checkpoint(&forest, &journal);
            }
        };
        put_checkpoints(1);
        let mut edit = tree.edit();
        edit.delete_attribute(root, "secret").unwrap();
        edit.commit().wait().unwrap();
        (0..3).for_each(|_| _ = commit(&tree, "n", "1"));
        put_checkpoints(0);
        if is_restored {
            tree.restore(had.version()).wait().unwrap();
        } else {
            let reference = had.tree().root().get("secret").unwrap();
            let mut edit = tree.edit();
            edit.put_attribute(root, "secret", reference).unwrap();
            edit.commit().wait().unwrap();
        }
        let has = |forest: &Forest| {
            let view = forest.get("t").unwrap().snapshot();
            let value = forest.value(view.tree().root(), "secret").unwrap();
            value.bytes() == Some(b"s")
        };
        assert!(has(&forest));
        for keep in [1, 1000] {
            assert!(has(&recovered(&journal, keep)), "{keep}, {checkpoints}");
        }
    }
}

#[test]
fn erased_values_stay_erased() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let root = tree.view().tree().root().id();
    for (name, value) in [("a", "1"), ("b", "2")] {
        let mut edit = tree.edit();
        edit.put_erasable(root, name, value).unwrap();
        edit.commit().wait().unwrap();
    }
    let erased = tree.erase(root, "a").wait().unwrap();
    for is_checkpointed in [false, true] {
        if is_checkpointed {
            let at = put_checkpoint(&forest, &journal);
            journal.trim(at).wait().unwrap();
        }
        let again = recovered(&journal, 1000);
        let view = again.get("t").unwrap().snapshot();
        let value = |name| again.value(view.tree().root(), name).unwrap();
        assert_eq!(value("a"), Value::Erased { when: erased.time });
        assert_eq!(value("b").bytes(), Some(&b"2"[..]));
    }
    let journal = journal.copy();
    let again = Forest::builder().journal(journal.clone());
    let again = again.recover().wait().unwrap();
    let tree = again.get("t").unwrap();
    assert_eq!(again.stats().blob_bytes, 1);
    tree.erase(root, "b").wait().unwrap();
    assert_eq!(again.stats().blob_bytes, 0);
    // What nothing refers to any more is not read back.
    let mut edit = tree.edit();
    edit.delete_attribute(root, "a").unwrap();
    edit.delete_attribute(root, "b").unwrap();
    edit.commit().wait().unwrap();
    let again = recovered(&journal, 1);
    assert_eq!(again.checkpoint().wait().unwrap().blobs, []);
}

/// The bytes of a checkpoint.
fn bytes_of(checkpoint: Checkpoint) -> usize {
    checkpoint.pieces.map(|piece| piece.len()).sum()
}

#[test]
fn what_versions_share_is_in_a_checkpoint_once() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    (0..5000).for_each(|_| {
        _ = edit
            .append(root, Attributes::new().with("k", "value"))
            .unwrap()
    });
    edit.commit().wait().unwrap();
    let alone = bytes_of(forest.checkpoint().wait().unwrap());
    (0..500).for_each(|n| _ = commit(&tree, "n", &n.to_string()));
    let checkpoint = forest.checkpoint().wait().unwrap();
    let sizes: Vec<_> = checkpoint.pieces.map(|piece| piece.len()).collect();
    let all: usize = sizes.iter().sum();
    assert!(all < alone + 500 * 100, "{alone} {all}");
    assert!(sizes.len() > 2, "it comes in pieces");
    put_checkpoint(&forest, &journal);
    check_same(&forest, &recovered(&journal, 1000));
}

#[test]
fn a_piece_of_a_checkpoint_is_not_much_longer_than_its_longest_value() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let mut edit = weald_tree::Tree::new().edit();
    for _ in 0..60 {
        let node = Attributes::new().with("long", vec![7; 10_000]);
        edit.append(edit.tree().root().id(), node).unwrap();
    }
    forest.create_from("t", edit.freeze()).wait().unwrap();
    let pieces = forest.checkpoint().wait().unwrap().pieces;
    let longest = pieces.map(|piece| piece.len()).max().unwrap();
    assert!(longest < 160_000, "{longest}");
    put_checkpoint(&forest, &journal);
    check_same(&forest, &recovered(&journal, 4));
}

#[test]
fn a_damaged_checkpoint_is_an_error_and_no_panic() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    tree.add_index("k").wait().unwrap();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "secret", "s").unwrap();
    edit.append(edit.root(), Attributes::new().with("k", "v"))
        .unwrap();
    let version = edit.commit().id(CommitId(3)).wait().unwrap().version;
    tree.tag("tag", version).wait().unwrap();
    let checkpoint = forest.checkpoint().wait().unwrap();
    let (at, blobs) = (checkpoint.at, checkpoint.blobs);
    let bytes: Vec<u8> = checkpoint.pieces.flatten().collect();
    let read = |bytes: Vec<u8>| {
        let (blobs, pieces) = (blobs.clone(), Box::new([bytes].into_iter()));
        journal
            .put_checkpoint(Checkpoint { at, blobs, pieces })
            .wait()
            .unwrap();
        Forest::builder().journal(journal.copy()).recover().wait()
    };
    check_same(&forest, &read(bytes.clone()).unwrap());
    for len in 0..bytes.len() {
        let short = read(bytes[..len].to_vec());
        assert!(matches!(short, Err(RecoverError::Checkpoint(_))), "{len}");
    }
    for at in 0..bytes.len() {
        for other in [bytes[at] ^ 1, bytes[at] ^ 0x80, 0, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = other;
            _ = read(damaged); // It may be another forest, or none.
        }
    }
}

#[test]
fn a_checkpoint_is_of_one_moment_while_others_commit() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(3).journal(journal.clone()).build();
    let trees = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) {
                n += 1;
                let edits = trees.each_ref().map(|tree| put(tree, "n", &n.to_string()));
                Commit::of(edits).unwrap().wait().unwrap();
                commit(&trees[n % 2], "m", &n.to_string());
            }
        });
        for _ in 0..30 {
            put_checkpoint(&forest, &journal);
            let again = recovered(&journal, 3);
            let of = |name| value_of(&again.get(name).unwrap(), "n");
            assert_eq!(of("a"), of("b"));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    check_same(&forest, &recovered(&journal, 3));
}

#[test]
fn a_forest_without_records_has_no_checkpoint() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    assert!(forest.checkpoint().wait().is_err());
    assert!(Forest::new().checkpoint().wait().is_err());
    let again = recovered(&journal, 10);
    assert!(again.list().is_empty());
    let tree: TreeHandle = again.create("t").wait().unwrap();
    assert_eq!(tree.number(), 2, "the opening is the first record");
}

/// Numbers that were given out and lost are not given out by the next opening.
#[test]
fn an_opening_that_loses_all_its_commits_has_used_up_its_numbers() {
    let mut disk = MemoryJournal::new();
    let (mut numbers, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    for opening in 0..4 {
        let builder = Forest::builder().journal(disk.clone());
        let forest = builder.recover().wait().unwrap();
        if opening == 1 {
            forest.create("kept").wait().unwrap();
        }
        let durable = disk.copy();
        if let Ok(tree) = forest.get("kept") {
            let mut edit = tree.edit();
            let node = edit.append(edit.root(), Attributes::new()).unwrap();
            assert!(nodes.insert(node), "{node} was given out twice");
            edit.commit().wait().unwrap();
        }
        let number = forest.create("lost").wait().unwrap().number();
        assert!(numbers.insert(number), "{number} was given out twice");
        disk = durable;
    }
    assert_eq!((numbers.len(), nodes.len()), (4, 3));
}

#[test]
fn an_opening_with_a_clock_of_the_far_future_leaves_incarnations_to_the_next_ones() {
    const YEAR: u64 = 365 * 24 * 60 * 60;
    let mut journal = MemoryJournal::new();
    let mut last = 0;
    for years in [0, 15_000, 15_000, 0, 1] {
        let clock = Arc::new(ManualClock::default());
        clock.advance(Duration::from_secs(years * YEAR));
        journal = journal.copy();
        let builder = Forest::builder().clock(clock).journal(journal.clone());
        let forest = builder.recover().wait().unwrap();
        let name = format!("{years} after {last}");
        let version = forest.create(&name).wait().unwrap().view().version();
        assert!(version.incarnation > last, "{version} after {last}");
        last = version.incarnation;
    }
}
