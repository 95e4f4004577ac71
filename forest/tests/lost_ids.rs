//! Numbers and ids that were visible and are lost are never given out again, however many these
//! are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::task::Poll;
use std::time::SystemTime;

use tools::{ByHand, Wait, put};
use weald_forest::journal::{Appended, Journal, Record};
use weald_forest::{
    Attributes, Commit, CommitError, CommitId, Committed, Forest, Level, MemoryJournal, NodeId,
    TreeHandle, Version,
};

/// How many ids an opening leaves out.
const LOST: u64 = 1 << 20;

fn opened(journal: &MemoryJournal) -> Forest {
    let builder = Forest::builder().journal(journal.clone());
    let mut opening = ByHand::new(builder.level(Level::Accepted).recover());
    if let Poll::Ready(forest) = opening.poll() {
        return forest.unwrap();
    }
    journal.sync(Level::Durable); // Its own record.
    opening.ready().unwrap()
}

fn with_tree(journal: &MemoryJournal, name: &str) -> TreeHandle {
    let tree = ByHand::new(opened(journal).create(name)).ready().unwrap();
    journal.sync(Level::Durable);
    tree
}

/// Adds a node whose id is so much greater than the last one, as if other edits had taken those between.
fn append(tree: &TreeHandle, more: u64) -> (NodeId, Commit) {
    tree.view().tree().ids().skip(more - 1);
    let mut edit = tree.edit();
    let node = edit.append(edit.root(), Attributes::new()).unwrap();
    (node, edit.commit())
}

#[test]
fn a_commit_that_brings_more_ids_than_may_be_lost_is_shown_when_it_is_durable() {
    let journal = MemoryJournal::synced_by_hand();
    let a = with_tree(&journal, "a");
    let durable = journal.copy();
    let (node, commit) = append(&a, LOST + 100);
    let mut commit = ByHand::new(commit);
    assert!(commit.is_pending());
    // Commits behind it wait, too.
    let mut behind = ByHand::new(put(&a, "x", "1").commit());
    assert!(behind.is_pending());
    assert_eq!(a.view().tree().len(), 1);
    assert!(a.view().tree().node(node).is_none());

    // It is lost. Nobody has seen its id.
    let after = opened(&durable).get("a").unwrap();
    assert_eq!(after.view().tree().len(), 1);

    journal.sync(Level::Durable);
    let (first, second) = (commit.ready().unwrap(), behind.ready().unwrap());
    assert_eq!(first.version.number + 1, second.version.number);
    assert!(a.view().tree().node(node).is_some());
    let (later, commit) = append(&a, 1);
    ByHand::new(commit).ready().unwrap();
    let (next, _) = append(&opened(&journal.copy()).get("a").unwrap(), 1);
    assert!(next > later, "{next} after {later}");
}

#[test]
fn ids_that_were_visible_and_lost_are_not_given_out_again() {
    let journal = MemoryJournal::synced_by_hand();
    let a = with_tree(&journal, "a");
    let mut durable = journal.copy();
    let mut greatest = a.view().tree().root().id();
    let mut waits = 0;
    for step in 0..60 {
        let (node, commit) = append(&a, 100_000);
        let mut commit = ByHand::new(commit);
        if commit.is_pending() {
            assert!(a.view().tree().node(node).is_none());
            waits += 1;
            journal.sync(Level::Durable);
            durable = journal.copy();
            commit.ready().unwrap();
        } else if step % 17 == 0 {
            journal.sync(Level::Durable);
            durable = journal.copy();
        }
        greatest = greatest.max(node);
        // Power is lost here.
        let after = opened(&durable.copy()).get("a").unwrap();
        let (next, _) = append(&after, 1);
        assert!(
            next > greatest,
            "{next} was given out before, like {greatest}"
        );
    }
    assert!(waits > 2, "{waits}");
}

#[test]
fn an_opening_begins_behind_the_ids_of_all_versions() {
    let journal = MemoryJournal::synced_by_hand();
    let a = with_tree(&journal, "a");
    let mut commit = ByHand::new(append(&a, 700_000).1);
    assert!(commit.is_pending());
    journal.sync(Level::Durable);
    commit.ready().unwrap();
    let durable = journal.copy();
    let (lost, commit) = append(&a, 400_000);
    ByHand::new(commit).ready().unwrap();
    let (next, _) = append(&opened(&durable).get("a").unwrap(), 1);
    assert!(next > lost, "{next} after {lost}");
}

/// The ids that an opening leaves out are in its checkpoint. The next opening leaves out its own only.
#[test]
fn openings_with_checkpoints_leave_out_no_more_ids_than_those_without() {
    let mut last = Vec::new();
    for has_checkpoints in [false, true] {
        let journal = MemoryJournal::synced_by_hand();
        with_tree(&journal, "a");
        for _ in 0..40 {
            let forest = opened(&journal);
            if has_checkpoints {
                let checkpoint = ByHand::new(forest.checkpoint()).ready().unwrap();
                journal.put_checkpoint(checkpoint).wait().unwrap();
            }
        }
        last.push(append(&opened(&journal).get("a").unwrap(), 1).0);
    }
    assert_eq!(last[0], last[1]);
    assert!(
        last[0].get() < 42 * LOST && last[0].get() > 41 * LOST,
        "{last:?}"
    );
}

#[test]
fn a_commit_that_waits_is_unknown_when_the_journal_fails() {
    let journal = MemoryJournal::synced_by_hand();
    let a = with_tree(&journal, "a");
    let id = CommitId(7);
    let mut commit: ByHand<Result<Committed, CommitError>> = ByHand::new(append(&a, LOST).1.id(id));
    assert!(commit.is_pending());
    journal.fail();
    assert_eq!(commit.ready(), Err(CommitError::Unknown(id)));
    assert_eq!(a.view().tree().len(), 1);
}

/// The next opening would not know of this one, and give the same out.
#[test]
fn an_opening_that_the_journal_did_not_note_shows_nothing_before_it_is_durable() {
    let journal = MemoryJournal::synced_by_hand();
    with_tree(&journal, "a");
    journal.set_room(Some(0));
    let a = opened(&journal).get("a").unwrap();
    journal.set_room(None);
    let mut first = ByHand::new(append(&a, 1).1);
    assert!(first.is_pending());
    assert_eq!(a.view().tree().len(), 1);
    journal.sync(Level::Durable);
    first.ready().unwrap();
    let durable = journal.copy();
    let (lost, commit) = append(&a, 1);
    ByHand::new(commit).ready().unwrap();
    let (next, _) = append(&opened(&durable).get("a").unwrap(), 1);
    assert!(next > lost, "{next} after {lost}");
}

#[test]
fn openings_that_the_journal_did_not_note_are_sparing_with_numbers() {
    let journal = MemoryJournal::synced_by_hand();
    let mut last = with_tree(&journal, "a").view().version().number;
    for _ in 0..8 {
        journal.set_room(Some(0));
        let a = opened(&journal).get("a").unwrap();
        journal.set_room(None);
        let mut commit = ByHand::new(append(&a, 1).1);
        assert!(commit.is_pending());
        journal.sync(Level::Durable);
        let number = commit.ready().unwrap().version.number;
        assert!(
            number > last && number - last < 1 << 37,
            "{number} - {last}"
        );
        last = number;
    }
}

#[test]
fn an_opening_without_numbers_says_so_and_gives_none_out_twice() {
    for last in [u64::MAX, u64::MAX - LOST, u64::MAX / 2] {
        let journal = MemoryJournal::new();
        let version = Version {
            incarnation: 1,
            number: last,
        };
        let taken = journal.append(&Record {
            version,
            id: CommitId(1),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: &[],
            changes: &[],
            blobs: &[],
            erases: None,
        });
        assert!(matches!(taken, Ok(Appended::Accepted(_))));
        let opened = ByHand::new(Forest::builder().journal(journal).recover()).ready();
        let error = opened.expect_err("there is no number left").to_string();
        assert!(error.contains("numbers of versions"), "{error}");
    }
}
