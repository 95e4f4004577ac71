//! A journal that is opened on a full disk: it erases and reads, with the room that was kept for that.

use weald_forest::journal::{AppendError, Appended};
use weald_journal::{DiskJournal, OpenError, Settings, SimulatedDisk, Work};

use crate::erasing::{self, blob};
use crate::records::{all, append, flush, is_durable, must_append, open, small};

/// Segments that are longer than what is kept for one.
fn long() -> Settings {
    small().segment(256 * 1024)
}

fn open_with(disk: &SimulatedDisk, settings: Settings) -> Result<DiskJournal, OpenError> {
    DiskJournal::open_on(disk.clone(), settings)
}

/// Each node up to this one has bytes; the next record has the number behind it.
fn with_blobs(disk: &SimulatedDisk, settings: Settings, nodes: u64) -> DiskJournal {
    let journal = open_with(disk, settings).unwrap();
    for node in 1..=nodes {
        erasing::append(&journal, node, (&[blob(node, 20)], None)).unwrap();
    }
    flush(&journal);
    journal
}

fn reserve(disk: &SimulatedDisk) -> usize {
    disk.file("reserve").map_or(0, |file| file.len())
}

fn must_be_refused(journal: &DiskJournal, number: u64, len: usize) {
    let Ok(Appended::Sent(answer)) = append(journal, number, len) else {
        panic!("there is room for {len} bytes");
    };
    while journal.work(Work::Prepare) {}
    assert_eq!(pollster::block_on(answer), Err(AppendError::Full));
}

/// What ends at once; the disk is full to the last byte from then on.
fn killed_and_full(journal: DiskJournal, disk: &SimulatedDisk) -> SimulatedDisk {
    drop(journal);
    let disk = disk.after_kill();
    disk.set_room(Some(disk.used()));
    disk
}

#[test]
fn whoever_opens_a_journal_on_a_full_disk_reads_and_erases() {
    for (settings, segment) in [(small(), 2048), (long(), 128 * 1024)] {
        let disk = SimulatedDisk::new();
        let mut journal = with_blobs(&disk, settings.clone(), 12);
        let mut disk = disk;
        for node in 1..=4 {
            disk = killed_and_full(journal, &disk);
            journal = open_with(&disk, settings.clone()).unwrap();
            let number = 12 + 2 * node;
            assert_eq!(all(&journal).len() as u64, 10 + 2 * node, "readers go on");
            // The records of an opening have room; the rest is left to erasures.
            disk.set_room(Some(disk.used()));
            must_append(&journal, number - 1, 10);
            journal.work(Work::Write);
            must_be_refused(&journal, number, 1000);
            assert!(erasing::read(&journal, node).is_some());
            let erased = erasing::append(&journal, number, (&[], Some(node)));
            flush(&journal);
            assert!(is_durable(&journal, erased.expect("erasing needs no room")));
            assert_eq!(erasing::read(&journal, node), None);
            assert!(erasing::read(&journal, 12).is_some());
        }
        disk.set_room(None);
        must_append(&journal, 21, 1000);
        must_append(&journal, 22, 40_000);
        flush(&journal);
        let kept = reserve(&disk);
        assert!(kept >= segment + 2 * 4096, "{kept} for the next time");
        drop(journal);
        let journal = open_with(&disk, settings).unwrap();
        assert_eq!(all(&journal).len(), 22);
        let left = (1..=12).filter(|node| erasing::read(&journal, *node).is_some());
        assert_eq!(left.collect::<Vec<_>>(), (5..=12).collect::<Vec<_>>());
    }
}

#[test]
fn some_hundred_erasures_have_room_after_an_opening_on_a_full_disk() {
    let disk = SimulatedDisk::new();
    let journal = with_blobs(&disk, long(), 250);
    let disk = killed_and_full(journal, &disk);
    let journal = open_with(&disk, long()).unwrap();
    for node in 1..=250 {
        let erased = erasing::append(&journal, 250 + node, (&[], Some(node)));
        assert!(erased.is_some(), "erasure {node}");
        journal.work(Work::Write);
    }
    assert_eq!(erasing::read(&journal, 250), None);
}

#[test]
fn power_cuts_while_a_journal_is_opened_on_a_full_disk_lose_nothing() {
    let full = SimulatedDisk::new();
    let journal = with_blobs(&full, small(), 5);
    let full = killed_and_full(journal, &full);
    let mut operation = 0;
    loop {
        let disk = full.after_kill();
        disk.set_room(Some(disk.used()));
        disk.cut_power_at(operation);
        let is_open = open(&disk).is_ok();
        for seed in 0..5 {
            let disk = disk.after_power_cut(seed);
            // The freed room is still there for it.
            disk.set_room(Some(full.used()));
            let what = format!("operation {operation}, seed {seed}");
            let journal = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(all(&journal).len(), 5, "{what}");
            let erased = erasing::append(&journal, 6, (&[], Some(1)));
            assert!(erased.is_some(), "{what}");
            flush(&journal);
            let left = (1..=5).map(|node| erasing::read(&journal, node).is_some());
            assert_eq!(
                left.collect::<Vec<_>>(),
                [false, true, true, true, true],
                "{what}"
            );
        }
        if is_open {
            break;
        }
        operation += 1;
    }
    assert!(operation > 20, "only {operation} operations");
}

#[test]
fn no_segment_is_prepared_and_no_key_taken_without_what_the_next_opening_needs() {
    let disk = SimulatedDisk::new();
    disk.set_room(Some(2048 + 64));
    // The first opening needs nothing but its segment.
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 1000);
    disk.set_room(Some(disk.used() + 2048 + 100));
    must_be_refused(&journal, 2, 1000);
    let bytes = &[blob(1, 10)];
    assert!(erasing::append(&journal, 2, (bytes, None)).is_none());
    disk.set_room(Some(disk.used() + 2 * 2048));
    must_append(&journal, 2, 1000);
    assert!(reserve(&disk) >= 2048);
    disk.set_room(None);
    erasing::append(&journal, 3, (bytes, None)).unwrap();
    assert!(reserve(&disk) > 2048 + 2 * 16 * 1024, "{}", reserve(&disk));
}

#[test]
fn an_opening_that_fails_leaves_what_the_next_one_needs() {
    let full = SimulatedDisk::new();
    let journal = with_blobs(&full, small(), 3);
    let full = killed_and_full(journal, &full);
    let mut failed = 0;
    for operation in 0.. {
        let disk = full.after_kill();
        disk.set_room(Some(full.used()));
        disk.fail_operation(operation);
        if open(&disk).is_ok() && disk.operations() < operation {
            break;
        }
        failed += 1;
        let disk = disk.after_kill();
        disk.set_room(Some(full.used()));
        let journal = open(&disk).unwrap_or_else(|error| panic!("operation {operation}: {error}"));
        assert_eq!(all(&journal).len(), 3);
    }
    assert!(failed > 20, "only {failed} operations");
    // Somebody else takes the room.
    full.set_room(Some(full.used() - reserve(&full)));
    let error = open(&full).unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    full.set_room(None);
    assert_eq!(all(&open(&full).unwrap()).len(), 3);
}

#[test]
fn whoever_needs_the_room_may_remove_the_reserve_of_an_open_journal() {
    let disk = SimulatedDisk::new();
    let journal = with_blobs(&disk, small(), 2);
    let kept = reserve(&disk);
    assert!(kept > 0);
    disk.set_file("reserve", None);
    for number in 3..=20 {
        must_append(&journal, number, 700);
        flush(&journal);
    }
    assert_eq!(all(&journal).len(), 20);
    // More keys need more of it.
    for node in 21..=300 {
        erasing::append(&journal, node, (&[blob(node % 200 + 1, 20)], None)).unwrap();
    }
    flush(&journal);
    assert!(reserve(&disk) > kept);
}
