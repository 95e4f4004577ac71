//! Large records that are written ahead: nobody waits behind their bytes, and what was written in vain is never found.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use weald_forest::journal::{AppendError, Appended, Journal, Later, Level, Position, Record, Room};
use weald_journal::{DiskJournal, Medium, SimulatedDisk, Work};

use crate::crash::Random;
use crate::hooked::{Hooked, Hooks};
use crate::records::{
    all, append, bytes, changes, flush, is_durable, must_append, open, put_checkpoint, with,
};

/// Longer than some segments of these tests together.
const LARGE: usize = 5_000;

/// A record that is yet to be appended, and its author's wait.
pub(crate) struct Large {
    number: u64,
    changes: Vec<Arc<Vec<u8>>>,
    wait: Option<Later<'static, Room>>,
    _room: Option<Room>,
}

impl Large {
    pub(crate) fn new(journal: &DiskJournal, number: u64, len: usize) -> Self {
        let changes = changes(number, len);
        let wait = journal.when_room(len, &changes, &[]);
        Self {
            number,
            changes,
            wait,
            _room: None,
        }
    }

    /// Whether its author may append it.
    pub(crate) fn is_let_in(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(wait) = &mut self.wait
            && let Poll::Ready(room) = wait.as_mut().poll(&mut cx)
        {
            (self._room, self.wait) = (Some(room), None);
        }
        self.wait.is_none()
    }

    /// Appends it with this number.
    pub(crate) fn append(
        &self,
        journal: &DiskJournal,
        number: u64,
    ) -> (Result<Appended, AppendError>, Vec<u8>) {
        let mut bytes = Vec::new();
        let appended = with(number, 0, |record| {
            let changes = &self.changes;
            let record = Record { changes, ..*record };
            record.write(&mut bytes);
            journal.append(&record)
        });
        (appended, bytes)
    }

    fn must_append(&self, journal: &DiskJournal) -> Position {
        match self.append(journal, self.number).0 {
            Ok(Appended::Accepted(position)) => position,
            Ok(Appended::Sent(_)) => panic!("it has no place"),
            Err(error) => panic!("it was refused: {error}"),
        }
    }
}

fn check(journal: &DiskJournal, lens: &[usize]) {
    let found: Vec<_> = all(journal).into_iter().map(|entry| entry.record).collect();
    let known: Vec<_> = (1..)
        .zip(lens)
        .map(|(number, len)| bytes(number, *len))
        .collect();
    assert!(found == known, "{} of {} records", found.len(), known.len());
}

/// How many bytes the next write of the journal has: this many of its operations.
fn writes(disk: &SimulatedDisk, journal: &DiskJournal) -> u64 {
    let before = disk.operations();
    journal.work(Work::Write);
    disk.operations() - before
}

#[test]
fn what_a_large_record_changes_is_written_before_it_is_appended() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    let mut large = Large::new(&journal, 3, LARGE);
    assert!(!large.is_let_in());
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    // Others commit meanwhile, and are written.
    let position = must_append(&journal, 2, 100);
    journal.work(Work::Write);
    assert!(journal.reached(Level::Buffered) >= position);
    let position = large.must_append(&journal);
    must_append(&journal, 4, 100);
    // Its first frame and that of the record behind, and a head for each of its segments.
    assert!(writes(&disk, &journal) < 8);
    assert!(journal.reached(Level::Buffered) >= position);
    check(&journal, &[100, 100, LARGE, 100]);
    let killed = disk.after_kill();
    flush(&journal);
    assert!(is_durable(&journal, position));
    for disk in [killed, disk.after_power_cut(3), disk.after_kill()] {
        let journal = open(&disk).unwrap();
        check(&journal, &[100, 100, LARGE, 100]);
        must_append(&journal, 5, 100);
        flush(&journal);
        check(
            &open(&disk.after_power_cut(4)).unwrap(),
            &[100, 100, LARGE, 100, 100],
        );
    }
}

/// It lies before the checkpoint, where all other segments are full.
#[test]
fn an_opening_shortens_the_segment_in_front_of_what_was_written_ahead() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    let mut large = Large::new(&journal, 2, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    large.must_append(&journal);
    let last = (3..=12)
        .map(|number| must_append(&journal, number, 600))
        .max();
    flush(&journal);
    put_checkpoint(&journal, last.unwrap(), &[b"all"]).unwrap();
    drop(journal);
    let lens = || -> Vec<u64> {
        let mut names = disk.list().unwrap();
        names.retain(|name| name.ends_with(".segment"));
        names.sort_unstable();
        let len = |name: &String| disk.open(name).unwrap().len().unwrap();
        names.iter().map(len).collect()
    };
    assert_eq!(lens()[..3], [2048; 3]);
    let journal = open(&disk).unwrap();
    let after = lens();
    assert!(after[0] < 1024, "{after:?}");
    assert_eq!(after[1..3], [2048; 2], "what is full stays");
    let mut expected = vec![100, LARGE];
    expected.resize(12, 600);
    check(&journal, &expected);
}

/// Whether a file has these bytes.
fn is_in_a_file(disk: &SimulatedDisk, bytes: &[u8]) -> bool {
    let files = disk.names().into_iter().filter_map(|name| disk.file(&name));
    let has = |file: Vec<u8>| file.windows(bytes.len()).any(|part| part == bytes);
    files.into_iter().any(has)
}

#[test]
fn what_is_not_appended_is_removed_before_anybody_gets_its_place() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    let mut large = Large::new(&journal, 2, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    let part = &changes(2, LARGE)[0][..300];
    assert!(is_in_a_file(&disk, part));
    drop(large);
    assert!(journal.work(Work::Prepare));
    assert!(!is_in_a_file(&disk, part));
    while journal.work(Work::Prepare) {}
    let lens = [100; 40];
    (2..=40).for_each(|number| _ = must_append(&journal, number, 100));
    flush(&journal);
    check(&journal, &lens);
    check(&open(&disk.after_kill()).unwrap(), &lens);
    check(&open(&disk.after_power_cut(2)).unwrap(), &lens);
}

/// Begins to write a large record ahead: one frame of it is written.
pub(crate) fn begin(disk: &SimulatedDisk, journal: &DiskJournal, number: u64) -> Large {
    let mut large = Large::new(journal, number, LARGE);
    let part = &changes(number, LARGE)[0][..300];
    while !is_in_a_file(disk, part) {
        assert!(journal.work(Work::Prepare));
    }
    assert!(!large.is_let_in(), "more than a frame is written");
    large
}

#[test]
fn who_lacks_a_segment_is_served_between_two_frames_of_what_is_written_ahead() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut large = begin(&disk, &journal, 40);
    let (mut number, mut waits) = (0, None);
    while waits.is_none() {
        number += 1;
        if let Appended::Sent(answer) = append(&journal, number, 300).unwrap() {
            waits = Some(answer);
        }
    }
    // What was written is removed, and a segment is prepared.
    assert!(journal.work(Work::Prepare) && journal.work(Work::Prepare));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waits.unwrap().as_mut().poll(&mut cx).is_ready());
    assert!(large.is_let_in(), "it is appended as if it had not asked");
    let lens = [300; 39];
    (number + 1..=39).for_each(|number| _ = must_append(&journal, number, 300));
    let (appended, _) = large.append(&journal, 40);
    assert!(place_of(&journal, appended).is_some());
    flush(&journal);
    check(&journal, &[&lens[..], &[LARGE]].concat());
    let disk = disk.after_power_cut(1);
    check(&open(&disk).unwrap(), &[&lens[..], &[LARGE]].concat());
}

#[test]
fn who_lacks_room_for_keys_is_served_between_two_frames_and_the_rest_is_written() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut large = begin(&disk, &journal, 2);
    let blob = crate::erasing::blob(1, 10);
    let sent = with(1, 40, |record| {
        let blobs = std::slice::from_ref(&blob);
        journal.append(&Record { blobs, ..*record })
    });
    let Ok(Appended::Sent(mut waits)) = sent else {
        panic!("there was room for its key");
    };
    assert!(journal.work(Work::Prepare));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(waits.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    assert!(!large.is_let_in());
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    large.must_append(&journal);
    flush(&journal);
    assert_eq!(all(&open(&disk.after_kill()).unwrap()).len(), 2);
}

#[test]
fn what_was_written_ahead_is_taken_by_a_full_buffer() {
    let settings = crate::records::small().buffer(1);
    let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
    let mut large = Large::new(&journal, 2, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    must_append(&journal, 1, 100);
    large.must_append(&journal);
    assert!(matches!(append(&journal, 3, 100), Ok(Appended::Sent(_))));
}

/// File systems that never write in place need room for that, too.
#[test]
fn a_disk_that_is_full_while_it_is_written_ahead_ends_nothing() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, crate::records::small()).unwrap();
    let blob = crate::erasing::blob(1, 10);
    crate::erasing::append(&journal, 1, (&[blob], None)).unwrap();
    flush(&journal);
    let mut large = begin(&disk, &journal, 3);
    hooks.on_write(|| Err(std::io::Error::from_raw_os_error(28)));
    assert!(journal.work(Work::Prepare));
    assert!(large.is_let_in());
    let (refused, _) = large.append(&journal, 2);
    while journal.work(Work::Prepare) {}
    let Ok(Appended::Sent(refused)) = refused else {
        panic!("it has a place");
    };
    assert_eq!(pollster::block_on(refused), Err(AppendError::Full));
    hooks.on_write(|| Ok(()));
    assert_eq!(all(&journal).len(), 1, "readers go on");
    // So does what needs no room.
    crate::erasing::append(&journal, 2, (&[], Some(1))).unwrap();
    let (appended, _) = large.append(&journal, 3);
    assert!(place_of(&journal, appended).is_some());
    flush(&journal);
    drop(journal);
    let journal = open(&disk).unwrap();
    assert_eq!(all(&journal).len(), 3);
    assert_eq!(crate::erasing::read(&journal, 1), None);
}

#[test]
fn who_lacks_room_behind_it_does_not_wait_for_its_author() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut large = Large::new(&journal, 40, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    let lens = [300; 39];
    // The segment in front is full after a few, and then the author is too late.
    (1..=39).for_each(|number| _ = must_append(&journal, number, 300));
    let appended = large.append(&journal, 40).0.unwrap();
    if let Appended::Sent(answer) = appended {
        while journal.work(Work::Prepare) || journal.work(Work::Write) {}
        pollster::block_on(answer).unwrap();
    }
    flush(&journal);
    check(&journal, &[&lens[..], &[LARGE]].concat());
    check(
        &open(&disk.after_power_cut(1)).unwrap(),
        &[&lens[..], &[LARGE]].concat(),
    );
}

/// Another record of the same length, and the same one with other changes, are not what was written ahead.
#[test]
fn only_the_record_that_was_written_ahead_gets_its_place() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut large = Large::new(&journal, 1, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    let other = append(&journal, 1, LARGE).unwrap();
    let Appended::Sent(answer) = other else {
        panic!("it was taken for the other one");
    };
    while journal.work(Work::Prepare) || journal.work(Work::Write) {}
    pollster::block_on(answer).unwrap();
    flush(&journal);
    check(&journal, &[LARGE]);
}

#[test]
fn a_full_disk_takes_no_segment_from_what_is_written_ahead() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    flush(&journal);
    let mut large = Large::new(&journal, 1, LARGE);
    while journal.work(Work::Prepare) {}
    assert!(large.is_let_in());
    disk.set_room(Some(disk.used()));
    // There is no room for its key.
    assert_eq!(
        crate::erasing::append(&journal, 1, (&[crate::erasing::blob(1, 10)], None)),
        None
    );
    large.must_append(&journal);
    flush(&journal);
    check(&journal, &[LARGE]);
    check(&open(&disk.after_power_cut(1)).unwrap(), &[LARGE]);
}

/// Where a record is, if it was taken.
fn place_of(journal: &DiskJournal, appended: Result<Appended, AppendError>) -> Option<Position> {
    match appended {
        Ok(Appended::Accepted(position)) => Some(position),
        Ok(Appended::Sent(mut answer)) => {
            while journal.work(Work::Prepare) || journal.work(Work::Write) {}
            let mut cx = Context::from_waker(Waker::noop());
            match answer.as_mut().poll(&mut cx) {
                Poll::Ready(position) => position.ok(),
                Poll::Pending => None,
            }
        }
        Err(_) => None,
    }
}

/// Records are written ahead, appended and given up at random, and the power is cut at any operation: what is found is
/// a beginning of what was accepted, with all that was durable.
fn cut(seed: u64) {
    let mut random = Random(seed);
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    disk.cut_power_at(disk.operations() + random.below(150));
    let (mut known, mut positions, mut durable) = (Vec::new(), Vec::new(), 0);
    let mut large: Option<Large> = None;
    for _ in 0..60 {
        let number = known.len() as u64 + 1;
        let mut accept = |appended, bytes: Vec<u8>| match place_of(&journal, appended) {
            None => false,
            Some(position) => {
                known.push(bytes);
                positions.push(position);
                true
            }
        };
        let goes_on = match random.below(8) {
            0 if large.is_none() => {
                large = Some(Large::new(&journal, number, LARGE));
                true
            }
            0 => {
                large = None;
                true
            }
            1 | 2 => {
                while journal.work(Work::Prepare) {}
                true
            }
            3 if large.as_mut().is_some_and(Large::is_let_in) => match large.take() {
                Some(it) => {
                    let (appended, bytes) = it.append(&journal, number);
                    accept(appended, bytes)
                }
                None => true,
            },
            4 | 5 => accept(append(&journal, number, 200), bytes(number, 200)),
            work => {
                journal.work([Work::Write, Work::Sync][usize::from(work == 7)]);
                true
            }
        };
        durable = durable.max(
            positions
                .iter()
                .filter(|it| is_durable(&journal, **it))
                .count(),
        );
        if !goes_on {
            break;
        }
    }
    for cut in 0..2 {
        let journal = open(&disk.after_power_cut(seed * 2 + cut));
        let journal = journal.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let found: Vec<_> = all(&journal)
            .into_iter()
            .map(|entry| entry.record)
            .collect();
        let len = found.len();
        assert!(
            (durable..=known.len()).contains(&len),
            "seed {seed}: {len} of {durable}"
        );
        assert!(found == known[..len], "seed {seed}");
    }
}

#[test]
fn a_power_cut_finds_nothing_of_what_was_given_up_and_all_that_was_durable() {
    (0..400).for_each(cut);
}
