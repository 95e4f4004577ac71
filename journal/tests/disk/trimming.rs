//! What a checkpoint replaces is removed, and the rest is there when the journal is opened again.

use std::path::Path;

use weald_forest::CommitId;
use weald_forest::journal::{Appended, Entry, Journal, Level, Position, ReadError, Resolved};
use weald_journal::{Directory, DiskJournal, Medium, ReadOnlyJournal, Settings, SimulatedDisk};

use crate::erasing;
use crate::records::{all, append, bytes, flush, must_append, open, put_checkpoint};

fn trim(journal: &DiskJournal, upto: Position) {
    pollster::block_on(journal.trim(upto)).unwrap();
}

fn read(journal: &DiskJournal, after: Position) -> Result<Vec<Entry>, ReadError> {
    pollster::block_on(journal.read(after, usize::MAX))
}

fn segments(disk: &SimulatedDisk) -> usize {
    let names = disk.names();
    let is_segment = |name: &&String| name.ends_with(".segment");
    names.iter().filter(is_segment).count()
}

/// Some records fill several segments.
const LENS: [usize; 14] = [
    400, 300, 5000, 500, 400, 20, 700, 450, 2500, 10, 400, 400, 7000, 300,
];

fn fill(journal: &DiskJournal) -> Vec<Position> {
    let lens = (1..).zip(LENS);
    let positions = lens.map(|(number, len)| must_append(journal, number, len));
    let positions = positions.collect();
    flush(journal);
    positions
}

/// Expects the records behind the one at an index of [`LENS`], and no other.
fn must_have_behind(journal: &DiskJournal, at: (usize, Position), what: &str) {
    let found = read(journal, at.1).unwrap();
    let records = found.into_iter().map(|entry| entry.record);
    let due = (at.0..LENS.len()).map(|index| bytes(index as u64 + 1, LENS[index]));
    assert!(records.eq(due), "{what}");
}

#[test]
fn a_trim_syncs_the_names_as_often_for_many_segments_as_for_few() {
    let operations_beside_removals = |records: u64| {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        let mut last = Position::default();
        for number in 1..=records {
            last = must_append(&journal, number, 1500);
            flush(&journal);
        }
        put_checkpoint(&journal, last, &[b"all"]).unwrap();
        let (files, before) = (segments(&disk) as u64, disk.operations());
        trim(&journal, last);
        let removed = files - segments(&disk) as u64;
        assert!(removed + 3 > records, "{removed}");
        disk.operations() - before - removed
    };
    assert_eq!(
        operations_beside_removals(100),
        operations_beside_removals(10)
    );
}

#[test]
fn what_is_left_is_read_after_opening_wherever_it_was_trimmed() {
    let whole = SimulatedDisk::new();
    let journal = open(&whole).unwrap();
    let positions = fill(&journal);
    drop(journal);
    let last = *positions.last().unwrap();
    let mut removed = 0;
    for checkpoint in 1..=LENS.len() {
        for upto in [checkpoint, checkpoint.div_ceil(2)] {
            let what = format!("trimmed up to {upto}, with a checkpoint of {checkpoint}");
            // All segments are of one opening.
            let disk = SimulatedDisk::new();
            let journal = open(&disk).unwrap();
            assert_eq!(fill(&journal), positions);
            let at = positions[checkpoint - 1];
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
            let before = segments(&disk);
            trim(&journal, positions[upto - 1]);
            removed += before - segments(&disk);
            must_have_behind(&journal, (checkpoint, at), &what);
            drop(journal);
            for mut disk in [disk.after_kill(), disk.after_power_cut(1)] {
                for opening in 0..3 {
                    let what = format!("{what}, opening {opening}");
                    let journal = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                    must_have_behind(&journal, (checkpoint, at), &what);
                    let found = pollster::block_on(journal.last()).unwrap();
                    assert_eq!(found, Some((last, CommitId(LENS.len() as u128))), "{what}");
                    trim(&journal, at);
                    drop(journal);
                    disk = disk.after_power_cut(opening);
                }
            }
        }
    }
    assert!(removed > 50, "only {removed} segments were removed");
}

/// The end may come after any of the removals, even between the segments of one record.
#[test]
fn after_a_trim_that_was_interrupted_reading_begins_with_the_first_whole_record() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let positions = fill(&journal);
    let at = positions[LENS.len() - 1];
    put_checkpoint(&journal, at, &[b"all"]).unwrap();
    drop(journal);
    let trimmed = disk.after_kill();
    trim(&open(&trimmed).unwrap(), at);
    let (names, left) = (disk.names().into_iter(), trimmed.names());
    let names = names.filter(|name| name.ends_with(".segment") && !left.contains(name));
    let old: Vec<_> = names.collect();
    assert!(old.len() > 5, "{old:?}");
    let index = |position: Position| position.0 >> 32 & u128::from(u32::MAX);
    for removed in 1..=old.len() {
        let left = disk.after_kill();
        for name in &old[..removed] {
            Medium::remove(&left, name).unwrap();
        }
        let only_read = ReadOnlyJournal::open_on(left.clone()).unwrap();
        let begin = only_read.begin();
        let found = pollster::block_on(only_read.read(begin, usize::MAX));
        let found = found.unwrap_or_else(|error| panic!("{removed} removed: {error}"));
        assert_eq!(read(&open(&left).unwrap(), begin).unwrap(), found);
        // Those behind a record whose end is there are whole.
        let behind = positions.iter().filter(|it| index(**it) > removed as u128);
        assert!(found.len() + 1 >= behind.count(), "{removed} removed");
        let due = (1..=LENS.len() as u64)
            .zip(LENS)
            .skip(LENS.len() - found.len());
        let records = found.into_iter().map(|entry| entry.record);
        assert!(
            records.eq(due.map(|(number, len)| bytes(number, len))),
            "{removed} removed"
        );
    }
}

#[test]
fn what_was_trimmed_stays_too_old_and_unknown_after_opening() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let positions = fill(&journal);
    let at = positions[10];
    put_checkpoint(&journal, at, &[b"all"]).unwrap();
    trim(&journal, at);
    let check = |journal: &DiskJournal| {
        let too_old = Err(ReadError::TooOld { checkpoint: at });
        assert_eq!(read(journal, Position::default()), too_old);
        let mut follower = journal.follow(Position::default());
        let shown = pollster::block_on(std::future::poll_fn(|cx| follower.poll_next(cx)));
        assert_eq!(shown, too_old);
        let resolve = |id| pollster::block_on(journal.resolve(CommitId(id)));
        assert_eq!(resolve(1), Resolved::Unknown, "it was stored");
        assert!(
            matches!(resolve(14), Resolved::Stored { position, .. } if position == positions[13])
        );
    };
    check(&journal);
    drop(journal);
    for _ in 0..3 {
        check(&open(&disk).unwrap());
    }
}

#[test]
fn the_segment_of_the_checkpoint_stays_because_the_next_may_not_be_durable() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let first = must_append(&journal, 1, 1500);
    flush(&journal);
    put_checkpoint(&journal, first, &[b"all"]).unwrap();
    // It has its place in the next segment, and nothing of it is written.
    let second = must_append(&journal, 2, 1500);
    assert!(second.0 >> 32 > first.0 >> 32);
    trim(&journal, first);
    for disk in [disk.after_kill(), disk.after_power_cut(1)] {
        let journal = open(&disk).unwrap();
        let last = pollster::block_on(journal.last()).unwrap();
        assert_eq!(last, Some((first, CommitId(1))));
        assert_eq!(read(&journal, first), Ok(Vec::new()));
    }
}

#[test]
fn a_missing_first_segment_that_no_checkpoint_replaces_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    fill(&journal);
    assert_eq!(all(&journal).len(), LENS.len());
    drop(journal);
    let missing = "0000000000000001-00000001.segment";
    disk.set_file(missing, None);
    let names = disk.names();
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains(missing), "{error}");
    assert_eq!(disk.names(), names);
}

fn open_files(path: &Path) -> DiskJournal {
    let medium = Directory::create(path).unwrap();
    DiskJournal::open_on(medium, Settings::new().segment(16 * 1024)).unwrap()
}

#[test]
fn a_directory_that_was_trimmed_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open_files(directory.path());
    let mut positions = Vec::new();
    for number in 1..=40 {
        let position = match append(&journal, number, 3000).unwrap() {
            Appended::Accepted(position) => position,
            Appended::Sent(answer) => pollster::block_on(answer).unwrap(),
        };
        pollster::block_on(journal.when_reached(position, Level::Durable));
        positions.push(position);
    }
    let at = positions[29];
    put_checkpoint(&journal, at, &[b"all"]).unwrap();
    let count = || std::fs::read_dir(directory.path()).unwrap().count();
    let before = count();
    trim(&journal, at);
    assert!(count() + 3 < before, "{} of {before} are left", count());
    journal.close();
    for _ in 0..2 {
        let journal = open_files(directory.path());
        let found = read(&journal, at).unwrap();
        let records = found.into_iter().map(|entry| entry.record);
        assert!(records.eq((31..=40).map(|number| bytes(number, 3000))));
        let too_old = Err(ReadError::TooOld { checkpoint: at });
        assert_eq!(read(&journal, Position::default()), too_old);
        journal.close();
    }
}

/// Fills several segments, and puts a checkpoint behind them.
fn grow(journal: &DiskJournal, numbers: std::ops::RangeInclusive<u64>) -> Position {
    let mut last = Position::default();
    for number in numbers {
        last = must_append(journal, number, 300);
        flush(journal);
    }
    put_checkpoint(journal, last, &[b"all"]).unwrap();
    last
}

#[test]
fn a_trim_that_fails_anywhere_is_finished_by_the_next_one() {
    let trimmed = |fails: Option<u64>| {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        let first = grow(&journal, 1..=24);
        let begun = disk.operations();
        if let Some(at) = fails {
            disk.fail_operation(begun + at);
        }
        let has_failed = pollster::block_on(journal.trim(first)).is_err();
        let operations = disk.operations() - begun;
        let second = grow(&journal, 25..=48);
        pollster::block_on(journal.trim(second)).unwrap();
        must_append(&journal, 49, 10);
        flush(&journal);
        let expected = read(&journal, second).unwrap();
        drop(journal);
        let journal = open(&disk).unwrap_or_else(|error| panic!("{fails:?}: {error}"));
        assert!(expected.len() == 1 && read(&journal, second).unwrap() == expected);
        (has_failed, operations)
    };
    let (has_failed, operations) = trimmed(None);
    assert!(!has_failed && operations > 4, "{operations}");
    let failed = (0..operations).filter(|at| trimmed(Some(*at)).0).count();
    assert!(failed > 4, "only {failed} of {operations} failed");
}

#[test]
fn keys_of_segments_that_a_trim_has_removed_before_it_failed_go_with_the_next_one() {
    let mut fails = 0;
    loop {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        erasing::append(&journal, 1, (&[erasing::blob(1, 10)], None)).unwrap();
        flush(&journal);
        let names = disk.names();
        let keys = names.iter().find(|name| name.ends_with(".keys")).unwrap();
        // Behind the head, and the id.
        let key = disk.file(keys).unwrap()[36 + 16..][..32].to_vec();
        assert!(disk.holds(&key));
        let upto = grow(&journal, 2..=20);
        let begun = segments(&disk);
        disk.fail_operation(disk.operations() + fails);
        let has_failed = pollster::block_on(journal.trim(upto)).is_err();
        if !has_failed {
            assert!(fails > 4 && segments(&disk) < begun && !disk.holds(&key));
            return;
        }
        let killed = disk.after_kill();
        trim(&journal, upto);
        assert!(!disk.holds(&key), "with failure {fails}");
        trim(&open(&killed).unwrap(), upto);
        assert!(!killed.holds(&key), "with an end at {fails}");
        fails += 1;
    }
}

#[test]
fn bytes_that_a_trim_removes_are_promised_to_nobody_also_if_it_fails() {
    let id = erasing::blob(1, 0).id;
    let mut gone = 0;
    for fails in 0.. {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        erasing::append(&journal, 1, (&[erasing::blob(1, 10)], None)).unwrap();
        let upto = grow(&journal, 2..=20);
        disk.fail_operation(disk.operations() + fails);
        let has_failed = pollster::block_on(journal.trim(upto)).is_err();
        let killed = disk.after_kill();
        for journal in [&journal, &open(&killed).unwrap()] {
            let is_promised = pollster::block_on(journal.keep_blob(id)).unwrap().is_some();
            let bytes = pollster::block_on(journal.blob(id));
            let is_there = bytes.is_ok_and(|bytes| bytes.is_some());
            assert_eq!(is_promised, is_there, "with failure {fails}");
            gone += usize::from(!is_there);
        }
        if !has_failed {
            break;
        }
    }
    assert!(gone > 6, "{gone}");
}

/// Promises stay promises: the trim looks again.
#[test]
fn bytes_that_were_asked_for_are_kept_by_a_trim() {
    let id = erasing::blob(1, 0).id;
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    erasing::append(&journal, 1, (&[erasing::blob(1, 10)], None)).unwrap();
    let upto = grow(&journal, 2..=20);
    assert!(pollster::block_on(journal.keep_blob(id)).unwrap().is_some());
    trim(&journal, upto);
    assert_eq!(erasing::read(&journal, 1), Some(vec![1; 10]));
}
