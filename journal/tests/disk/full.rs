//! A disk with little or no room: nothing is lost, operations that need no room continue, and so do the others once
//! there is room.

use weald_forest::journal::{AppendError, Appended, Journal, Later};
use weald_journal::{DiskJournal, OpenError, SimulatedDisk, Work};

use crate::erasing;
use crate::faults::with_two;
use crate::records::{all, append, flush, is_durable, must_append, open, put_checkpoint};

fn unfinished(disk: &SimulatedDisk) -> Vec<String> {
    let mut names = disk.names();
    names.retain(|name| name.ends_with(".new"));
    names
}

#[test]
fn a_full_disk_refuses_before_anything_is_written_and_takes_more_when_there_is_room() {
    // Also if a part of the next segment fits: the disk tells only then that it is full.
    for left in [0, 1, 700, 2047] {
        must_refuse_on_a_full_disk(left);
    }
}

fn must_refuse_on_a_full_disk(left: usize) {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    disk.set_room(Some(disk.used() + left));
    let mut taken = 1;
    let refused = loop {
        match append(&journal, taken + 1, 500) {
            Ok(Appended::Accepted(_)) => taken += 1,
            Ok(Appended::Sent(answer)) => break answer,
            Err(error) => panic!("{error}"),
        }
    };
    let Ok(Appended::Sent(behind)) = append(&journal, taken + 2, 500) else {
        panic!("it overtook one that waits");
    };
    flush(&journal);
    let position = pollster::block_on(journal.last()).unwrap().unwrap().0;
    assert!(
        is_durable(&journal, position),
        "what was taken is not written"
    );
    assert_eq!(pollster::block_on(refused), Err(AppendError::Full));
    assert_eq!(pollster::block_on(behind), Err(AppendError::Behind));
    assert_eq!(
        append(&journal, taken + 3, 10).err(),
        Some(AppendError::Behind)
    );
    assert_eq!(all(&journal).len() as u64, taken, "readers go on");

    disk.set_room(None);
    must_append(&journal, taken + 1, 500);
    flush(&journal);
    assert_eq!(all(&journal).len() as u64, taken + 1);
    drop(journal);
    assert_eq!(all(&open(&disk).unwrap()).len() as u64, taken + 1);
}

#[test]
fn whoever_waits_for_room_in_a_journal_that_ends_is_told_why() {
    let waiting = |journal: &DiskJournal| {
        let mut answers = Vec::new();
        let mut number = 1;
        while answers.len() < 3 {
            if let Ok(Appended::Sent(answer)) = append(journal, number, 500) {
                answers.push(answer);
            }
            number += 1;
        }
        answers
    };
    let all_are = |answers: Vec<Later<'static, _>>, error| {
        for answer in answers {
            assert_eq!(pollster::block_on(answer), Err(error));
        }
    };
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let answers = waiting(&journal);
    disk.break_down();
    while journal.work(Work::Prepare) {}
    all_are(answers, AppendError::Poisoned);

    let disk = SimulatedDisk::new();
    let old = open(&disk).unwrap();
    let answers = waiting(&old);
    disk.break_lock();
    let _new = open(&disk).unwrap();
    while old.work(Work::Prepare) {}
    all_are(answers, AppendError::Fenced);
}

#[test]
fn a_full_disk_refuses_a_second_opening_and_loses_nothing() {
    let disk = SimulatedDisk::new();
    drop(with_two(&disk));
    let disk = disk.after_kill();
    disk.set_file("reserve", None);
    let used = disk.used();
    disk.set_room(Some(used + 100));
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, OpenError::Failed { .. }), "{error}");
    let error = error.to_string();
    for text in [
        "simulated disk",
        "the disk is full",
        "needs at least 2048 bytes",
    ] {
        assert!(error.contains(text), "{error}");
    }
    disk.set_room(None);
    assert_eq!(all(&open(&disk).unwrap()).len(), 1);
}

#[test]
fn a_record_that_is_too_long_for_the_disk_gives_back_what_was_prepared_for_it() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    let used = disk.used();
    disk.set_room(Some(used + 20 * 2048 + 100));
    let Ok(Appended::Sent(refused)) = append(&journal, 2, 100_000) else {
        panic!("there is room for it");
    };
    flush(&journal);
    assert_eq!(pollster::block_on(refused), Err(AppendError::Full));
    assert!(disk.used() <= used + 2048, "{} of {used}", disk.used());
    // What fits is taken, even over several segments.
    for number in 2..=20 {
        must_append(&journal, number, 500);
    }
    flush(&journal);
    drop(journal);
    disk.set_room(None);
    assert_eq!(all(&open(&disk.after_power_cut(1)).unwrap()).len(), 20);
}

/// Appends a record that needs more segments than there is room for, after this operation was told to fail. Returns the
/// number of the operation with which the first of the segments that were prepared for it is removed.
fn refuse_a_long_record(
    (disk, journal): (&SimulatedDisk, &DiskJournal),
    fails: Option<u64>,
) -> u64 {
    must_append(journal, 1, 100);
    flush(journal);
    disk.set_room(Some(disk.used() + 8 * 2048 + 100));
    if let Some(operation) = fails {
        disk.fail_operation(operation);
    }
    let Ok(Appended::Sent(refused)) = append(journal, 2, 100_000) else {
        panic!("there is room for it");
    };
    let mut most = 0;
    while journal.work(Work::Prepare) {
        most = most.max(disk.names().len());
    }
    assert_eq!(pollster::block_on(refused), Err(AppendError::Full));
    disk.operations() - (most - disk.names().len()) as u64
}

#[test]
fn a_prepared_segment_that_could_not_be_removed_is_never_behind_a_gap() {
    let disk = SimulatedDisk::new();
    let first_removal = refuse_a_long_record((&disk, &open(&disk).unwrap()), None);

    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    refuse_a_long_record((&disk, &journal), Some(first_removal));
    let left = disk.names().len();
    // Two of those that are left are prepared again, and then another program takes the room.
    disk.set_room(None);
    let Ok(Appended::Sent(refused)) = append(&journal, 2, 100_000) else {
        panic!("there is room for it");
    };
    assert!(journal.work(Work::Prepare) && journal.work(Work::Prepare));
    assert_eq!(disk.names().len(), left, "none was removed before");
    disk.set_room(Some(disk.used()));
    flush(&journal);
    assert_eq!(pollster::block_on(refused), Err(AppendError::Full));
    assert_eq!(all(&open(&disk.after_kill()).unwrap()).len(), 1);
    assert!(disk.names().len() < left, "all are removed now");
}

#[test]
fn an_opening_without_room_leaves_nothing_that_takes_the_room_of_the_next() {
    let disk = SimulatedDisk::new();
    drop(open(&disk).unwrap());
    let disk = disk.after_kill();
    disk.set_file("reserve", None);
    let used = disk.used();
    for left in [1, 700, 2047] {
        disk.set_room(Some(used + left));
        open(&disk).unwrap_err();
        assert_eq!((unfinished(&disk), disk.used()), (vec![], used));
    }
    disk.set_room(Some(used + 2048));
    open(&disk).unwrap();
}

#[test]
fn what_an_end_left_unfinished_goes_before_the_next_opening_needs_room() {
    let disk = SimulatedDisk::new();
    drop(open(&disk).unwrap());
    let disk = disk.after_kill();
    let used = disk.used();
    let names = [
        "0000000000000001-00000001.segment.new",
        "00000000000000000000000000000001.checkpoint.new",
        "keys.spare.new",
    ];
    for name in names {
        disk.set_file(name, Some(&[7; 2000]));
    }
    disk.set_room(Some(used + 2048));
    open(&disk).unwrap();
    assert_eq!(unfinished(&disk), [""; 0]);
}

#[test]
fn a_checkpoint_without_room_leaves_nothing_and_is_put_when_there_is_room() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let at = must_append(&journal, 1, 100);
    flush(&journal);
    let used = disk.used();
    for left in [0, 10, 5000] {
        disk.set_room(Some(used + left));
        let error = put_checkpoint(&journal, at, &[&[7; 4000], &[8; 4000]]).unwrap_err();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert_eq!((unfinished(&disk), disk.used()), (vec![], used));
    }
    disk.set_room(None);
    put_checkpoint(&journal, at, &[&[7; 4000], &[8; 4000]]).unwrap();
    must_append(&journal, 2, 100);
    flush(&journal);
    assert_eq!(all(&journal).len(), 2);
}

#[test]
fn keys_that_were_written_into_a_file_that_became_none_are_on_no_medium_once_they_are_erased() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    erasing::append(&journal, 1, (&[erasing::blob(1, 10)], None)).unwrap();
    let at = erasing::append(&journal, 2, (&[erasing::blob(2, 10)], None)).unwrap();
    flush(&journal);
    let names = disk.names();
    let keys = names.iter().find(|name| name.ends_with(".keys")).unwrap();
    let keys = disk.file(keys).unwrap();
    // The head, and entries for attributes that are called `secret`.
    let (head, entry) = (36, 16 + 32 + 16 + 8 + 8 + 4 + 6 + 4);
    let keys = [0, 1].map(|number| keys[head + number * entry + 16..][..32].to_vec());
    assert!(keys.iter().all(|key| disk.holds(key)));
    // A checkpoint begins with a new key file.
    disk.fail_next_write();
    put_checkpoint(&journal, at, &[b"it"]).unwrap_err();
    // Erasing needs no room after that either.
    while journal.work(Work::Prepare) {}
    disk.set_room(Some(disk.used()));
    for node in [1, 2] {
        erasing::append(&journal, 2 + node, (&[], Some(node))).unwrap();
        flush(&journal);
        assert_eq!(erasing::read(&journal, node), None);
    }
    assert_eq!(keys.map(|key| disk.holds(&key)), [false, false]);
}

#[test]
fn bytes_are_erased_when_the_disk_is_full_to_the_last_record_that_it_takes() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    erasing::append(&journal, 1, (&[erasing::blob(1, 100)], None)).unwrap();
    flush(&journal);
    disk.set_room(Some(disk.used()));
    let mut next = 2;
    for len in [500, 100, 10, 0] {
        loop {
            match append(&journal, next, len) {
                Ok(Appended::Accepted(_)) => next += 1,
                Ok(Appended::Sent(answer)) => {
                    flush(&journal);
                    assert_eq!(pollster::block_on(answer), Err(AppendError::Full));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let erased = erasing::append(&journal, next, (&[], Some(1))).expect("erasing needs no room");
    flush(&journal);
    assert!(is_durable(&journal, erased));
    assert_eq!(erasing::read(&journal, 1), None);
    disk.set_room(None);
    drop(journal);
    assert_eq!(erasing::read(&open(&disk).unwrap(), 1), None);
}
