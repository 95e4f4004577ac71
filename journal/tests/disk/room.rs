//! Authors of large records, who wait for room before they append.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use weald_forest::journal::{Appended, Journal, Later, Room};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

use crate::records::{all, append, flush, must_append, open, small};

/// Longer than some segments of these tests together.
const LARGE: usize = 9_000;

fn is_ready(room: &mut Later<'static, Room>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    Pin::new(room).poll(&mut cx).is_ready()
}

fn ask(journal: &DiskJournal) -> Later<'static, Room> {
    journal
        .when_room(LARGE, &[], &[])
        .expect("there is not so much room")
}

#[test]
fn while_a_large_record_waits_for_room_others_are_appended() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    let mut room = ask(&journal);
    assert!(!is_ready(&mut room));
    assert!(matches!(
        append(&journal, 2, 100),
        Ok(Appended::Accepted(_))
    ));
    while journal.work(Work::Prepare) {}
    assert!(is_ready(&mut room));
    assert!(journal.when_room(LARGE, &[], &[]).is_none());
    assert!(matches!(
        append(&journal, 3, LARGE),
        Ok(Appended::Accepted(_))
    ));
    assert!(matches!(
        append(&journal, 4, 100),
        Ok(Appended::Accepted(_))
    ));
    flush(&journal);
    assert_eq!(all(&journal).len(), 4);
}

#[test]
fn whoever_waits_for_room_appends_if_there_will_be_none() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    let mut room = ask(&journal);
    disk.set_room(Some(disk.used() + 3_000));
    while journal.work(Work::Prepare) {}
    assert!(is_ready(&mut room), "the disk is full");
    assert!(
        journal.when_room(LARGE, &[], &[]).is_none(),
        "and is known to be"
    );
    disk.set_room(None);

    let journal = open(&SimulatedDisk::new()).unwrap();
    let mut room = ask(&journal);
    journal.close();
    assert!(is_ready(&mut room), "the journal is closed");
    assert!(journal.when_room(LARGE, &[], &[]).is_none());
}

#[test]
fn no_room_is_made_for_an_author_who_is_gone() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    flush(&journal);
    let used = disk.used();
    drop(ask(&journal));
    let mut room = ask(&journal);
    assert!(!is_ready(&mut room));
    drop(room);
    while journal.work(Work::Prepare) {}
    let mut segments = 0;
    while disk.used() > used + segments * 2048 {
        segments += 1;
    }
    assert!(segments <= 1, "{segments} segments");
}

#[test]
fn an_author_of_a_small_record_waits_while_the_buffer_is_full() {
    let settings = small().segment(64 << 10).buffer(500);
    let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
    assert!(journal.when_room(0, &[], &[]).is_none());
    must_append(&journal, 1, 600);
    let mut room = journal.when_room(0, &[], &[]).expect("the buffer is full");
    assert!(!is_ready(&mut room));
    while journal.work(Work::Write) {}
    assert!(is_ready(&mut room), "it was written");
    assert!(journal.when_room(0, &[], &[]).is_none());
}

#[test]
fn nothing_is_prepared_for_a_record_that_is_too_long_for_a_journal() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    flush(&journal);
    let used = disk.used();
    // The same mebibyte again and again.
    let piece = Arc::new(vec![7; 1 << 20]);
    let changes = vec![piece; 1025];
    assert!(journal.when_room(1025 << 20, &changes, &[]).is_none());
    assert!(!journal.work(Work::Prepare));
    assert_eq!(disk.used(), used);
}
