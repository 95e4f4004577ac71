//! What others may learn about commits that the journal has not decided on; and journals that panic, call back, or wake
//! the units that ask them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use hooks::Hooks;
use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use weald_forest::{
    AppendError, Attributes, CommitError, CommitId, EditError, Forest, Level, MemoryJournal,
    NameError, TreeHandle, VersionError,
};

fn setup<const N: usize>(names: [&str; N]) -> (Forest, MemoryJournal, [TreeHandle; N]) {
    let journal = MemoryJournal::by_hand();
    let forest = Forest::builder()
        .journal(journal.clone())
        .level(Level::Accepted)
        .build();
    let trees = names.map(|name| {
        let mut creation = ByHand::new(forest.create(name));
        assert!(creation.is_pending());
        journal.accept(1);
        creation.ready().unwrap()
    });
    (forest, journal, trees)
}

fn counted(tree: &TreeHandle) -> ByHand<Option<u8>> {
    let update = tree.update(|edit| {
        let root = edit.root();
        let count = edit.attribute(root, "n")?.map_or(0, |bytes| bytes[0]) + 1;
        edit.put_attribute(root, "n", [count])?;
        Ok::<_, EditError>(count)
    });
    ByHand::new(async move { update.await.ok().map(|(count, _)| count) })
}

#[test]
fn updates_wait_for_what_is_on_its_way() {
    let (_forest, journal, [a]) = setup(["a"]);
    let mut updates: Vec<_> = (0..20).map(|_| counted(&a)).collect();
    let mut counts = Vec::new();
    for _ in 0..200 {
        updates.retain_mut(|update| match update.poll() {
            Poll::Ready(count) => {
                counts.push(count.expect("no update gives up"));
                false
            }
            Poll::Pending => true,
        });
        journal.accept(1);
    }
    counts.sort_unstable();
    assert_eq!(counts, (1..=20).collect::<Vec<u8>>());
}

#[test]
fn what_is_not_visible_refuses_nobody_yet() {
    for is_accepted in [true, false] {
        let (forest, journal, [a, b]) = setup(["a", "b"]);
        let mut stale = ByHand::new(put(&a, "x", "2").commit());
        let large = a.edit();
        large.subtree(large.root()).unwrap();
        let mut large = large;
        for _ in 0..100 {
            large.append(large.root(), Attributes::new()).unwrap();
        }
        let mut large = ByHand::new(large.commit());
        let mut first = ByHand::new(put(&a, "x", "1").commit());
        let mut delete = ByHand::new(forest.delete("b"));
        let mut create = ByHand::new(forest.create("c"));
        assert!(first.is_pending() && delete.is_pending() && create.is_pending());
        let mut again = ByHand::new(forest.create("c"));
        let mut late = ByHand::new(put(&b, "x", "1").commit());
        assert!(stale.is_pending() && again.is_pending() && late.is_pending());
        assert!(large.is_pending());
        assert_eq!(journal.waiting(), 3);
        if is_accepted {
            journal.accept(3);
            assert!(matches!(stale.ready(), Err(CommitError::Conflict(_))));
            assert!(matches!(large.ready(), Err(CommitError::Conflict(_))));
            assert_eq!(value_of(&a, "x").as_deref(), Some("1"));
            assert!(matches!(
                again.ready(),
                Err(CommitError::Name(NameError::Taken(_)))
            ));
            forest.get("c").unwrap();
            assert!(matches!(late.ready(), Err(CommitError::Deleted(_))));
        } else {
            journal.refuse(AppendError::Full);
            let behind = CommitError::Journal(AppendError::Behind);
            assert_eq!(stale.ready(), Err(behind.clone()));
            assert_eq!(large.ready(), Err(behind.clone()));
            assert_eq!(again.ready().err(), Some(behind.clone()));
            assert_eq!(late.ready(), Err(behind));
        }
    }
}

#[test]
fn no_id_is_given_to_two_commits() {
    let memory = MemoryJournal::by_hand();
    let journal = Hooks::of(memory.clone());
    let ids: Arc<Mutex<Vec<CommitId>>> = Arc::default();
    let seen = Arc::clone(&ids);
    journal.look(move |record| {
        seen.lock().unwrap().push(record.id);
        Ok(())
    });
    let forest = Forest::builder().journal(journal).build();
    let mut first = ByHand::new(forest.create("a"));
    assert!(first.is_pending());
    memory.refuse(AppendError::Full);
    assert!(first.ready().is_err());
    let mut second = ByHand::new(forest.create("b"));
    assert!(second.is_pending());
    let ids = ids.lock().unwrap();
    assert_eq!(ids.len(), 2);
    assert_ne!(
        ids[0], ids[1],
        "the journal is asked for commits by their ids"
    );
}

#[test]
fn an_old_commit_with_the_same_id_does_not_answer_for_a_new_one() {
    // The journal knows ids of former openings, and this forest does not.
    let journal = MemoryJournal::synced_by_hand();
    let before = Forest::builder().journal(journal.clone()).build();
    let tree = ByHand::new(before.create("a"));
    let mut tree = tree;
    assert!(tree.is_pending());
    journal.sync(Level::Durable);
    let tree = tree.ready().unwrap();
    let mut old = ByHand::new(put(&tree, "x", "1").commit().id(CommitId(7)));
    assert!(old.is_pending());
    let hooks = Hooks::of(journal.clone());
    let forest = Forest::builder()
        .journal(hooks.clone())
        .level(Level::Accepted)
        .build();
    let tree = forest.create("a").wait().unwrap();
    hooks.look(|_| Err(AppendError::Unknown));
    let answer = put(&tree, "x", "2").commit().id(CommitId(7)).wait();
    assert_eq!(answer, Err(CommitError::Unknown(CommitId(7))));
    assert_eq!(value_of(&tree, "x"), None);
}

#[test]
fn what_was_deleted_is_freed_though_the_journal_is_never_idle() {
    let (forest, journal, [a]) = setup(["a"]);
    let mut busy = ByHand::new(put(&a, "x", "0").commit());
    assert!(busy.is_pending());
    for _ in 0..3 {
        let step = |mut next: ByHand<()>| {
            assert!(next.is_pending());
            let mut busy = ByHand::new(put(&a, "x", "1").blind().commit());
            assert!(busy.is_pending());
            journal.accept(journal.waiting() - 1);
            next.ready();
            busy
        };
        let creation = forest.create("b");
        let mut last = vec![step(ByHand::new(
            async move { drop(creation.await.unwrap()) },
        ))];
        let tree = forest.get("b").unwrap();
        let mut edit = tree.edit();
        edit.put_erasable(edit.root(), "secret", "bytes").unwrap();
        let edit = edit.commit();
        last.push(step(ByHand::new(async move { _ = edit.await.unwrap() })));
        drop(tree);
        assert_eq!(forest.stats().blobs, 1);
        let delete = forest.delete("b");
        last.push(step(ByHand::new(async move { _ = delete.await.unwrap() })));
        assert_eq!(
            forest.stats().blobs,
            1,
            "the tree comes back if the journal fails"
        );
        // It is freed by the commit after the deletion is durable.
        journal.sync(Level::Durable);
        let next = put(&a, "x", "2").blind().commit();
        last.push(step(ByHand::new(async move { _ = next.await.unwrap() })));
        assert_eq!(
            forest.stats().blobs,
            0,
            "the tree is gone with its versions"
        );
    }
}

#[test]
fn a_tag_speaks_only_for_times_that_are_known() {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().keep(1).clock(clock.clone()).build();
    let tree = forest.create("a").wait().unwrap();
    let first = commit(&tree, "x", "1");
    tree.tag("first", first.version).wait().unwrap();
    let mut times = vec![first.time];
    for value in ["2", "3", "4"] {
        clock.advance(Duration::from_secs(1));
        times.push(commit(&tree, "x", value).time);
    }
    let at = |time| tree.at_time(time).wait().map(|root| root.version());
    assert_eq!(at(times[0]), Ok(first.version));
    assert!(matches!(at(times[1]), Err(VersionError::BeforeTime { .. })));
}

#[test]
fn a_journal_that_is_asked_for_its_mark_may_panic_or_ask_the_forest() {
    let hooks = Hooks::of(MemoryJournal::synced_by_hand());
    let forest = Forest::builder()
        .journal(hooks.clone())
        .level(Level::Accepted)
        .build();
    let tree = forest.create("a").wait().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, other) = (Arc::clone(&asked), forest.clone());
    let version = tree.view().version();
    hooks.when_asked(move || {
        count.fetch_add(1, Ordering::Relaxed);
        if count.load(Ordering::Relaxed) == 1 {
            let mut waits = ByHand::new(other.when_durable(version, Level::Durable));
            assert!(waits.is_pending());
            panic!("the journal is broken");
        }
    });
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for number in 0..600_u32 {
            let value = number.to_string();
            commit(&tree, "x", &value);
        }
        let _ = done.send(value_of(&tree, "x"));
    });
    let last = ended.recv_timeout(Duration::from_secs(120));
    assert_eq!(last.unwrap().as_deref(), Some("599"));
    assert!(asked.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_answer_that_wakes_who_asks_for_it_keeps_no_thread() {
    // As futures do that ask for a turn of their executor, which is the author's.
    let hooks = Hooks::default();
    let forest = Forest::builder().journal(hooks.clone()).build();
    let tree = forest.create("a").wait().unwrap();
    hooks.set_restless(10_000);
    let mut first = ByHand::new(put(&tree, "x", "1").commit());
    assert!(first.is_pending());
    assert!(
        hooks.restless() > 9_000,
        "it was asked {} times",
        10_000 - hooks.restless()
    );
    put(&tree, "y", "2").commit().wait().unwrap();
    first.ready().unwrap();
    assert_eq!(hooks.restless(), 0);
}
