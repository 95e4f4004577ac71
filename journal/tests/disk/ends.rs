//! Ends that are rare by chance: a kill between two marks, a blob that reaches the medium later than its record, a
//! clock that was set back, and openings that end at any of their operations, twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald_forest::Clock;
use weald_forest::journal::{Journal, Position};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

use crate::crash::Random;
use crate::erasing::{self, blob};
use crate::records::{all, bytes, flush, must_append, open, small};

/// How often a mark is in the files. It says a position, and no record of these tests does.
fn marks(disk: &SimulatedDisk, position: Position) -> usize {
    let files = disk.names().into_iter().filter_map(|name| disk.file(&name));
    let is_it = |bytes: &[u8]| bytes == position.0.to_le_bytes();
    let count = |bytes: Vec<u8>| bytes.windows(16).filter(|bytes| is_it(bytes)).count();
    files.map(count).sum()
}

#[test]
fn a_kill_between_two_marks_loses_nothing_that_was_written() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let first = must_append(&journal, 1, 100);
    flush(&journal);
    assert!(journal.work(Work::Mark));
    let marked = marks(&disk, first);
    assert!(marked > 0, "it has no mark");
    let mut ends = Vec::new();
    // Written and not synced; synced and not marked; and both once more.
    for number in [2, 3] {
        let last = must_append(&journal, number, 100);
        journal.work(Work::Write);
        ends.push((disk.after_kill(), number));
        assert!(journal.work(Work::Sync));
        ends.push((disk.after_kill(), number));
        ends.push((disk.after_power_cut(number), number));
        assert_eq!(marks(&disk, last), 0, "it is marked");
    }
    for (disk, count) in ends {
        let journal = open(&disk).unwrap();
        let found = all(&journal);
        let due: Vec<_> = (1..=count).map(|number| bytes(number, 100)).collect();
        assert!(found.into_iter().map(|entry| entry.record).eq(due));
    }
}

/// The disk without these bytes of its first segment, as if they had reached the medium later than the rest; `None`, if
/// they are zeros anyway.
fn without_blob(disk: &SimulatedDisk, at: usize, len: usize) -> Option<SimulatedDisk> {
    let disk = disk.after_kill();
    let name = "0000000000000001-00000001.segment";
    let mut segment = disk.file(name).unwrap();
    let missing = &mut segment[at..at + len];
    let differs = missing.iter().any(|byte| *byte != 0);
    missing.fill(0);
    disk.set_file(name, Some(&segment));
    differs.then_some(disk)
}

#[test]
fn a_blob_that_comes_later_than_its_record_takes_the_record_with_it() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let begin = must_append(&journal, 1, 100);
    flush(&journal);
    let record = erasing::append(&journal, 2, (&[blob(7, 300)], None)).unwrap();
    while journal.work(Work::Write) {}
    let offset = |position: Position| usize::try_from(position.0 & 0xFFFF_FFFF).unwrap();
    let written = offset(begin)..offset(record);
    for at in written
        .clone()
        .step_by(7)
        .take_while(|at| at + 300 < written.end)
    {
        let Some(disk) = without_blob(&disk, at, 7) else {
            continue;
        };
        let journal = open(&disk).unwrap();
        assert_eq!(
            all(&journal).len(),
            1,
            "the record is there without its blob, byte {at}"
        );
        assert_eq!(erasing::read(&journal, 7), None);
        // Its place is free, and the same blob may come again.
        erasing::append(&journal, 2, (&[blob(7, 300)], None)).unwrap();
        flush(&journal);
        assert_eq!(erasing::read(&journal, 7).unwrap().len(), 300);
    }
    // Once the record is known to be durable, the same is damage.
    flush(&journal);
    assert!(journal.work(Work::Mark));
    let disk = without_blob(&disk, written.start + 60, 7).unwrap();
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains("00000001.segment"), "{error}");
}

/// A clock that a test sets, in seconds since 1970.
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    fn wake_at(&self, _: Duration, waker: Waker) {
        waker.wake();
    }
}

#[test]
fn a_clock_that_was_set_back_gives_out_no_position_again() {
    let disk = SimulatedDisk::new();
    let mut last = Position::default();
    let mut written = Vec::new();
    for (number, seconds) in (1..).zip([1_000_000_000, 10, 0, 999_999_999, 2_000_000_000, 5]) {
        let settings = small().clock(Arc::new(Set(AtomicU64::new(seconds))));
        let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
        let position = must_append(&journal, number, 100);
        assert!(position > last, "at {seconds} seconds");
        flush(&journal);
        last = position;
        written.push(bytes(number, 100));
        assert!(
            all(&journal)
                .into_iter()
                .map(|entry| entry.record)
                .eq(written.clone())
        );
    }
}

/// A disk with durable records, one that is torn, erased bytes whose key is still there, and a checkpoint.
fn torn() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    erasing::append(&journal, 2, (&[blob(7, 300)], None)).unwrap();
    erasing::append(&journal, 3, (&[blob(8, 300)], None)).unwrap();
    flush(&journal);
    let at = must_append(&journal, 4, 100);
    flush(&journal);
    crate::records::put_checkpoint(&journal, at, &[b"all"]).unwrap();
    erasing::append(&journal, 5, (&[], Some(7))).unwrap();
    must_append(&journal, 6, 3000);
    // Up to within the writes of the last two.
    let before = disk.operations();
    let whole = disk.after_kill();
    disk.cut_power_at(before + 4);
    while journal.work(Work::Prepare) || journal.work(Work::Write) {}
    drop(whole);
    disk.after_power_cut(11)
}

/// What an opening finds: the records, and which bytes are there.
fn told(journal: &DiskJournal) -> (usize, [Option<usize>; 2]) {
    let read = |node| erasing::read(journal, node).map(|bytes| bytes.len());
    (all(journal).len(), [7, 8].map(read))
}

#[test]
fn openings_that_end_at_any_of_their_operations_twice_find_the_same() {
    let torn = torn();
    let due = told(&open(&torn.after_kill()).unwrap());
    assert!(due.0 >= 4 && due.1[1] == Some(300), "{due:?}");
    // How many operations an opening has.
    let whole = torn.after_kill();
    let begin = whole.operations();
    let journal = open(&whole).unwrap();
    let operations = whole.operations() - begin;
    drop(journal);
    assert!(operations > 10, "{operations}");
    let mut random = Random(5);
    for first in 0..operations {
        let once = torn.after_kill();
        once.cut_power_at(once.operations() + first);
        assert!(open(&once).is_err(), "operation {first}");
        let once = match random.below(4) {
            0 => once.after_kill(),
            _ => once.after_power_cut(random.below(1 << 30)),
        };
        for second in (first % 5..operations).step_by(5) {
            let twice = once.after_kill();
            twice.cut_power_at(twice.operations() + second);
            drop(open(&twice));
            let twice = twice.after_power_cut(random.below(1 << 30));
            let journal = open(&twice).unwrap();
            assert_eq!(told(&journal), due, "operations {first} and {second}");
            assert!(pollster::block_on(journal.last()).unwrap().is_some());
        }
    }
}
