//! The journals of the crate keep all rules of the suite, and the suite catches those that do not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hooks.rs"]
mod hooks;

use std::pin::Pin;
use std::time::SystemTime;

use hooks::Hooks;
use weald_forest::journal::conformance::{Subject, check};
use weald_forest::journal::{
    AppendError, Appended, Journal, Level, MemoryJournal, Position, Record,
};
use weald_forest::{CommitId, Version};

/// A journal in memory, with the means to play its medium.
struct InMemory(MemoryJournal);

impl Subject for InMemory {
    fn journal(&self) -> &dyn Journal {
        &self.0
    }

    fn settle(&self) {
        self.0.accept(usize::MAX);
    }

    fn sync(&self, level: Level) {
        self.0.sync(level);
    }

    fn fail(&self) -> bool {
        self.0.fail();
        true
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        pollster::block_on(future);
    }
}

#[test]
fn the_journal_in_memory_keeps_all_rules() {
    let journals: [fn() -> MemoryJournal; 4] = [
        MemoryJournal::new,
        MemoryJournal::by_hand,
        MemoryJournal::synced_by_hand,
        || MemoryJournal::by_hand().max_record(100_000),
    ];
    for make in journals {
        assert_eq!(check(&|| Box::new(InMemory(make()))), Ok(()));
    }
}

#[test]
fn records_behind_a_refused_one_are_told_why_nothing_is_taken() {
    let conflict = AppendError::Conflict {
        current: Position::default(),
    };
    for (refusal, behind) in [
        (AppendError::Full, AppendError::Behind),
        (conflict, AppendError::Behind),
        (AppendError::Fenced, AppendError::Fenced),
        (AppendError::Poisoned, AppendError::Poisoned),
    ] {
        let journal = MemoryJournal::by_hand();
        let answers = [1, 2, 3].map(|number| match journal.append(&empty(number, number)) {
            Ok(Appended::Sent(answer)) => answer,
            _ => panic!("it answers at once"),
        });
        journal.refuse(refusal);
        let due = [refusal, behind, behind].map(Err);
        assert_eq!(answers.map(pollster::block_on), due);
    }
}

/// The record of a version without changes.
fn empty(number: u64, id: u64) -> Record<'static> {
    Record {
        version: Version {
            incarnation: 1,
            number,
        },
        id: CommitId(id.into()),
        time: SystemTime::UNIX_EPOCH,
        digest: None,
        bytes: b"",
        changes: &[],
        blobs: &[],
        erases: None,
    }
}

/// A journal that does something wrong before each record.
struct Wrong(Hooks, MemoryJournal);

impl Subject for Wrong {
    fn journal(&self) -> &dyn Journal {
        &self.0
    }

    fn settle(&self) {}

    fn sync(&self, level: Level) {
        self.1.sync(level);
    }

    fn fail(&self) -> bool {
        false
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        pollster::block_on(future);
    }
}

fn broken(make: fn() -> MemoryJournal, wrong: fn(&MemoryJournal, u64)) -> &'static str {
    let broken = check(&|| {
        let journal = make();
        let (hooks, medium) = (Hooks::of(journal.clone()), journal.clone());
        hooks.look(move |record| {
            wrong(&medium, record.version.number);
            Ok(())
        });
        Box::new(Wrong(hooks, journal))
    });
    broken.unwrap_err().rule
}

#[test]
fn the_suite_catches_a_journal_that_breaks_a_rule() {
    let twice: fn(&MemoryJournal, u64) = |journal, number| {
        journal.append(&empty(number, 1000)).map(drop).unwrap();
    };
    assert!(broken(MemoryJournal::new, twice).contains("keep all records"));
    let full = |journal: &MemoryJournal, number| journal.set_room((number == 20).then_some(0));
    assert!(broken(MemoryJournal::new, full).contains("keep all records"));
    let unreachable = |journal: &MemoryJournal, _| journal.set_reachable(false);
    assert!(broken(MemoryJournal::new, unreachable).contains("what became of a commit"));
}
