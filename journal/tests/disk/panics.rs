//! A medium that panics in calls whose failure ends nothing, and in those that only serve a report.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Mutex;

use pollster::block_on;
use weald_forest::journal::{AppendError, Appended, Durability, Journal, Level, Position};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

use crate::ahead::begin;
use crate::hooked::{Hook, Hooked, Hooks, set};
use crate::records::{all, append, flush, is_durable, must_append, open, small};

#[test]
fn a_file_whose_removal_panics_stays_and_the_journal_goes_on() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    let _room = journal.when_room(9_000, &[], &[]).unwrap();
    // The file has its name then, and is to be removed.
    set(
        &hooks.sync_names,
        Some(|| Err(io::Error::from_raw_os_error(28))),
    );
    set(&hooks.remove, Some(|| panic!("by a test")));
    set(&hooks.name, Some(|| panic!("by a test")));
    while journal.work(Work::Prepare) {}
    // Each is refused, and nobody waits for ever.
    let (number, refused) = (2..)
        .find_map(|number| match append(&journal, number, 900) {
            Ok(Appended::Accepted(_)) => None,
            Ok(Appended::Sent(answer)) => {
                assert!(journal.work(Work::Prepare));
                Some((number, pollster::block_on(answer)))
            }
            Err(error) => panic!("{error}"),
        })
        .unwrap();
    assert_eq!(refused, Err(AppendError::Full));
    set(&hooks.sync_names, None);
    set(&hooks.remove, None);
    set(&hooks.name, None);
    must_append(&journal, number, 5_000);
}

thread_local! {
    static IS_FULL: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn a_panic_while_a_full_disk_has_what_was_written_ahead_removed_ends_the_journal() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    let mut large = begin(&disk, &journal, 3);
    hooks.on_write(|| {
        IS_FULL.set(true);
        Err(io::Error::from_raw_os_error(28))
    });
    // To remove it, the journal must be the newest writer.
    set(
        &hooks.read_lock,
        Some(|| match IS_FULL.get() {
            true => panic!("by a test"),
            false => Ok(()),
        }),
    );
    assert!(journal.work(Work::Prepare));
    assert!(large.is_let_in());
    assert_eq!(append(&journal, 1, 10).err(), Some(AppendError::Poisoned));
    set(&hooks.read_lock, None);
}

#[test]
fn a_panic_within_the_report_of_a_failure_ends_no_thread() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let old = DiskJournal::open_on(medium, small()).unwrap();
    disk.break_lock();
    let new = open(&disk).unwrap();
    hooks.on_open(Some(|| panic!("by a test")));
    set(&hooks.name, Some(|| panic!("by a test")));
    assert!(old.work(Work::Prepare));
    assert_eq!(old.refusal(), AppendError::Fenced);
    hooks.on_open(None);
    set(&hooks.name, None);
    drop((old, new));
}

/// A call of the medium.
type Part = fn(&Hooks) -> &Mutex<Option<Hook>>;

#[test]
fn a_medium_that_panics_while_it_is_closed_keeps_nobody_waiting_and_no_lock() {
    let panics: Hook = || panic!("by a test");
    let parts: [Part; 3] = [
        |hooks| &hooks.read_lock,
        |hooks| &hooks.write_lock,
        // Of each file and of the lock.
        |hooks| &hooks.drop,
    ];
    for part in parts {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let medium = Hooked(disk.clone(), hooks.clone());
        let journal = DiskJournal::open_on(medium, small()).unwrap();
        let (taken, waiting) = (1..)
            .find_map(|number| match append(&journal, number, 500) {
                Ok(Appended::Accepted(_)) => None,
                Ok(Appended::Sent(answer)) => Some((number - 1, answer)),
                Err(error) => panic!("{error}"),
            })
            .unwrap();
        while journal.work(Work::Write) || journal.work(Work::Sync) {}
        set(part(&hooks), Some(panics));
        journal.close();
        set(part(&hooks), None);
        assert_eq!(block_on(waiting), Err(AppendError::Poisoned));
        // The lock is free, although there is a handle of the journal yet.
        let opened = open(&disk).unwrap();
        assert_eq!(all(&opened).len() as u64, taken);
        drop(journal);
    }
}

thread_local! {
    /// A journal, what it syncs, and how many of its files were dropped after that was durable.
    static SYNCING: RefCell<Option<(DiskJournal, Position, usize)>> = const { RefCell::new(None) };
}

#[test]
fn what_was_synced_is_durable_although_the_files_of_full_segments_panic_when_they_are_dropped() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    let mut last = Position::default();
    for number in 1..10 {
        last = must_append(&journal, number, 900);
    }
    while journal.work(Work::Write) {}
    set(
        &hooks.drop,
        Some(|| {
            SYNCING.with_borrow_mut(|syncing| {
                let (journal, last, dropped) = syncing.as_mut().unwrap();
                *dropped += usize::from(is_durable(journal, *last));
            });
            panic!("by a test")
        }),
    );
    SYNCING.set(Some((journal.clone(), last, 0)));
    assert!(journal.work(Work::Sync));
    set(&hooks.drop, None);
    let (_, _, dropped) = SYNCING.take().unwrap();
    assert!(is_durable(&journal, last));
    assert!(
        dropped > 1,
        "one panic kept the others, or they were dropped before"
    );
}

/// An error that panics when it is shown.
#[derive(Debug)]
struct Unprintable;

impl Display for Unprintable {
    fn fmt(&self, _: &mut Formatter<'_>) -> fmt::Result {
        panic!("by a test")
    }
}

impl std::error::Error for Unprintable {}

#[test]
fn an_error_of_the_medium_that_panics_when_it_is_shown_ends_no_thread() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    let full: Hook = || Err(io::Error::new(io::ErrorKind::StorageFull, Unprintable));
    let refusing: [Part; 2] = [|hooks| &hooks.create, |hooks| &hooks.sync_names];
    let mut number = 1;
    for refuse in refusing {
        set(refuse(&hooks), Some(full));
        let refused = loop {
            match append(&journal, number, 900) {
                Ok(Appended::Accepted(_)) => number += 1,
                Ok(Appended::Sent(answer)) => {
                    while journal.work(Work::Prepare) {}
                    break block_on(answer);
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(refused, Err(AppendError::Full));
        set(refuse(&hooks), None);
        flush(&journal);
    }
    let position = must_append(&journal, number, 100);
    hooks.on_write(|| Err(io::Error::other(Unprintable)));
    assert!(journal.work(Work::Write));
    let waits = journal.when_reached(position, Level::Durable);
    assert_eq!(block_on(waits), Durability::Unknown);
}
