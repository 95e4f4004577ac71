//! Updates by units that share a thread: each is marked on its own, and a unit that commits inside its update is
//! refused.
//!
//! The test runtime has one thread, so all units share it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weald::Runtime;
use weald::forest::{Attributes, CommitError, Edit, EditError, Forest, TreeHandle, UpdateError};
use weald::process::{self, Inbox};
use weald::sync::{Wait, oneshot};

const SEEDS: std::ops::Range<u64> = 0..20;

fn put(edit: &mut Edit, value: &str) -> Result<(), EditError> {
    edit.put_attribute(edit.root(), "k", value)
}

fn value(tree: &TreeHandle) -> Option<String> {
    tree.view().tree().root().get_str("k").map(str::to_owned)
}

#[test]
fn two_processes_that_wait_inside_an_update_are_not_mistaken_for_each_other() {
    for seed in SEEDS {
        Runtime::test(seed).block_on(async {
            let forest = Forest::new();
            let [one, other] = [forest.create("one"), forest.create("other")];
            let (one, other) = (one.await.unwrap(), other.await.unwrap());
            let (tell_other, mut one_is_inside) = oneshot::channel();
            let (tell_one, other_is_inside) = oneshot::channel();

            let tree = one.clone();
            let mut ends = Some((tell_other, other_is_inside));
            let first = process::spawn(move |_: Inbox<()>| async move {
                let updated = tree.update(|edit| {
                    let (tell, mut inside) =
                        ends.take().expect("no other unit commits to this tree");
                    tell.send(()).unwrap();
                    inside.receive().wait().unwrap();
                    put(edit, "first")
                });
                updated.await.map(|_| ())
            });
            let tree = other.clone();
            let mut tell = Some(tell_one);
            let second = process::spawn(move |_: Inbox<()>| async move {
                one_is_inside.receive().await.unwrap();
                // The first process waits in its closure, on this thread.
                tree.update(|edit| put(edit, "before")).await.unwrap();
                let updated = tree.update(|edit| {
                    let tell = tell.take().expect("no other unit commits to this tree");
                    tell.send(()).unwrap();
                    put(edit, "second")
                });
                updated.await.map(|_| ())
            });
            assert_eq!(first.unwrap().await.unwrap(), Ok(()));
            assert_eq!(second.unwrap().await.unwrap(), Ok(()));
            let values = [value(&one), value(&other)];
            assert_eq!(values, [Some("first".into()), Some("second".into())]);
        });
    }
}

#[test]
fn a_process_that_commits_inside_its_update_is_refused() {
    for seed in SEEDS {
        Runtime::test(seed).block_on(async {
            let forest = Forest::new();
            let tree = forest.create("one").await.unwrap();
            let updated = tree.clone();
            let process = process::spawn(move |_: Inbox<()>| async move {
                let inner = updated.update(|edit| {
                    // The process waits before it commits, and others run on its thread.
                    weald::sleep(std::time::Duration::from_millis(10)).wait();
                    let refused = updated.update(|inner| put(inner, "inner")).wait();
                    put(edit, "outer")?;
                    Ok::<_, EditError>(refused.unwrap_err())
                });
                inner.await.unwrap().0
            });
            let (ended, mut others) = (process.unwrap(), 0);
            while value(&tree).is_none() {
                forest.create(&others.to_string()).await.unwrap();
                others += 1;
                weald::sleep(std::time::Duration::from_millis(1)).await;
            }
            let refused = ended.await.unwrap();
            assert_eq!(refused, UpdateError::Commit(CommitError::Reentrant));
            assert_eq!(value(&tree).as_deref(), Some("outer"));
            assert!(others > 1, "others committed while it waited inside");
        });
    }
}

#[test]
fn a_unit_that_commits_on_and_on_lets_others_have_their_turn() {
    Runtime::test(7).block_on(async {
        let forest = Forest::new();
        let tree = forest.create("busy").await.unwrap();
        let turns = Arc::new(AtomicU32::new(0));
        let writer = {
            let (tree, turns) = (tree.clone(), Arc::clone(&turns));
            weald::spawn(async move {
                for _ in 0..1_000 {
                    let mut edit = tree.edit();
                    let root = edit.root();
                    edit.append(root, Attributes::new()).unwrap();
                    edit.commit().await.unwrap();
                }
                turns.load(Ordering::Relaxed)
            })
        };
        let other = weald::spawn(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                weald::yield_now().await;
            }
        });
        assert!(writer.await.unwrap() > 3, "it had all turns");
        other.cancel();
    });
}
