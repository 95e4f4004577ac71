//! A medium that panics in calls whose failure ends nothing, and in those that only serve a report.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pollster::block_on;
use weald_forest::journal::{AppendError, Appended, Durability, Journal, Level, Position, Record};
use weald_forest::{Attributes, Forest, TreeHandle};
use weald_journal::{DiskForest, DiskJournal, Medium, Settings, SimulatedDisk, Work};

use crate::ahead::begin;
use crate::erasing::{self, blob};
use crate::hooked::{Hook, Hooked, Hooks, set};
use crate::records::{
    all, append, flush, is_durable, must_append, open, put_checkpoint, small, with,
};

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

/// The spare key file is lost then, and erasing needs one.
#[test]
fn after_a_checkpoint_whose_keys_panic_no_blob_is_taken_before_there_is_room_for_its_key() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    let at = erasing::append(&journal, 1, (&[blob(1, 30)], None)).unwrap();
    flush(&journal);
    set(&hooks.write, Some(|| panic!("by a test")));
    let refused = put_checkpoint(&journal, at, &[b"all"]).unwrap_err();
    assert!(refused.to_string().contains("panicked"), "{refused}");
    set(&hooks.write, None);
    let blobs = &[blob(2, 30)];
    let sent = with(2, 40, |record| journal.append(&Record { blobs, ..*record }));
    let Ok(Appended::Sent(answer)) = sent else {
        panic!("there is no room for its key");
    };
    flush(&journal);
    block_on(answer).unwrap();
    put_checkpoint(&journal, at, &[b"all"]).unwrap();
    drop(journal);
    let journal = open(&disk).unwrap();
    let is_there = |node| erasing::read(&journal, node).is_some();
    assert_eq!([1, 2].map(is_there), [true, true]);
}

/// Held by the tests of the thread that puts checkpoints.
static ALONE: Mutex<()> = Mutex::new(());

/// Tells that the thread ends.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        HAS_ENDED.store(true, Ordering::SeqCst);
    }
}

thread_local! {
    static ENDS: Ends = const { Ends };
}

/// Whether the thread that puts checkpoints has ended.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// How often the medium has panicked on that thread.
static PANICS: AtomicU32 = AtomicU32::new(0);

fn panics() -> u32 {
    PANICS.load(Ordering::SeqCst)
}

/// Panics on the thread that puts checkpoints.
const PANIC_THERE: Hook = || {
    if thread::current().name() == Some("journal-checkpoints") {
        ENDS.with(|_| {});
        PANICS.fetch_add(1, Ordering::SeqCst);
        panic!("by a test");
    }
    Ok(())
};

/// How much is committed from one checkpoint to the next, as long as they are short.
const BETWEEN: u32 = 4 << 10;

/// Opens a forest whose history is at most this long.
fn forest(medium: impl Medium, history: u64) -> DiskForest {
    HAS_ENDED.store(false, Ordering::SeqCst);
    let settings = Settings::new()
        .segment(4 << 10)
        .checkpoint_after(Some(BETWEEN.into()))
        .history_bytes(history);
    let journal = DiskJournal::open_on(medium, settings).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(3), journal)).unwrap()
}

/// Commits until something is so; returns how often.
fn commit_until(tree: &TreeHandle, is_so: impl Fn() -> bool) -> u32 {
    let mut commits = 0;
    while !is_so() {
        assert!(!HAS_ENDED.load(Ordering::SeqCst), "the thread has ended");
        let mut edit = tree.edit();
        let text = "x".repeat(200);
        let node = edit.append(edit.root(), Attributes::new().with("text", &text));
        edit.delete(node.unwrap()).unwrap();
        block_on(edit.commit()).unwrap();
        commits += 1;
    }
    commits
}

/// The files whose names end so, in the order of their positions.
fn files(disk: &SimulatedDisk, end: &str) -> Vec<String> {
    let mut names = disk.names();
    names.retain(|name| name.ends_with(end));
    names.sort_unstable();
    names
}

#[test]
fn checkpoints_are_put_and_history_is_removed_after_the_medium_has_panicked_there() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let forest = forest(Hooked(disk.clone(), hooks.clone()), 40 << 10);
    let tree = block_on(forest.create("t")).unwrap();
    set(&hooks.create, Some(PANIC_THERE));
    let before = panics();
    let commits = commit_until(&tree, || panics() >= before + 10);
    // Each commit has less than 700 bytes.
    assert!(commits * 700 > 10 * BETWEEN, "it was tried again at once");
    assert!(files(&disk, ".checkpoint").is_empty());
    // A trim begins with the oldest files.
    let first = files(&disk, ".segment").remove(0);
    let is_there = || files(&disk, ".segment").contains(&first);
    set(&hooks.remove, Some(PANIC_THERE));
    // The report names the medium.
    set(&hooks.name, Some(PANIC_THERE));
    set(&hooks.create, None);
    commit_until(&tree, || !files(&disk, ".checkpoint").is_empty());
    let before = panics();
    commit_until(&tree, || panics() >= before + 4);
    assert!(is_there());
    set(&hooks.remove, None);
    commit_until(&tree, || !is_there());
}

#[test]
fn history_is_removed_although_the_report_of_a_damaged_checkpoint_panics() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let whole = forest(disk.clone(), u64::MAX);
    let tree = block_on(whole.create("t")).unwrap();
    commit_until(&tree, || files(&disk, ".checkpoint").len() >= 4);
    drop((tree, whole));
    let mut old = files(&disk, ".checkpoint");
    old.pop();
    for name in &old {
        let bytes = disk.file(name).unwrap();
        let damaged: Vec<_> = bytes.iter().map(|byte| byte ^ 1).collect();
        disk.set_file(name, Some(&damaged));
    }
    set(&hooks.name, Some(PANIC_THERE));
    let before = panics();
    let forest = forest(Hooked(disk.clone(), hooks), 40 << 10);
    let tree = forest.get("t").unwrap();
    commit_until(&tree, || {
        assert!(panics() < before + 50, "no trim comes to its end");
        let names = files(&disk, ".checkpoint");
        !old.iter().any(|old| names.contains(old))
    });
    assert!(panics() > before);
}
