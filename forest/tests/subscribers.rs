//! A subscriber of `tracing` that blocks holds no commit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use weald_forest::Forest;

/// Blocks for ever at each event of a forest.
struct Blocked(Arc<AtomicUsize>);

impl Subscriber for Blocked {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("weald_forest")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        loop {
            thread::park();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs `work` on another thread.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn commits_go_on_while_a_subscriber_is_told_of_a_lease_that_was_revoked() {
    let events = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::set_global_default(Blocked(Arc::clone(&events))).unwrap();
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let mut runs = 0;
    let update = tree.update(|edit| {
        runs += 1;
        if runs <= 3 {
            elsewhere(|| commit(&tree, "n", &runs.to_string()));
        } else if runs == 4 {
            // It holds the lease, for too long.
            let mut waits = ByHand::new(put(&tree, "n", "4").commit());
            elsewhere(|| assert!(waits.is_pending()));
            clock.advance(Duration::from_secs(60));
            elsewhere(|| waits.ready().unwrap());
        }
        edit.attribute(edit.root(), "n")?;
        edit.put_attribute(edit.root(), "n", runs.to_string())
    });
    update.wait().unwrap();
    assert_eq!(forest.stats().leases_revoked, 1);
    assert_eq!(value_of(&tree, "n").unwrap(), "5");
    while events.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    commit(&tree, "n", "6");
}
