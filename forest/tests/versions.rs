//! Older versions: by number, by time, by tag; the history of a node; restore; and what is let go.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tools::{ManualClock, Wait, commit, put, value_of, with_children};
use weald_forest::{
    CommitError, CommitId, Forest, MemoryJournal, NameError, Version, VersionError,
};

#[test]
fn a_version_stays_as_it_was() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let other = forest.create("o").wait().unwrap();
    let numbers: Vec<_> = ["1", "2", "3"]
        .map(|value| commit(&tree, "k", value).version)
        .into();
    for (version, value) in numbers.iter().zip(["1", "2", "3"]) {
        let old = tree.at(*version).wait().unwrap();
        assert_eq!(old.tree().root().get_str("k"), Some(value));
        assert_eq!(old.version(), *version);
    }
    // A commit elsewhere creates a version of the forest in which this tree is unchanged.
    let elsewhere = commit(&other, "k", "x").version;
    assert_eq!(tree.kept_at(elsewhere).unwrap().version(), numbers[2]);
    let first = other.versions()[0].version();
    assert_eq!(
        other.kept_at(Version { number: 1, ..first }).unwrap_err(),
        VersionError::NotCreated {
            asked: Version { number: 1, ..first },
            first,
        }
    );
    let future = Version {
        number: 99,
        ..first
    };
    let newest = elsewhere;
    assert_eq!(
        tree.kept_at(future).unwrap_err(),
        VersionError::Future {
            asked: future,
            newest
        }
    );
    let stranger = Version {
        incarnation: 1,
        number: 1,
    };
    assert_eq!(
        tree.kept_at(stranger).unwrap_err(),
        VersionError::OtherIncarnation(stranger)
    );
}

#[test]
fn a_time_finds_its_version_and_times_never_go_back() {
    struct Back(std::sync::Mutex<u64>);
    impl weald_forest::Clock for Back {
        fn now(&self) -> SystemTime {
            let mut next = self.0.lock().unwrap();
            *next -= 1;
            SystemTime::UNIX_EPOCH + Duration::from_secs(*next)
        }
        fn uptime(&self) -> Duration {
            Duration::ZERO
        }
        fn wake_at(&self, _: Duration, _: std::task::Waker) {}
    }
    let forest = Forest::builder()
        .clock(Arc::new(Back(std::sync::Mutex::new(100))))
        .build();
    let tree = forest.create("t").wait().unwrap();
    let first = tree.snapshot().time();
    assert_eq!(commit(&tree, "k", "v").time, first);

    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let created = tree.snapshot();
    clock.advance(Duration::from_secs(10));
    let ten = commit(&tree, "k", "10");
    let at = |seconds| {
        tree.at_time(created.time() + Duration::from_secs(seconds))
            .wait()
    };
    assert_eq!(at(9).unwrap().version(), created.version());
    assert_eq!(at(10).unwrap().version(), ten.version);
    assert_eq!(at(99).unwrap().version(), ten.version);
    let before = tree.at_time(created.time() - Duration::from_secs(1)).wait();
    assert_eq!(
        before.unwrap_err(),
        VersionError::BeforeTime {
            oldest: created.version()
        }
    );
}

#[test]
fn the_newest_versions_and_the_tagged_ones_are_kept() {
    let forest = Forest::builder().keep(3).build();
    let tree = forest.create("t").wait().unwrap();
    let versions: Vec<_> = (0..10)
        .map(|n| commit(&tree, "k", &n.to_string()).version)
        .collect();
    assert_eq!(tree.versions().len(), 3);
    assert_eq!(forest.weigh().trees.versions(), 3);
    let oldest = versions[7];
    let too_old = VersionError::TooOld {
        asked: versions[6],
        oldest,
    };
    assert_eq!(tree.kept_at(versions[6]).unwrap_err(), too_old);
    assert!(tree.tag("x", versions[6]).wait().is_err());

    tree.tag("good", versions[7]).wait().unwrap();
    (0..10).for_each(|n| _ = commit(&tree, "k", &n.to_string()));
    assert_eq!(tree.tags(), [("good".to_owned(), versions[7])]);
    assert_eq!(
        tree.tagged("good").unwrap().tree().root().get_str("k"),
        Some("7")
    );
    assert_eq!(tree.kept_at(versions[7]).unwrap().version(), versions[7]);
    assert_eq!(forest.weigh().trees.versions(), 4);
    tree.untag("good").wait().unwrap();
    assert_eq!(forest.weigh().trees.versions(), 3);
    assert!(tree.tagged("good").is_none());
    // A tag creates no version of the tree.
    assert_eq!(tree.versions().len(), 3);
}

#[test]
fn a_snapshot_keeps_its_own_version_and_no_other() {
    let forest = Forest::builder().keep(1).build();
    let (tree, children) = with_children(&forest, 5000);
    let held = tree.snapshot();
    let alone = forest.weigh().trees;
    for child in &children {
        let mut edit = tree.edit();
        edit.put_attribute(*child, "k", "v").unwrap();
        edit.commit().wait().unwrap();
    }
    let after = forest.weigh().trees;
    assert_eq!((after.versions(), after.records()), (1, alone.records()));
    assert!(
        held.tree()
            .root()
            .children()
            .all(|child| child.get("k").is_none())
    );
}

#[test]
fn versions_share_what_did_not_change() {
    let forest = Forest::new();
    let (tree, children) = with_children(&forest, 10_000);
    let alone = forest.weigh().trees;
    for child in &children[..100] {
        let mut edit = tree.edit();
        edit.put_attribute(*child, "k", "v").unwrap();
        edit.commit().wait().unwrap();
    }
    let census = forest.weigh().trees;
    assert_eq!(census.nodes(), alone.nodes() + 100 * 10_001);
    // Each commit copied one leaf of at most sixteen records.
    assert!(census.records() <= alone.records() + 100 * 16);
    assert!(census.bytes() < 3 * alone.bytes());
}

#[test]
fn history_has_the_versions_in_which_a_node_changed() {
    let forest = Forest::new();
    let (tree, children) = with_children(&forest, 2);
    let [one, other] = [children[0], children[1]];
    let came = tree.view().version();
    let change = |node, value: &str| {
        let mut edit = tree.edit();
        edit.put_attribute(node, "k", value).unwrap();
        edit.commit().wait().unwrap().version
    };
    let put = change(one, "1");
    change(other, "1");
    let again = change(one, "2");
    let mut edit = tree.edit();
    edit.delete(one).unwrap();
    let gone = edit.commit().wait().unwrap().version;
    let versions: Vec<_> = tree
        .history(one)
        .iter()
        .map(|root| root.version())
        .collect();
    assert_eq!(versions, [gone, again, put, came]);
    let (old, new) = (tree.kept_at(put).unwrap(), tree.kept_at(gone).unwrap());
    let changed: Vec<_> = old
        .tree()
        .diff(new.tree())
        .map(|change| change.id())
        .collect();
    assert_eq!(changed, [one, other]);
    assert_eq!(
        tree.history(weald_forest::NodeId::new(999).unwrap()).len(),
        0
    );
}

#[test]
fn restore_brings_nodes_back_and_loses_nothing() {
    let forest = Forest::new();
    let (tree, children) = with_children(&forest, 3);
    let good = tree.view().version();
    let mut edit = tree.edit();
    edit.delete(children[1]).unwrap();
    let bad = edit.commit().wait().unwrap().version;
    let mut late = tree.edit();
    late.put_attribute(children[2], "k", "late").unwrap();
    let mut doomed = tree.edit();
    let doomed_parent = doomed.append(doomed.root(), Default::default()).unwrap();

    let restored = tree.restore(good).wait().unwrap().version;
    let ids: Vec<_> = tree
        .view()
        .tree()
        .root()
        .children()
        .map(|node| node.id())
        .collect();
    assert_eq!(ids, children);
    assert!(
        tree.kept_at(bad)
            .unwrap()
            .tree()
            .node(children[1])
            .is_none()
    );
    assert!(restored > bad);
    late.commit().wait().unwrap();
    doomed.commit().wait().unwrap();
    let view = tree.view();
    assert_eq!(
        view.tree().node(children[2]).unwrap().get_str("k"),
        Some("late")
    );
    assert!(view.tree().node(doomed_parent).is_some());
}

#[test]
fn a_commit_carries_its_id_and_bytes() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let first = put(&tree, "k", "1")
        .commit()
        .id(CommitId(7))
        .bytes(b"why")
        .wait()
        .unwrap();
    assert_eq!(first.id, CommitId(7));
    assert_eq!(
        (tree.view().commit_id(), tree.view().bytes()),
        (CommitId(7), &b"why"[..])
    );
    let again = put(&tree, "k", "1")
        .commit()
        .id(CommitId(7))
        .bytes(b"other")
        .wait()
        .unwrap();
    assert_eq!(again, first);
    let other = put(&tree, "k", "2").commit().id(CommitId(7)).wait();
    assert_eq!(other, Err(weald_forest::CommitError::IdTaken(first)));
    assert_eq!(value_of(&tree, "k").unwrap(), "1");
    // A refused commit was not made, and its id is free.
    let (one, other) = (put(&tree, "k", "3"), put(&tree, "k", "4"));
    one.commit().wait().unwrap();
    assert!(other.commit().id(CommitId(8)).wait().is_err());
    assert!(
        put(&tree, "k", "5")
            .commit()
            .id(CommitId(8))
            .wait()
            .unwrap()
            .version
            > first.version
    );
    let too_many = put(&tree, "k", "6").commit().bytes(&[0; 1025]).wait();
    assert_eq!(too_many, Err(weald_forest::CommitError::TooManyBytes(1025)));
    assert!(
        put(&tree, "k", "6")
            .commit()
            .bytes(&[0; 1024])
            .wait()
            .is_ok()
    );
    let ids: Vec<_> = tree
        .versions()
        .iter()
        .map(|root| root.commit_id())
        .collect();
    assert!(
        ids.iter()
            .all(|id| ids.iter().filter(|other| *other == id).count() == 1)
    );
}

#[test]
fn an_edit_without_operations_creates_no_version_but_is_checked() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let head = tree.view().version();
    assert_eq!(tree.edit().commit().wait().unwrap().version, head);
    let reader = tree.edit();
    reader.attribute(reader.root(), "k").unwrap();
    commit(&tree, "k", "v");
    assert!(reader.commit().wait().is_err());
}

#[test]
fn the_oldest_kept_version_is_no_change_of_a_node() {
    let forest = Forest::builder().keep(3).build();
    let tree = forest.create("t").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    let node = edit.append(root, Default::default()).unwrap();
    let added = edit.commit().wait().unwrap().version;
    let versions = |node| {
        let history = tree.history(node);
        history.iter().map(|at| at.version()).collect::<Vec<_>>()
    };
    assert_eq!(versions(node), [added]);
    let first = tree.versions()[0].version();
    assert_eq!(versions(root), [first]);
    let last = [1, 2, 3].map(|n| commit(&tree, "k", &n.to_string()).version);
    assert_eq!(tree.versions().len(), 3);
    assert_eq!(versions(node), []);
    assert_eq!(versions(root), [last[2], last[1]]);
}

#[test]
fn a_tag_keeps_the_version_that_it_was_given() {
    let forest = Forest::builder().keep(1).build();
    let tree = forest.create("t").wait().unwrap();
    let other = forest.create("o").wait().unwrap();
    let own = commit(&tree, "k", "good").version;
    let given = commit(&other, "k", "x").version;
    let behind = commit(&other, "k", "y").version;
    tree.tag("good", given).wait().unwrap();
    commit(&tree, "k", "bad");
    for asked in [own, given] {
        let old = tree.kept_at(asked).unwrap();
        assert_eq!(old.tree().root().get_str("k"), Some("good"));
    }
    let oldest = tree.view().version();
    let asked = behind;
    assert_eq!(
        tree.kept_at(asked).unwrap_err(),
        VersionError::TooOld { asked, oldest }
    );
}

#[test]
fn a_tagged_version_is_found_by_its_time_as_by_its_number() {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().keep(2).clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let mut made = Vec::new();
    for number in 0..6 {
        clock.advance(Duration::from_secs(10));
        made.push(commit(&tree, "n", &number.to_string()));
        if number == 3 {
            // One that is the newest, and one that is not.
            tree.tag("newest", made[3].version).wait().unwrap();
            tree.tag("older", made[2].version).wait().unwrap();
        }
    }
    for (number, commit) in made.iter().enumerate() {
        let by_number = tree.kept_at(commit.version).map(|root| root.version());
        for later in [0, 9] {
            let time = commit.time + Duration::from_secs(later);
            let by_time = tree.at_time(time).wait().map(|root| root.version());
            // Nobody knows how long the newest one stayed the newest after it was tagged.
            if number != 3 || later == 0 {
                assert_eq!(by_time.ok(), by_number.ok(), "{number} {later}");
            }
        }
    }
    assert!(tree.kept_at(made[1].version).is_err() && tree.kept_at(made[2].version).is_ok());
}

/// Commits of one group have one time, and so have those while a clock stands.
#[test]
fn a_tag_does_not_speak_for_a_time_at_which_a_newer_version_was_made() {
    for tagged_first in [true, false] {
        let clock = Arc::new(ManualClock::default());
        let journal = MemoryJournal::new();
        let builder = Forest::builder().keep(1).clock(clock.clone());
        let forest = builder.journal(journal.clone()).build();
        let tree = forest.create("t").wait().unwrap();
        clock.advance(Duration::from_secs(10));
        let older = commit(&tree, "n", "1");
        if tagged_first {
            tree.tag("tag", older.version).wait().unwrap();
        }
        let newer = commit(&tree, "n", "2");
        assert_eq!(older.time, newer.time);
        if !tagged_first {
            // It is gone from memory, unless it was tagged.
            assert!(tree.tag("tag", older.version).wait().is_err());
            continue;
        }
        // While the newer one is the newest, it is found.
        let found = tree.at_time(newer.time).wait().unwrap();
        assert_eq!(found.version(), newer.version);
        clock.advance(Duration::from_secs(10));
        commit(&tree, "n", "3");
        let found = tree.at_time(newer.time).wait().map(|root| root.version());
        assert!(found.is_err(), "{found:?} of {older:?} and {newer:?}");
        drop((tree, forest));
        let builder = Forest::builder().keep(1).clock(clock);
        let forest = builder.journal(journal).recover().wait().unwrap();
        let tree = forest.get("t").unwrap();
        assert!(tree.tagged("tag").is_some());
        let found = tree.at_time(newer.time).wait().map(|root| root.version());
        assert!(found.is_err(), "{found:?} after it was opened again");
    }
    // Both are kept when the older one is tagged.
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().keep(2).clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    clock.advance(Duration::from_secs(10));
    let older = commit(&tree, "n", "1");
    let newer = commit(&tree, "n", "2");
    tree.tag("tag", older.version).wait().unwrap();
    tree.tag("again", older.version).wait().unwrap();
    clock.advance(Duration::from_secs(10));
    (3..6).for_each(|number| _ = commit(&tree, "n", &number.to_string()));
    tree.tag("later", older.version).wait().unwrap();
    assert!(tree.kept_at(older.version).is_ok());
    assert!(tree.at_time(newer.time).wait().is_err());
}

#[test]
fn a_tag_and_an_index_have_a_length() {
    let tree = Forest::new().create("t").wait().unwrap();
    let version = tree.view().version();
    for tag in ["", "a\nb", &"x".repeat(1025)] {
        let refused = tree.tag(tag, version).wait();
        let is_it = matches!(refused, Err(CommitError::Name(NameError::InvalidTag(_))));
        assert!(is_it, "{refused:?}");
    }
    tree.tag(&"x".repeat(1024), version).wait().unwrap();
    let refused = tree.add_index(&"x".repeat(1025)).wait();
    assert!(matches!(
        refused,
        Err(CommitError::Name(NameError::InvalidIndex(_)))
    ));
    tree.add_index(&"x".repeat(1024)).wait().unwrap();
}
