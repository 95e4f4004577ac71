//! A journal that is cut off at any byte opens with every record that is whole; one that is damaged at any byte says
//! where.

use crate::records::{all, bytes, flush, must_append, open};
use weald_journal::{DiskJournal, OpenError, Settings, SimulatedDisk, Work};

const FIRST: &str = "0000000000000001-00000001.segment";

/// A run of ten records, synced after each third one; returns the disk and where the written bytes end.
fn recorded() -> (SimulatedDisk, Vec<usize>) {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut ends = vec![128];
    for number in 1..=10 {
        let position = must_append(&journal, number, 60);
        ends.push(usize::try_from(position.0 & 0xFFFF_FFFF).unwrap());
        journal.work(Work::Write);
        if number % 3 == 0 {
            journal.work(Work::Sync);
        }
    }
    drop(journal);
    (disk, ends)
}

fn check(journal: &DiskJournal, whole: u64, what: &str) {
    let found = all(journal);
    assert_eq!(found.len() as u64, whole, "{what}");
    for (entry, number) in found.iter().zip(1..) {
        assert_eq!(entry.record, bytes(number, 60), "{what}");
    }
}

#[test]
fn a_run_that_is_cut_at_any_byte_opens_with_all_records_that_are_whole() {
    let (disk, ends) = recorded();
    let written = disk.file(FIRST).unwrap();
    for cut in 128..=ends[10] {
        let what = format!("cut at byte {cut}");
        let mut bytes_left = written.clone();
        bytes_left[cut..].fill(0);
        let disk = disk.after_kill();
        disk.set_file(FIRST, Some(&bytes_left));
        let whole = ends.iter().filter(|end| **end <= cut).count() as u64 - 1;
        let journal = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        check(&journal, whole, &what);
        must_append(&journal, whole + 1, 60);
        flush(&journal);
        drop(journal);
        let journal = open(&disk.after_power_cut(cut as u64)).unwrap();
        check(&journal, whole + 1, &what);
    }
}

#[test]
fn damage_at_any_byte_is_an_error_with_its_place_or_was_not_durable() {
    let (disk, ends) = recorded();
    let written = disk.file(FIRST).unwrap();
    // The last mark was written before the tenth record, and says that nine are durable.
    for at in 0..ends[10] {
        let what = format!("byte {at}");
        let mut damaged = written.clone();
        damaged[at] ^= 0x20;
        let disk = disk.after_kill();
        disk.set_file(FIRST, Some(&damaged));
        match open(&disk) {
            Ok(journal) => {
                assert!(at >= ends[9], "{what} was durable, and nobody noticed");
                check(&journal, 9, &what);
            }
            Err(OpenError::Damaged { damage, .. }) => {
                assert!(
                    at < ends[9],
                    "{what} was not durable, and it was taken for damage"
                );
                assert_eq!(damage.file, FIRST);
                let frame = if at < 128 { 0 } else { 128 };
                assert!(
                    (frame..=at as u64).contains(&damage.offset),
                    "{what}: {damage}"
                );
                let text = damage.to_string();
                assert!(text.contains(FIRST) && text.contains(&damage.offset.to_string()));
                assert_eq!(disk.file(FIRST).unwrap(), damaged, "{what}: it was changed");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// A mark of what is durable also precedes a long record, and one that brings erasable bytes.
#[test]
fn damage_among_long_records_is_an_error() {
    let disk = SimulatedDisk::new();
    let settings = Settings::new().segment(1 << 16).by_hand();
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    for number in 1..=3 {
        must_append(&journal, number, 17_000);
        while journal.work(Work::Write) || journal.work(Work::Sync) {}
    }
    let disk = disk.after_kill();
    drop(journal);
    let names = disk.names();
    let first = names.iter().find(|name| name.ends_with("1.segment"));
    let first = first.unwrap();
    let written = disk.file(first).unwrap();
    for at in [200, 18_000] {
        let mut damaged = written.clone();
        damaged[at] ^= 1;
        disk.set_file(first, Some(&damaged));
        assert!(
            matches!(open(&disk), Err(OpenError::Damaged { .. })),
            "byte {at}"
        );
    }
    disk.set_file(first, Some(&written));
    assert_eq!(all(&open(&disk).unwrap()).len(), 3);
}

#[test]
fn a_missing_segment_in_the_middle_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    for number in 1..=30 {
        must_append(&journal, number, 300);
        flush(&journal);
    }
    drop(journal);
    let name = "0000000000000001-00000003.segment";
    assert!(disk.file(name).is_some());
    drop(open(&disk).unwrap());
    disk.set_file(name, None);
    match open(&disk) {
        Err(OpenError::Damaged { damage, .. }) => assert_eq!(damage.file, name),
        other => panic!("it was opened: {other:?}"),
    }
}
