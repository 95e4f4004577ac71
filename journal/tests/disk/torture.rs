//! Erasable bytes through everything at once: records, erasures, checkpoints, trimming, a full disk, power cuts at any
//! operation and while opening. An opening never fails, no bytes of a durable record are lost, and none come back.

use std::time::{Duration, Instant};

use weald_forest::journal::{Checkpoint, Journal, Level, Position};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

use crate::crash::Random;
use crate::erasing::{append, blob, read};
use crate::records::{is_durable, open};

/// What a record did.
#[derive(Clone, Copy)]
enum Done {
    Plain,
    Brought(u64),
    Erased(u64),
}

#[derive(Default)]
struct Run {
    /// The records that were accepted, by position.
    records: Vec<(Position, Done)>,
    durable: usize,
    /// The number of the next record, and of the next node.
    next: u64,
}

impl Run {
    fn erased(&self, node: u64) -> bool {
        let is_it = |(_, done): &(Position, Done)| matches!(done, Done::Erased(it) if *it == node);
        self.records.iter().any(is_it)
    }

    /// The nodes that have bytes.
    fn alive(&self) -> Vec<u64> {
        let brought = self.records.iter().filter_map(|(_, done)| match done {
            Done::Brought(node) => Some(*node),
            _ => None,
        });
        brought.filter(|node| !self.erased(*node)).collect()
    }

    fn note(&mut self, journal: &DiskJournal) {
        let durable = self.records.iter();
        let durable = durable.take_while(|(position, _)| is_durable(journal, *position));
        self.durable = self.durable.max(durable.count());
    }

    fn append(&mut self, journal: &DiskJournal, random: &mut Random) {
        self.next += 1;
        let node = self.next % 200 + 1;
        let alive = self.alive();
        let done = match random.below(5) {
            0..2 if !self
                .records
                .iter()
                .any(|(_, done)| matches!(done, Done::Brought(it) if *it == node)) =>
            {
                Done::Brought(node)
            }
            2 if !alive.is_empty() => {
                let at = random.below(alive.len() as u64);
                Done::Erased(alive[usize::try_from(at).unwrap()])
            }
            _ => Done::Plain,
        };
        let len = [0, 30, 700, 3000][usize::try_from(random.below(4)).unwrap()];
        let position = match done {
            Done::Plain => append(journal, self.next, (&[], None)),
            Done::Brought(node) => append(journal, self.next, (&[blob(node, len)], None)),
            Done::Erased(node) => append(journal, self.next, (&[], Some(node))),
        };
        self.records
            .extend(position.map(|position| (position, done)));
    }

    fn checkpoint(&self, journal: &DiskJournal, trims: bool) {
        let Some(&(at, _)) = self.durable.checked_sub(1).map(|last| &self.records[last]) else {
            return;
        };
        let known = Run {
            records: self.records[..self.durable].to_vec(),
            ..Run::default()
        };
        let blobs = known
            .alive()
            .into_iter()
            .map(|node| blob(node, 0).id)
            .collect();
        let pieces = Box::new([vec![1; 200]].into_iter());
        let checkpoint = Checkpoint { at, blobs, pieces };
        if pollster::block_on(journal.put_checkpoint(checkpoint)).is_ok() && trims {
            _ = pollster::block_on(journal.trim(at));
        }
    }

    fn work(
        &mut self,
        journal: &DiskJournal,
        (disk, random): (&SimulatedDisk, &mut Random),
        steps: u64,
    ) {
        for _ in 0..steps {
            match random.below(16) {
                0..8 => self.append(journal, random),
                8..10 => _ = journal.work(Work::Write),
                10..12 => _ = journal.work(Work::Sync),
                12 => _ = journal.work(Work::Prepare) | journal.work(Work::Mark),
                13 => self.checkpoint(journal, random.below(2) == 0),
                14 => disk.set_room(Some(
                    disk.used() + usize::try_from(random.below(3000)).unwrap(),
                )),
                _ => disk.set_room(None),
            }
            self.note(journal);
        }
        disk.set_room(None);
    }

    fn check(&mut self, journal: &DiskJournal, what: &str) {
        let last = pollster::block_on(journal.last()).unwrap();
        let found = last.map_or(0, |(last, _)| {
            let at = self
                .records
                .iter()
                .position(|(position, _)| *position == last);
            at.unwrap_or_else(|| panic!("{what}: an unknown record is the last")) + 1
        });
        assert!(found >= self.durable, "{what}: {found} of {}", self.durable);
        let known = self.records.clone();
        self.records.truncate(found);
        self.durable = found;
        assert!(
            journal.reached(Level::Durable) >= last.map_or(Position::default(), |(last, _)| last)
        );
        let alive = self.alive();
        for (_, done) in known {
            if let Done::Brought(node) = done {
                let is_there = read(journal, node).is_some();
                assert_eq!(is_there, alive.contains(&node), "{what}: node {node}");
            }
        }
    }
}

fn torture(seed: u64) {
    let (mut random, mut run) = (Random(seed), Run::default());
    let mut disk = SimulatedDisk::new();
    for opening in 0..6 {
        let what = format!("seed {seed}, opening {opening}");
        disk.cut_power_at(random.below(120));
        if let Ok(journal) = open(&disk) {
            run.check(&journal, &what);
            run.work(&journal, (&disk, &mut random), 60);
        }
        disk = match random.below(4) {
            0 => disk.after_kill(),
            _ => disk.after_power_cut(random.below(1 << 30)),
        };
        if random.below(2) == 0 {
            disk.cut_power_at(random.below(25));
            let _ = open(&disk);
            disk = disk.after_power_cut(random.below(1 << 30));
        }
    }
    let journal = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    run.check(&journal, &format!("seed {seed}, in the end"));
}

#[test]
fn erasable_bytes_survive_everything_at_once() {
    (0..300).for_each(torture);
}

#[test]
fn soak_erasable_bytes_survive_everything_at_once_on_more_seeds() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    for seed in 300.. {
        torture(seed);
        if seed >= 320 && Instant::now() >= end {
            return;
        }
    }
}
