//! A medium that fails: the journal stops at once, tells the units that wait that the outcome is unknown, and has
//! everything that it acknowledged when it is opened again.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::records::{
    all, append, bytes, flush, is_durable, must_append, open, put_checkpoint, read_checkpoint,
    small,
};
use weald_forest::CommitId;
use weald_forest::journal::{AppendError, Appended, Durability, Journal, Level, Resolved};
use weald_journal::{DiskJournal, LockError, OpenError, SimulatedDisk, Work};

/// A journal with a durable record, and another one that is accepted.
pub(crate) fn with_two(disk: &SimulatedDisk) -> DiskJournal {
    let journal = open(disk).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    must_append(&journal, 2, 100);
    journal
}

fn must_be_poisoned(journal: &DiskJournal) {
    let position = pollster::block_on(journal.last()).unwrap().unwrap().0;
    let waits = journal.when_reached(position, Level::Durable);
    assert_eq!(pollster::block_on(waits), Durability::Unknown);
    for number in [3, 4] {
        assert_eq!(
            append(journal, number, 10).err(),
            Some(AppendError::Poisoned)
        );
    }
    for work in [Work::Write, Work::Sync, Work::Mark, Work::Prepare] {
        assert!(!journal.work(work), "it goes on after a failure");
    }
    assert_eq!(
        pollster::block_on(journal.resolve(CommitId(2))),
        Resolved::Unknown
    );
}

/// Opens the disk again, both after a kill and after a power cut, and expects between 1 and 2 records.
fn must_have_the_durable_one(disk: &SimulatedDisk) {
    for (disk, least) in [
        (disk.after_kill(), 1),
        (disk.after_power_cut(4), 1),
        (disk.after_kill().after_power_cut(8), 1),
    ] {
        let journal = open(&disk).unwrap();
        let found = all(&journal);
        assert!((least..=2).contains(&found.len()));
        for (entry, number) in found.iter().zip(1..) {
            assert_eq!(entry.record, bytes(number, 100));
        }
        let is_there = found.len() == 2;
        let told = pollster::block_on(journal.resolve(CommitId(2)));
        assert_eq!(
            matches!(told, Resolved::Stored { .. }),
            is_there,
            "{told:?}"
        );
        assert_eq!(told == Resolved::NotStored, !is_there, "{told:?}");
    }
}

#[test]
fn a_write_that_fails_ends_the_journal() {
    let disk = SimulatedDisk::new();
    let journal = with_two(&disk);
    disk.fail_next_write();
    journal.work(Work::Write);
    must_be_poisoned(&journal);
    must_have_the_durable_one(&disk);
}

#[test]
fn a_short_write_ends_the_journal_though_the_next_would_succeed() {
    let disk = SimulatedDisk::new();
    let journal = with_two(&disk);
    disk.shorten_next_write();
    journal.work(Work::Write);
    must_be_poisoned(&journal);
    must_have_the_durable_one(&disk);
}

#[test]
fn a_sync_that_fails_ends_the_journal_though_the_next_would_succeed() {
    let disk = SimulatedDisk::new();
    let journal = with_two(&disk);
    journal.work(Work::Write);
    disk.fail_next_sync();
    journal.work(Work::Sync);
    must_be_poisoned(&journal);
    must_have_the_durable_one(&disk);
}

#[test]
fn what_a_failed_sync_left_in_memory_is_durable_once_the_next_opening_has_found_it() {
    let disk = SimulatedDisk::new();
    let journal = with_two(&disk);
    journal.work(Work::Write);
    disk.fail_next_sync();
    journal.work(Work::Sync);
    drop(journal);
    // The system shows the second record as written, and has forgotten that the medium does not have it.
    let disk = disk.after_kill();
    let journal = open(&disk).unwrap();
    assert_eq!(all(&journal).len(), 2);
    must_append(&journal, 3, 100);
    flush(&journal);
    for seed in 0..20 {
        let journal = open(&disk.after_power_cut(seed)).unwrap();
        assert_eq!(all(&journal).len(), 3, "seed {seed}");
    }
}

#[test]
fn records_wait_while_the_buffer_is_full_and_keep_their_order() {
    let disk = SimulatedDisk::new();
    let settings = small().segment(1 << 20).buffer(1000);
    let journal = DiskJournal::open_on(disk, settings).unwrap();
    let mut waiting = Vec::new();
    let mut positions = Vec::new();
    for number in 1..=20 {
        match append(&journal, number, 200).unwrap() {
            Appended::Accepted(position) => {
                assert!(waiting.is_empty(), "it overtook one that waits");
                positions.push(position);
            }
            Appended::Sent(answer) => waiting.push(answer),
        }
    }
    assert!(waiting.len() > 10, "only {} wait", waiting.len());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting[0].as_mut().poll(&mut cx).is_pending());
    while journal.work(Work::Write) {}
    for mut answer in waiting {
        match answer.as_mut().poll(&mut cx) {
            Poll::Ready(Ok(position)) => positions.push(position),
            other => panic!("{other:?}"),
        }
    }
    assert!(positions.is_sorted());
    let found = all(&journal);
    assert!(found.iter().map(|entry| entry.position).eq(positions));
}

#[test]
fn a_checkpoint_that_was_renamed_and_not_synced_leaves_the_one_before() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let first = must_append(&journal, 1, 100);
    flush(&journal);
    put_checkpoint(&journal, first, &[b"first"]).unwrap();
    let second = must_append(&journal, 2, 100);
    flush(&journal);
    // The operations of a checkpoint: create, seven writes, sync, rename, sync of the names.
    for operation in 0..11 {
        let other = disk.after_kill();
        let journal = open(&other).unwrap();
        other.cut_power_at(other.operations() + operation);
        let put = put_checkpoint(&journal, second, &[b"second"]);
        assert!(put.is_err(), "operation {operation}");
        for seed in 0..20 {
            let journal = open(&other.after_power_cut(seed)).unwrap();
            let (at, text) = read_checkpoint(&journal).unwrap().unwrap();
            let is_whole = text == b"first" && at == first || text == b"second" && at == second;
            assert!(is_whole, "operation {operation}, seed {seed}: {text:?}");
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_an_error_that_names_it() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let at = must_append(&journal, 1, 100);
    flush(&journal);
    put_checkpoint(&journal, at, &[&[7; 50], &[8; 50]]).unwrap();
    let name = format!("{:032x}.checkpoint", at.0);
    let whole = disk.file(&name).unwrap();
    // The list of segments is read by openings only, and without its last bytes there is none.
    let (list, mark) = (whole.len() - 44, whole.len() - 8);
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        disk.set_file(&name, Some(&damaged));
        let error = match byte < list {
            true => Some(read_checkpoint(&journal).unwrap_err().to_string()),
            false => open(&disk.after_kill())
                .err()
                .map(|error| error.to_string()),
        };
        let names_it = error.as_ref().is_some_and(|error| error.contains(&name));
        assert_eq!(names_it, byte < mark, "byte {byte}: {error:?}");
    }
}

#[test]
fn a_torn_head_of_a_segment_that_was_never_durable_is_a_torn_tail() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut number = 0;
    while disk
        .file("0000000000000001-00000002.segment")
        .is_none_or(|bytes| bytes[0] == 0)
    {
        number += 1;
        must_append(&journal, number, 200);
        while journal.work(Work::Prepare) || journal.work(Work::Write) {}
    }
    drop(journal);
    let disk = disk.after_kill();
    let mut bytes = disk.file("0000000000000001-00000002.segment").unwrap();
    bytes[60..].fill(0);
    disk.set_file("0000000000000001-00000002.segment", Some(&bytes));
    let journal = open(&disk).unwrap();
    assert_eq!(all(&journal).len() as u64, number - 1);
}

#[test]
fn a_second_writer_is_told_which_process_has_the_journal() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    match open(&disk) {
        Err(OpenError::Locked {
            error: LockError::Held { pid },
            ..
        }) => assert_eq!(pid, std::process::id()),
        other => panic!("it was opened: {other:?}"),
    }
    drop(journal);
    open(&disk).unwrap();
}

#[test]
fn an_older_writer_finds_itself_fenced_and_acknowledges_nothing() {
    must_fence(SimulatedDisk::break_lock);
}

#[test]
fn a_writer_whose_lock_was_removed_finds_itself_fenced_and_acknowledges_nothing() {
    must_fence(SimulatedDisk::remove_lock);
}

fn must_fence(break_lock: fn(&SimulatedDisk)) {
    let disk = SimulatedDisk::new();
    let old = with_two(&disk);
    break_lock(&disk);
    let new = open(&disk).unwrap();
    must_append(&new, 2, 50);
    flush(&new);

    let position = pollster::block_on(old.last()).unwrap().unwrap().0;
    old.work(Work::Write);
    let waits = old.when_reached(position, Level::Buffered);
    assert_eq!(pollster::block_on(waits), Durability::Unknown);
    assert_eq!(append(&old, 3, 10).err(), Some(AppendError::Fenced));
    assert_eq!(old.refusal(), AppendError::Fenced);
    drop((old, new));
    disk.break_lock();
    let found = all(&open(&disk).unwrap());
    let numbers: Vec<_> = found.into_iter().map(|entry| entry.record).collect();
    assert_eq!(numbers, [bytes(1, 100), bytes(2, 50)]);
}

/// Nobody could open a journal whose versions do not rise.
#[test]
fn a_record_that_is_older_than_the_newest_one_is_refused() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 5, 100);
    let at = must_append(&journal, 9, 5_000);
    let must_refuse = |journal: &DiskJournal, number| {
        let refused = append(journal, number, 100).err();
        assert!(matches!(refused, Some(AppendError::Conflict { current }) if current == at));
    };
    must_refuse(&journal, 9);
    flush(&journal);
    drop(journal);
    let journal = open(&disk).unwrap();
    must_refuse(&journal, 1);
    drop(journal);
    // Its last opening has no record.
    let journal = open(&disk).unwrap();
    must_refuse(&journal, 9);
    must_append(&journal, 10, 100);
}

#[test]
fn a_copy_that_is_older_than_the_journal_gives_out_no_position_again() {
    let disk = SimulatedDisk::new();
    let settings = || weald_journal::Settings::new().segment(2048).by_hand();
    let copy = {
        let journal = DiskJournal::open_on(disk.clone(), settings()).unwrap();
        must_append(&journal, 1, 100);
        flush(&journal);
        disk.after_kill()
    };
    let journal = DiskJournal::open_on(disk.after_kill(), settings()).unwrap();
    let lost = must_append(&journal, 2, 100);
    let journal = DiskJournal::open_on(copy, settings()).unwrap();
    assert!(must_append(&journal, 2, 100) > lost);
}

#[test]
fn whoever_closes_a_journal_that_is_being_closed_waits_too() {
    let disk = SimulatedDisk::new();
    let journal = DiskJournal::open_on(disk.clone(), weald_journal::Settings::new()).unwrap();
    disk.hold_syncs();
    let Ok(Appended::Accepted(position)) = append(&journal, 1, 100) else {
        panic!("there is no room");
    };
    let (done, closed) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (journal, done) = (journal.clone(), done.clone());
        std::thread::spawn(move || {
            journal.close();
            let _ = done.send(is_durable(&journal, position));
        });
    }
    // Nobody is through while the disk syncs, however long that takes.
    let early = closed.recv_timeout(Duration::from_millis(50));
    disk.release_syncs();
    assert!(
        early.is_err(),
        "it was closed before its record was durable"
    );
    for _ in 0..2 {
        assert_eq!(closed.recv_timeout(Duration::from_secs(120)), Ok(true));
    }
    assert_eq!(all(&open(&disk).unwrap()).len(), 1);
}
