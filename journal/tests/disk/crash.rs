//! Wherever the power is cut: every commit that was acknowledged as durable is there, whole and once, and nothing else
//! is there in part.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::ahead::Large;
use crate::records::{
    all, append, bytes, flush, is_durable, must_append, open, put_checkpoint, read_checkpoint,
};
use weald_forest::journal::{Appended, Journal, Position};
use weald_journal::{DiskJournal, SimulatedDisk, Work};

/// A generator of numbers by a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a run has appended, and what of it was acknowledged as durable.
#[derive(Default)]
struct Run {
    accepted: Vec<(Position, Vec<u8>)>,
    durable: usize,
    /// All positions that were ever given out.
    given: BTreeSet<Position>,
}

impl Run {
    fn note(&mut self, journal: &DiskJournal) {
        let is_durable = |(position, _): &(Position, Vec<u8>)| is_durable(journal, *position);
        self.durable = self
            .accepted
            .iter()
            .take_while(|it| is_durable(it))
            .count()
            .max(self.durable);
    }

    /// Works with a journal until the medium fails.
    fn work(&mut self, journal: &DiskJournal, random: &mut Random, steps: usize) {
        let mut last = self.accepted.len() as u64;
        for _ in 0..steps {
            let goes_on = match random.below(10) {
                0..5 => {
                    let len = [9, 40, 200, 700, 3000][usize::try_from(random.below(5)).unwrap()];
                    last += 1;
                    // A record that is longer than a segment is written ahead now and then.
                    let mut large = (len == 3000).then(|| Large::new(journal, last, len));
                    if let Some(large) = &mut large {
                        (0..random.below(6)).for_each(|_| _ = journal.work(Work::Prepare));
                        large.is_let_in();
                    }
                    let large = large.filter(|_| random.below(4) > 0);
                    let appended = match &large {
                        Some(large) => large.append(journal, last).0,
                        None => append(journal, last, len),
                    };
                    match appended {
                        Ok(Appended::Accepted(position)) => self.accept(position, bytes(last, len)),
                        Ok(Appended::Sent(mut answer)) => {
                            while journal.work(Work::Prepare) || journal.work(Work::Write) {}
                            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                            match answer.as_mut().poll(&mut cx) {
                                std::task::Poll::Ready(Ok(position)) => {
                                    self.accept(position, bytes(last, len))
                                }
                                _ => false,
                            }
                        }
                        Err(_) => false,
                    }
                }
                5..7 => {
                    journal.work(Work::Write);
                    true
                }
                7 => {
                    journal.work(Work::Sync);
                    true
                }
                8 => {
                    journal.work(Work::Prepare);
                    journal.work(Work::Mark);
                    true
                }
                _ => {
                    self.note(journal);
                    if self.durable > 0 && random.below(4) == 0 {
                        let at = self.accepted[self.durable - 1].0;
                        put_checkpoint(journal, at, &[&[1; 300], &[2; 700]]).is_ok()
                    } else {
                        true
                    }
                }
            };
            self.note(journal);
            if !goes_on {
                return;
            }
        }
    }

    fn accept(&mut self, position: Position, record: Vec<u8>) -> bool {
        assert!(
            self.given.insert(position),
            "{position:?} was given out twice"
        );
        self.accepted.push((position, record));
        true
    }

    /// The records that are found are those that were accepted, up to some point behind the last
    /// durable record.
    fn check(&mut self, journal: &DiskJournal, what: &dyn Fn() -> String) {
        let found = all(journal);
        let len = found.len();
        assert!(
            len >= self.durable,
            "{}: {len} of {} durable records",
            what(),
            self.durable
        );
        assert!(
            len <= self.accepted.len(),
            "{}: there are more than were accepted",
            what()
        );
        for (entry, (position, record)) in found.iter().zip(&self.accepted) {
            assert!(
                entry.position == *position && entry.record == *record,
                "{}: {position:?} is another",
                what()
            );
        }
        let last = pollster::block_on(journal.last()).unwrap();
        assert_eq!(
            last.map(|(last, _)| last),
            found.last().map(|entry| entry.position),
            "{}",
            what()
        );
        if let Some((at, bytes)) = read_checkpoint(journal).unwrap() {
            assert!(bytes == [vec![1; 300], vec![2; 700]].concat());
            assert!(found.iter().any(|entry| entry.position == at), "{}", what());
        }
        self.accepted.truncate(len);
        self.durable = len; // Opening has made it so.
    }
}

/// Runs, and cuts the power at an operation, and twice more at opening; then continues.
fn power_cuts(seed: u64, at: u64) -> u64 {
    let what = || format!("seed {seed}, operation {at}");
    let mut random = Random(seed);
    let mut run = Run::default();
    let disk = SimulatedDisk::new();
    disk.cut_power_at(at);
    if let Ok(journal) = open(&disk) {
        run.work(&journal, &mut random, 60);
    }
    let operations = disk.operations();
    let mut disk = disk;
    for _ in 0..2 {
        disk = disk.after_power_cut(random.below(1 << 30));
        disk.cut_power_at(random.below(14));
        if let Ok(journal) = open(&disk) {
            run.check(&journal, &what);
            run.work(&journal, &mut random, 10);
        }
    }
    disk = disk.after_power_cut(random.below(1 << 30));
    let journal = open(&disk).unwrap_or_else(|error| panic!("{}: {error}", what()));
    run.check(&journal, &what);
    let number = run.accepted.len() as u64 + 1;
    let position = must_append(&journal, number, 100);
    run.accept(position, bytes(number, 100));
    flush(&journal);
    run.note(&journal);
    assert_eq!(run.durable, run.accepted.len(), "{}", what());
    drop(journal);
    let disk = disk.after_power_cut(random.below(1 << 30));
    let journal = open(&disk).unwrap_or_else(|error| panic!("{}: {error}", what()));
    run.check(&journal, &what);
    operations
}

#[test]
fn power_cuts_at_every_operation_of_a_run_lose_nothing_durable() {
    let operations = power_cuts(1, u64::MAX);
    assert!(operations > 40, "only {operations} operations");
    for at in 0..operations {
        power_cuts(1, at);
    }
}

#[test]
fn power_cuts_on_a_thousand_seeds_lose_nothing_durable() {
    for seed in 0..1000 {
        power_cuts(seed, Random(seed ^ 0x5555).below(80));
    }
}

#[test]
fn soak_power_cuts_on_more_seeds_lose_nothing_durable() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    // In a soak ten thousand, and more if there is time.
    let least = if seconds.is_some() { 11_000 } else { 1_020 };
    for seed in 1000.. {
        power_cuts(seed, Random(seed ^ 0x5555).below(80));
        if seed >= least && Instant::now() >= end {
            return;
        }
    }
}
