//! The watches of a forest are told of names, tags and erasures: each once, in order, and when it can be seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{ByHand, Wait, commit};
use weald_forest::{Forest, Happening, Level, MemoryJournal, WatchEnd};

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
