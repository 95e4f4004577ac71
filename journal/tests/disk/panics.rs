//! A medium that panics in calls whose failure ends nothing, and in those that only serve a report.

use std::cell::Cell;
use std::io;

use weald_forest::journal::{AppendError, Appended, Journal};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

use crate::ahead::begin;
use crate::hooked::{Hooked, Hooks, set};
use crate::records::{append, flush, must_append, open, small};

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
