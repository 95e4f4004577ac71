//! `update`: lost races, write leases in the order of the requests, leases that are revoked, panics, reentrancy.
//! Time is set by hand and other threads are joined, so nothing waits for a clock.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use weald_forest::{Clock, CommitError, Edit, EditError, Forest, TreeHandle, UpdateError};

fn forest() -> (Arc<ManualClock>, TreeHandle) {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    (clock, forest.create("t").wait().unwrap())
}

/// Runs `work` on another thread.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn add_one(edit: &mut Edit) -> Result<u32, EditError> {
    let root = edit.root();
    let count = edit
        .attribute(root, "n")?
        .map_or(0, |n| str::from_utf8(n).unwrap().parse().unwrap());
    edit.put_attribute(root, "n", (count + 1).to_string())?;
    Ok(count + 1)
}

#[test]
fn an_update_that_loses_races_runs_again_and_then_takes_the_lease() {
    let (_, tree) = forest();
    let (mut runs, mut waiting) = (0, None);
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &(10 * runs).to_string()));
        } else {
            // It holds the lease: others wait.
            let mut other = ByHand::new(put(&tree, "other", "v").commit());
            waiting = elsewhere(move || other.is_pending().then_some(other));
        }
        add_one(edit)
    });
    let (count, committed) = update.wait().unwrap();
    assert_eq!((count, runs), (31, 4));
    let after = waiting
        .expect("a commit waits while an update holds the lease")
        .ready()
        .unwrap();
    assert!(
        after.version > committed.version,
        "a commit that waited comes after the lease"
    );
    assert_eq!(
        (
            value_of(&tree, "n").unwrap(),
            value_of(&tree, "other").unwrap()
        ),
        ("31".into(), "v".into())
    );
}

/// An update that loses three races and then this many leases, each twice as long as the last.
fn after_lost_leases(leases: u32) -> (Result<(), UpdateError<UpdateTrouble>>, TreeHandle, Forest) {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let mut runs = 0;
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        } else if runs <= 3 + leases {
            let limit = Duration::from_millis(10) * (1 << (runs - 4));
            let value = format!("other {}", runs - 3);
            let mut other = ByHand::new(put(&tree, "n", &value).commit());
            elsewhere(|| assert!(other.is_pending()));
            clock.advance(limit - Duration::from_millis(1));
            elsewhere(|| assert!(other.is_pending()));
            clock.advance(Duration::from_millis(1));
            elsewhere(|| other.ready().unwrap());
        }
        edit.attribute(edit.root(), "n").map_err(UpdateTrouble)?;
        edit.put_attribute(edit.root(), "n", "mine")
            .map_err(UpdateTrouble)
    });
    let outcome = update.wait().map(|_| ());
    (outcome, tree, forest)
}

#[test]
fn a_lease_that_lasts_too_long_is_revoked_and_counted_and_the_next_one_is_longer() {
    for leases in [1, 2, 7] {
        let (outcome, tree, forest) = after_lost_leases(leases);
        assert_eq!(outcome, Ok(()));
        assert_eq!(value_of(&tree, "n").unwrap(), "mine");
        assert_eq!(forest.stats().leases_revoked, u64::from(leases));
    }
}

#[test]
fn an_update_that_loses_lease_after_lease_gives_up() {
    let (outcome, tree, forest) = after_lost_leases(8);
    assert_eq!(outcome, Err(UpdateError::Revoked));
    assert_eq!(value_of(&tree, "n").unwrap(), "other 8");
    assert_eq!(forest.stats().leases_revoked, 8);
    // The lease is free.
    commit(&tree, "n", "free");
}

#[derive(Debug, PartialEq)]
struct UpdateTrouble(EditError);

#[test]
fn a_long_lease_is_not_revoked_while_nobody_waits() {
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let mut runs = 0;
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        }
        clock.advance(Duration::from_secs(1));
        add_one(edit)
    });
    assert_eq!(update.wait().unwrap().0, 4);
    assert_eq!(forest.stats().leases_revoked, 0);
}

#[test]
fn waiting_commits_are_served_in_the_order_of_their_arrival() {
    let (_, tree) = forest();
    let order = std::sync::Mutex::new(Vec::new());
    let (mut runs, mut others) = (0, Vec::new());
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        } else {
            for name in ["a", "b", "c"] {
                let mut other = ByHand::new(put(&tree, name, name).commit());
                elsewhere(|| assert!(other.is_pending()));
                others.push((name, other));
            }
        }
        add_one(edit)
    });
    update.wait().unwrap();
    for (name, other) in &mut others {
        order
            .lock()
            .unwrap()
            .push((other.ready().unwrap().version, *name));
    }
    let order = order.into_inner().unwrap();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_panic_leaves_no_trace_even_under_the_lease() {
    let (_, tree) = forest();
    for losses in [0, 3] {
        let before = tree.versions().len();
        let mut runs = 0;
        let update = tree.update(|edit| -> Result<(), EditError> {
            edit.put_attribute(edit.root(), "n", "never")?;
            runs += 1;
            if runs <= losses {
                elsewhere(|| commit(&tree, "n", &runs.to_string()));
                return Ok(());
            }
            panic!("of the closure");
        });
        assert!(catch_unwind(AssertUnwindSafe(|| update.wait())).is_err());
        assert_eq!(tree.versions().len(), before + losses);
        assert_ne!(value_of(&tree, "n").as_deref(), Some("never"));
        // The lease is free, and this thread may commit.
        commit(&tree, "n", "after");
    }
}

#[test]
fn a_closure_that_gives_up_changes_nothing() {
    let (_, tree) = forest();
    let given_up = tree.update(|edit| {
        edit.put_attribute(edit.root(), "n", "never").unwrap();
        Err::<(), _>("enough")
    });
    assert_eq!(given_up.wait().unwrap_err(), UpdateError::GivenUp("enough"));
    assert_eq!(value_of(&tree, "n"), None);
}

#[test]
fn a_closure_may_not_commit_to_its_forest() {
    let (_, tree) = forest();
    let other_forest = Forest::new();
    let update = tree.update(|edit| {
        assert_eq!(
            put(&tree, "n", "v").commit().wait(),
            Err(CommitError::Reentrant)
        );
        let inner = tree.update(add_one).wait();
        assert_eq!(
            inner.unwrap_err(),
            UpdateError::Commit(CommitError::Reentrant)
        );
        let version = edit.base().version();
        assert_eq!(tree.tag("x", version).wait(), Err(CommitError::Reentrant));
        other_forest.create("x").wait().unwrap();
        add_one(edit)
    });
    assert_eq!(update.wait().unwrap().0, 1);
    commit(&tree, "n", "outside");
}

#[test]
fn an_update_that_is_dropped_while_it_waits_for_the_lease_lets_others_continue() {
    let (_, tree) = forest();
    let (mut runs, mut others) = (0, Vec::new());
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        } else {
            let mut other = ByHand::new(tree.update(add_one));
            elsewhere(|| assert!(other.is_pending()));
            drop(other);
            let mut last = ByHand::new(put(&tree, "last", "v").commit());
            elsewhere(|| assert!(last.is_pending()));
            others.push(last);
        }
        add_one(edit)
    });
    update.wait().unwrap();
    others.pop().unwrap().ready().unwrap();
    assert_eq!(value_of(&tree, "n").unwrap(), "4");
}

#[test]
fn many_updates_on_many_threads_all_count() {
    let (_, tree) = forest();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| _ = tree.update(add_one).wait().unwrap()));
        }
    });
    assert_eq!(value_of(&tree, "n").unwrap(), "800");
}

/// A clock that has only the wall-clock time.
struct Broken;

impl Clock for Broken {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn uptime(&self) -> Duration {
        panic!("no uptime")
    }

    fn wake_at(&self, _: Duration, _: Waker) {
        panic!("no alarm")
    }
}

#[test]
fn a_clock_that_panics_loses_no_request() {
    let forest = Forest::builder().clock(Arc::new(Broken)).build();
    let tree = forest.create("t").wait().unwrap();
    let (mut runs, mut waiting) = (0, None);
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        } else {
            let mut other = ByHand::new(put(&tree, "other", "v").commit());
            waiting = elsewhere(move || other.is_pending().then_some(other));
        }
        add_one(edit)
    });
    assert_eq!(update.wait().unwrap().0, 4);
    waiting
        .expect("a commit waits while an update holds the lease")
        .ready()
        .unwrap();
    assert_eq!(value_of(&tree, "other").as_deref(), Some("v"));
}

#[test]
fn units_that_share_a_thread_are_distinguished() {
    let running = Arc::new(AtomicU64::new(1));
    let asked = Arc::clone(&running);
    let forest = Forest::builder()
        .running(move || Some(asked.load(Ordering::SeqCst)))
        .build();
    let tree = forest.create("t").wait().unwrap();
    let other = forest.create("o").wait().unwrap();
    let update = tree.update(|edit| {
        // Another unit runs while the closure waits, then the closure resumes.
        running.store(2, Ordering::SeqCst);
        put(&other, "k", "v").commit().wait().unwrap();
        running.store(1, Ordering::SeqCst);
        let own = put(&other, "k", "w").commit().wait();
        assert_eq!(own, Err(CommitError::Reentrant));
        // Another unit may be running where the closure ends.
        running.store(2, Ordering::SeqCst);
        add_one(edit)
    });
    update.wait().unwrap();
    assert_eq!(value_of(&other, "k").as_deref(), Some("v"));
    running.store(1, Ordering::SeqCst);
    commit(&tree, "k", "after");
}
