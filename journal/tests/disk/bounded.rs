//! An opening reads what is behind the newest checkpoint, and no more, however many openings and segments there were
//! before.

use weald_forest::journal::{Appended, Journal, Position};
use weald_journal::{DiskJournal, ReadOnlyJournal, SimulatedDisk, Work};

use crate::counted::Counted;
use crate::crash::Random;
use crate::records::{
    all, append, bytes, flush, is_durable, must_append, open, put_checkpoint, small,
};

/// Opens a copy for writing, and another one for reading; returns how many files they opened and how many bytes they
/// read.
fn read_by_openings(disk: &SimulatedDisk) -> [(usize, usize); 2] {
    let (writer, reader) = (Counted::after_kill(disk), Counted::after_kill(disk));
    drop(DiskJournal::open_on(writer.clone(), small()).unwrap());
    ReadOnlyJournal::open_on(reader.clone()).unwrap();
    [writer.counts(), reader.counts()]
}

fn checkpoints(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".checkpoint")).collect()
}

fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".segment")).collect()
}

/// Two of three openings have a record.
fn open_and_append(disk: &SimulatedDisk, opening: u64) -> (DiskJournal, Option<Position>) {
    let journal = open(disk).unwrap();
    let position = (!opening.is_multiple_of(3)).then(|| must_append(&journal, opening, 300));
    flush(&journal);
    (journal, position)
}

#[test]
fn hundreds_of_openings_make_none_longer() {
    let disk = SimulatedDisk::new();
    let mut counts = Vec::new();
    let mut due = Vec::new();
    for opening in 1..=400_u64 {
        let (journal, position) = open_and_append(&disk, opening);
        due.extend(position.map(|_| bytes(opening, 300)));
        if let Some(at) = position.filter(|_| opening % 20 == 1 || opening % 20 == 2) {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
        drop(journal);
        if opening % 60 == 40 {
            counts.push(read_by_openings(&disk));
        }
    }
    let [first, .., last] = &counts[..] else {
        panic!("they were counted")
    };
    let count = segments(&disk).len();
    assert!(count >= 400, "{count} segments");
    for (first, last) in first.iter().zip(last) {
        assert_eq!(first.0, last.0, "how many files were opened");
        // The list is read by the one who looks for the segments, and again by the one who checks the checkpoint.
        let more = last.1.saturating_sub(first.1);
        assert!(more <= 2 * 16 * count, "{more} bytes more");
        assert!(last.0 < 100, "{} files", last.0);
    }
    // All of it can be read, from the first record on.
    let found = all(&open(&disk).unwrap());
    assert!(found.into_iter().map(|entry| entry.record).eq(due));
}

#[test]
fn segments_of_one_opening_before_a_checkpoint_are_not_looked_at() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut counts = Vec::new();
    for number in 1..=200 {
        let at = must_append(&journal, number, 700);
        flush(&journal);
        if number % 50 == 0 {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
            // It becomes known as durable.
            journal.work(Work::Mark);
            flush(&journal);
            counts.push(read_by_openings(&disk).map(|(files, _)| files));
        }
    }
    assert!(segments(&disk).len() >= 100);
    assert!(counts.iter().all(|it| *it == counts[0]), "{counts:?}");
}

/// The newest checkpoint as it was written before there were lists: this one has nothing else.
fn without_list(disk: &SimulatedDisk) {
    let name = checkpoints(disk).pop().unwrap();
    let bytes = disk.file(&name).unwrap();
    let end = bytes.windows(8).position(|it| it == [255; 8]).unwrap() + 12;
    assert!(end < bytes.len());
    disk.set_file(&name, Some(&bytes[..end]));
}

#[test]
fn a_checkpoint_without_a_list_does_as_well() {
    let disk = SimulatedDisk::new();
    for opening in 1..=12 {
        let (journal, position) = open_and_append(&disk, opening);
        if let Some(at) = position {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
    }
    let due = all(&open(&disk.after_kill()).unwrap());
    assert_eq!(due.len(), 8);
    without_list(&disk);
    for opening in 13..=15 {
        let (journal, position) = open_and_append(&disk, opening);
        let found = all(&journal);
        assert!(found.starts_with(&due));
        // The next one has a list again, of all segments.
        if let Some(at) = position {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
    }
    let names = segments(&disk).len();
    assert!(all(&open(&disk).unwrap()).starts_with(&due));
    assert!(segments(&disk).len() >= names, "one was removed");
}

#[test]
fn what_a_list_has_and_the_directory_lacks_is_damage_unless_all_before_it_was_trimmed() {
    let disk = SimulatedDisk::new();
    for opening in 1..=9 {
        let (journal, position) = open_and_append(&disk, opening);
        if let Some(at) = position {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
    }
    let names = segments(&disk);
    let last = checkpoints(&disk).pop().unwrap();
    let own = names
        .iter()
        .position(|name| name[..16] == last[..16])
        .unwrap();
    assert!(own >= 6, "{names:?}");
    for lost in &names[1..own] {
        let disk = disk.after_kill();
        disk.set_file(lost, None);
        let before = disk.names();
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains(lost) && error.contains("missing"), "{error}");
        assert_eq!(disk.names(), before);
    }
    for lost in 1..own {
        let disk = disk.after_kill();
        names[..lost]
            .iter()
            .for_each(|name| disk.set_file(name, None));
        for number in [10, 11] {
            let journal = ReadOnlyJournal::open_on(disk.clone()).unwrap();
            assert!(journal.is_trimmed());
            let (journal, position) = open_and_append(&disk, number);
            put_checkpoint(&journal, position.unwrap(), &[b"all"]).unwrap();
        }
    }
}

/// What openings have left, and must be found.
#[derive(Default)]
struct Left {
    durable: Vec<(Position, u64)>,
    /// What is not behind this may be gone.
    trimmed: Position,
    appended: u64,
}

impl Left {
    /// Opens, appends, puts a checkpoint, and may trim; `None`, if the power went off.
    fn step(&mut self, disk: &SimulatedDisk, random: &mut Random) -> Option<()> {
        let journal = open(disk).ok()?;
        for _ in 0..random.below(4) {
            self.appended += 1;
            let appended = append(&journal, self.appended, 500).ok()?;
            flush(&journal);
            if let Appended::Accepted(position) = appended
                && is_durable(&journal, position)
            {
                self.durable.push((position, self.appended));
            }
        }
        let Some(&(at, _)) = self.durable.last() else {
            return Some(());
        };
        put_checkpoint(&journal, at, &[&[1; 600]]).ok()?;
        if random.below(3) == 0 {
            self.trimmed = at;
            pollster::block_on(journal.trim(at)).ok()?;
        }
        Some(())
    }

    fn must_be_in(&self, journal: &DiskJournal, what: &str) {
        let found = pollster::block_on(journal.read(self.trimmed, usize::MAX));
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        let due = self.durable.iter().filter(|(at, _)| *at > self.trimmed);
        for (position, number) in due {
            let entry = found.iter().find(|entry| entry.position == *position);
            let is_it = entry.is_some_and(|entry| entry.record == bytes(*number, 500));
            assert!(is_it, "{what}: record {number} is missing");
        }
    }
}

/// Openings with records, checkpoints and trims. The power cuts one of them off; returns how many operations it may be
/// cut at.
fn openings(seed: u64, cut: Option<u64>) -> u64 {
    let mut random = Random(seed);
    let disk = SimulatedDisk::new();
    let mut left = Left::default();
    for _ in 0..3 {
        left.step(&disk, &mut random).unwrap();
    }
    let begun = disk.operations();
    if let Some(cut) = cut {
        disk.cut_power_at(begun + cut);
    }
    while left.appended < 12 && left.step(&disk, &mut random).is_some() {}
    let operations = disk.operations() - begun;
    let mut disk = disk;
    for opening in 0..3 {
        let what = format!("seed {seed}, cut {cut:?}, opening {opening}");
        disk = disk.after_power_cut(random.below(1 << 30));
        let journal = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        left.must_be_in(&journal, &what);
        let at = left.durable.last().map(|(at, _)| *at);
        if let Some(at) = at.filter(|_| opening == 1) {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
    }
    operations
}

#[test]
fn an_end_at_any_operation_of_openings_checkpoints_and_trims_leaves_what_is_listed() {
    let mut cuts = 0;
    for seed in 0..3 {
        let operations = openings(seed, None);
        cuts += operations;
        for cut in 0..operations {
            openings(seed, Some(cut));
        }
    }
    assert!(cuts > 150, "{cuts}");
}
