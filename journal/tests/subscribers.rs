//! A subscriber of `tracing` that panics or blocks stops no journal: the units that wait get their
//! answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pollster::block_on;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use weald_forest::{CommitError, Forest};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

/// Panics at the first event, and blocks for ever at each later one.
struct Hostile(Arc<AtomicUsize>);

impl Subscriber for Hostile {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if !event.metadata().target().starts_with("weald_journal") {
            return;
        }
        assert!(
            self.0.fetch_add(1, Ordering::Relaxed) > 0,
            "a subscriber without a disk to write to"
        );
        loop {
            thread::park();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_commit_is_answered_whatever_the_subscriber_does_with_the_failure_of_its_journal() {
    let events = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::set_global_default(Hostile(Arc::clone(&events))).unwrap();
    for round in 1..=3 {
        let disk = SimulatedDisk::new();
        let journal = DiskJournal::open_on(disk.clone(), Settings::new()).unwrap();
        let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
        let tree = block_on(forest.create("tree")).unwrap();
        disk.fail_next_sync();
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_attribute(root, "number", "1").unwrap();
        let answer = block_on(edit.commit());
        assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
        while events.load(Ordering::Relaxed) < round {
            thread::yield_now();
        }
    }
}
