//! The watches of a forest are told of names, tags and erasures: each once, in order, and when it can be seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{ByHand, Wait, commit};
use weald_forest::journal::Journal;
use weald_forest::{
    Commit, Committed, Events, Forest, Happening, Level, MemoryJournal, Since, Version,
    VersionError, WatchEnd, WatchError,
};

/// What can be had without a wait.
fn all_of(mut events: Events) -> Vec<(Committed, Happening)> {
    let mut all = Vec::new();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while let std::task::Poll::Ready(next) = events.poll_next(&mut cx) {
        all.push(next.unwrap());
        assert_eq!(events.last(), all[all.len() - 1].0.version);
    }
    all
}

/// Some of everything that is told.
fn go_on(forest: &Forest, name: &str) {
    let tree = forest.create(name).wait().unwrap();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "secret", "bytes").unwrap();
    let version = edit.commit().wait().unwrap().version;
    tree.tag("v1", version).wait().unwrap();
    tree.tag("v2", version).wait().unwrap();
    tree.untag("v1").wait().unwrap();
    let node = tree.view().tree().root().id();
    tree.erase(node, "secret").wait().unwrap();
    let other = format!("other {name}");
    forest.rename(name, &other).wait().unwrap();
    let gone = forest.create("gone").wait().unwrap();
    Commit::of([&tree, &gone].map(|tree| tools::put(tree, "k", "v")))
        .unwrap()
        .wait()
        .unwrap();
    forest.delete("gone").wait().unwrap();
}

const BEGIN: Version = Version {
    incarnation: 0,
    number: 0,
};

#[test]
fn what_has_happened_since_a_version_is_told_though_nobody_watched() {
    let forest = Forest::new();
    go_on(&forest, "a");
    let all = all_of(forest.events_since(Since::Version(BEGIN)).unwrap());
    assert_eq!(all.len(), 8);
    for (at, (receipt, _)) in all.iter().enumerate() {
        let since = forest
            .events_since(Since::Version(receipt.version))
            .unwrap();
        assert_eq!(since.last(), receipt.version);
        assert_eq!(all_of(since), all[at + 1..]);
    }
    assert!(all_of(forest.events_since(Since::Now).unwrap()).is_empty());
    assert!(all_of(forest.events()).is_empty());
    // It goes on with what comes.
    let mut events = forest
        .events_since(Since::Version(all[7].0.version))
        .unwrap();
    let tree = forest.create("new").wait().unwrap();
    let (receipt, told) = events.next().wait().unwrap();
    assert_eq!(receipt.version, tree.view().version());
    assert!(matches!(told, Happening::Created { name, .. } if name == "new"));
}

#[test]
fn what_is_no_longer_kept_or_never_was_is_refused() {
    let forest = Forest::new();
    let tree = forest.create("a").wait().unwrap();
    let version = tree.view().version();
    let tags: Vec<_> = (0..1001)
        .map(|_| tree.tag("t", version).wait().unwrap())
        .collect();
    let oldest = tags[0].version;
    for since in [BEGIN, version] {
        let refused = forest.events_since(Since::Version(since));
        assert_eq!(refused.err(), Some(WatchError::Forgotten { oldest }));
    }
    let since = forest.events_since(Since::Version(oldest)).unwrap();
    assert_eq!(all_of(since).len(), 1000);
    let future = Version {
        number: tags[1000].version.number + 1,
        ..version
    };
    let refused = forest.events_since(Since::Version(future)).err();
    assert!(matches!(
        refused,
        Some(WatchError::Version(VersionError::Future { .. }))
    ));
    assert!(matches!(
        forest.changed_since(future),
        Err(VersionError::Future { .. })
    ));
}

#[test]
fn a_reader_goes_on_where_it_was_when_the_forest_is_opened_again() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    go_on(&forest, "a");
    let first = all_of(forest.events_since(Since::Version(BEGIN)).unwrap());
    let open = |journal: &MemoryJournal| {
        let builder = Forest::builder().journal(journal.copy());
        builder.recover().wait().unwrap()
    };
    let again = open(&journal);
    assert_eq!(
        all_of(again.events_since(Since::Version(BEGIN)).unwrap()),
        first
    );
    // Behind a checkpoint, what came before it is not known.
    let checkpoint = forest.checkpoint().wait().unwrap();
    journal.put_checkpoint(checkpoint).wait().unwrap();
    go_on(&forest, "b");
    let second = all_of(
        forest
            .events_since(Since::Version(first[7].0.version))
            .unwrap(),
    );
    let again = open(&journal);
    let oldest = first[7].0.version;
    for since in [BEGIN, first[6].0.version] {
        let refused = again.events_since(Since::Version(since));
        assert_eq!(refused.err(), Some(WatchError::Forgotten { oldest }));
    }
    let mut events = again.events_since(Since::Version(oldest)).unwrap();
    for told in &second {
        assert_eq!(events.next().wait().unwrap(), *told);
    }
    go_on(&again, "c");
    let last = events.last();
    assert_eq!(all_of(events).len(), 8);
    assert_eq!(
        all_of(again.events_since(Since::Version(last)).unwrap()).len(),
        8
    );
}

#[test]
fn a_reader_of_changed_trees_misses_none() {
    let forest = Forest::new();
    let start = forest.create("start").wait().unwrap().view().version();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let trees: Vec<_> = (0..300)
                .map(|at| {
                    let tree = forest.create(&at.to_string()).wait().unwrap();
                    let start = forest.get("start").unwrap();
                    let both = [&tree, &start].map(|tree| tools::put(tree, "k", &at.to_string()));
                    Commit::of(both).unwrap().wait().unwrap();
                    commit(&tree, "l", "1");
                    tree
                })
                .collect();
            trees
        });
        let mut upto = start;
        let mut seen = std::collections::BTreeMap::new();
        loop {
            let is_last = writer.is_finished();
            let (next, changed) = forest.changed_since(upto).unwrap();
            assert!(next >= upto);
            for tree in changed {
                assert!(tree.view().version() > upto);
                seen.insert(tree.number(), tree.view().version());
            }
            upto = next;
            if is_last {
                break;
            }
        }
        let start = forest.get("start").unwrap();
        for tree in writer.join().unwrap().iter().chain([&start]) {
            assert_eq!(seen.get(&tree.number()), Some(&tree.view().version()));
        }
        assert!(forest.changed_since(upto).unwrap().1.is_empty());
    });
}

#[test]
fn what_happens_is_told_in_order() {
    let forest = Forest::new();
    forest.create("before").wait().unwrap();
    let mut events = forest.events();
    let tree = forest.create("a").wait().unwrap();
    let number = tree.number();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "secret", "bytes").unwrap();
    let version = edit.commit().wait().unwrap().version;
    tree.tag("v1", version).wait().unwrap();
    tree.untag("v1").wait().unwrap();
    let node = tree.view().tree().root().id();
    let erased = tree.erase(node, "secret").wait().unwrap();
    forest.rename("a", "b").wait().unwrap();
    forest.delete("b").wait().unwrap();
    let expected = [
        Happening::Created {
            tree: number,
            name: "a".into(),
        },
        Happening::Tagged {
            tree: number,
            tag: "v1".into(),
            version,
        },
        Happening::Untagged {
            tree: number,
            tag: "v1".into(),
        },
        Happening::Erased {
            tree: number,
            node,
            name: "secret".into(),
        },
        Happening::Renamed {
            tree: number,
            from: "a".into(),
            to: "b".into(),
        },
        Happening::Deleted {
            tree: number,
            name: "b".into(),
        },
    ];
    for happening in expected {
        let (receipt, told) = events.next().wait().unwrap();
        assert_eq!(told, happening);
        if matches!(told, Happening::Erased { .. }) {
            assert_eq!(receipt, erased);
        }
    }
    let mut next = ByHand::new(async move { events.next().await });
    assert!(next.is_pending());
}

#[test]
fn a_waiter_is_woken_when_it_can_see_what_happened() {
    let forest = Forest::new();
    let mut events = forest.events();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            for at in 0..200 {
                let (receipt, told) = events.next().wait().unwrap();
                let Happening::Created { name, .. } = told else {
                    panic!("nothing else happens")
                };
                assert_eq!(name, at.to_string());
                // It is visible, as a name and as a version.
                let tree = forest.get(&name).unwrap();
                tree.kept_at(receipt.version).unwrap();
            }
        });
        for at in 0..200 {
            forest.create(&at.to_string()).wait().unwrap();
        }
        waiter.join().unwrap();
    });
}

#[test]
fn who_is_slow_is_told_where_to_go_on() {
    let forest = Forest::new();
    let tree = forest.create("a").wait().unwrap();
    let version = commit(&tree, "x", "1").version;
    let mut events = forest.events();
    let mut receipts = Vec::new();
    for _ in 0..1003 {
        receipts.push(tree.tag("t", version).wait().unwrap());
    }
    let resume_at = receipts[2].version;
    assert_eq!(events.next().wait(), Err(WatchEnd::Lagged { resume_at }));
    for receipt in &receipts[3..] {
        assert_eq!(events.next().wait().unwrap().0, *receipt);
    }
}

#[test]
fn what_is_not_durable_waits_and_is_not_told_when_the_journal_fails() {
    let journal = MemoryJournal::synced_by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    let mut durable = forest.events();
    let mut soon = forest.events().level(Level::Accepted);
    forest.create("a").level(Level::Accepted).wait().unwrap();
    soon.next().wait().unwrap();
    assert!(ByHand::new(std::future::poll_fn(move |cx| soon.poll_next(cx))).is_pending());
    let mut next = ByHand::new(async move {
        let first = durable.next().await;
        (first, durable.next().await)
    });
    assert!(next.is_pending());
    journal.sync(Level::Durable);
    assert!(next.is_pending());
    forest.create("b").level(Level::Accepted).wait().unwrap();
    assert!(next.is_pending());
    journal.fail();
    let (first, second) = next.ready();
    assert!(matches!(first.unwrap().1, Happening::Created { name, .. } if name == "a"));
    assert_eq!(second, Err(WatchEnd::Unknown));
    let mut late = forest.events();
    assert_eq!(late.next().wait(), Err(WatchEnd::Unknown));
}

#[test]
fn what_was_lost_is_no_version_to_begin_with() {
    let journal = MemoryJournal::synced_by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    let first = forest.create("a").level(Level::Accepted).wait().unwrap();
    journal.sync(Level::Durable);
    let durable = first.view().version();
    let mut slow = forest.events_since(Since::Version(durable)).unwrap();
    // More than are kept, and none of them durable.
    for number in 0..1_001 {
        let made = forest.create(&number.to_string()).level(Level::Accepted);
        made.wait().unwrap();
    }
    journal.fail();
    assert_eq!(slow.next().wait(), Err(WatchEnd::Unknown));
    let refused = forest.events_since(Since::Version(BEGIN)).err();
    assert_eq!(refused, Some(WatchError::Forgotten { oldest: durable }));
    let mut late = forest.events_since(Since::Version(durable)).unwrap();
    assert_eq!(late.next().wait(), Err(WatchEnd::Unknown));
}
