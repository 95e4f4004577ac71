//! A test: authors who write, and threads that write, sync and prepare, take turns at every operation of the medium, in
//! an order that a seed chooses; and at any of these operations the power goes off, or one fails.
//!
//! - Each party is a thread, and only the one that has the turn runs. It gives the turn away before and after each
//!   operation of the medium, and wherever it would wait. So a seed is one interleaving, and can be run again.
//! - Whatever was acknowledged must be there: what was buffered after a kill, what was durable even after the loss of
//!   power.

mod stepped;
mod turns;

use std::future::Future;
use std::ops::DerefMut;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use weald_forest::journal::{Appended, Durability, Journal, Level, Position, Record};
use weald_forest::{CommitId, Version};

use crate::core::{Core, Work};
use crate::disk_journal::DiskJournal;
use crate::lead::Buffering;
use crate::medium::Medium;
use crate::sectors::Random;
use crate::settings::Settings;
use crate::simulated::SimulatedDisk;
use crate::standing::Standing;

use stepped::Stepped;
use turns::{AUTHORS, End, HANDS, Turns};

const RECORDS: usize = 6;

fn open_on(medium: impl Medium) -> Option<DiskJournal> {
    let settings = Settings::new().segment(2048).buffer(1500).by_hand();
    DiskJournal::open_on(medium, settings.clock(Arc::new(Standing))).ok()
}

/// What was told to the authors of one run.
#[derive(Default)]
struct Told {
    /// The numbers of the last record that was appended, the last that was buffered, and the last that was
    /// durable.
    appended: u64,
    buffered: u64,
    durable: u64,
    /// How many batches authors have written.
    led: usize,
}

fn append(journal: &DiskJournal, number: u64, changes: &[Arc<Vec<u8>>]) -> Option<Appended> {
    let appended = journal.append(&Record {
        version: Version {
            incarnation: 1,
            number,
        },
        id: CommitId(number.into()),
        time: SystemTime::UNIX_EPOCH,
        digest: None,
        bytes: &[],
        changes,
        blobs: &[],
        erases: None,
    });
    appended.ok()
}

/// One run: the journal, whose turn it is, and what was told.
struct Run<'a> {
    journal: &'a DiskJournal,
    core: Arc<Core>,
    turns: &'a Turns,
    told: Mutex<Told>,
}

impl Run<'_> {
    /// Polls until there is an outcome; gives up after this many polls.
    fn poll<F: Future + ?Sized>(
        &self,
        mut future: Pin<impl DerefMut<Target = F>>,
        limit: usize,
    ) -> Option<F::Output> {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..limit {
            // How long a write took says nothing about the medium here.
            self.core.state().leading.forget_slow();
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut cx) {
                return Some(outcome);
            }
            self.turns.pass();
        }
        None
    }

    fn place(&self, appended: Appended) -> Option<Position> {
        match appended {
            Appended::Accepted(position) => Some(position),
            Appended::Sent(answer) => self.poll(pin!(answer), usize::MAX)?.ok(),
        }
    }

    /// Commits, waits for some level, and goes away now and then.
    fn author(&self) {
        for _ in 0..RECORDS {
            // The last one is longer than a segment, and is written ahead.
            let len = [20, 20, 90, 90, 400, 400, 2500][self.turns.below(7)];
            let letter = b'a' + u8::try_from(self.turns.below(26)).unwrap();
            let changes = [Arc::new(vec![letter; len])];
            let asked = (len > 2048).then(|| self.journal.when_room(len, &changes, &[]));
            let _room = asked.flatten().map(|asked| self.poll(asked, self.limit()));
            let (number, appended) = {
                // As a forest, one record at a time and in the order of their numbers.
                let mut told = self.told.lock().unwrap();
                told.appended += 1;
                let number = told.appended;
                (number, append(self.journal, number, &changes))
            };
            let Some(position) = appended.and_then(|appended| self.place(appended)) else {
                return;
            };
            let level = self.turns.below(4);
            let limit = self.limit();
            if level == 0 {
                let when = self.journal.when_reached(position, Level::Durable);
                self.note(number, Level::Durable, self.poll(pin!(when), limit));
            } else {
                let when = Buffering::new(&self.core, position);
                self.note(number, Level::Buffered, self.poll(pin!(when), limit));
            }
            self.turns.pass();
        }
    }

    /// How often an author asks before it goes away.
    fn limit(&self) -> usize {
        match self.turns.below(4) {
            0 => self.turns.below(4),
            _ => usize::MAX,
        }
    }

    fn note(&self, number: u64, level: Level, outcome: Option<Durability>) {
        if outcome == Some(Durability::Reached) {
            let mut told = self.told.lock().unwrap();
            told.buffered = told.buffered.max(number);
            if level == Level::Durable {
                told.durable = told.durable.max(number);
            }
        }
    }

    fn hand(&self, hand: usize) {
        while self.turns.is_on() {
            if hand == 0 {
                self.journal.work(Work::Prepare);
            } else {
                let work = [Work::Write, Work::Sync, Work::Sync, Work::Mark][self.turns.below(4)];
                self.journal.work(work);
            }
            self.turns.pass();
        }
    }
}

/// What runs until all authors have ended; the disk is as they leave it.
fn run(seed: u64, disk: &SimulatedDisk) -> Told {
    let turns = Arc::new(Turns::new(seed));
    let Some(journal) = open_on(Stepped(disk.clone(), Arc::clone(&turns))) else {
        return Told::default();
    };
    let run = Run {
        core: journal.core(),
        journal: &journal,
        turns: &turns,
        told: Mutex::default(),
    };
    thread::scope(|scope| {
        for party in 0..AUTHORS + HANDS {
            let run = &run;
            scope.spawn(move || {
                let _end = End(run.turns, party);
                run.turns.begin(party);
                match party.checked_sub(AUTHORS) {
                    None => run.author(),
                    Some(hand) => run.hand(hand),
                }
            });
        }
    });
    let mut told = run.told.into_inner().unwrap();
    told.led = journal.core().state().leading.writes();
    // Either there is no power, or nothing is left to do: nobody was told of what a close would
    // still write.
    disk.cut_power();
    told
}

/// The records that are found are a prefix of those that were appended, and have at least the last
/// one that was acknowledged.
fn check(disk: &SimulatedDisk, told: &Told, least: u64, what: &str) {
    let journal = open_on(disk.clone()).unwrap_or_else(|| panic!("{what}: it does not open"));
    let found = pollster::block_on(journal.read(Position::default(), usize::MAX)).unwrap();
    let len = found.len() as u64;
    assert!(least <= len, "{what}: {len} of {least} were found");
    assert!(len <= told.appended, "{what}: {len} were found");
    for (entry, number) in found.iter().zip(1..) {
        assert_eq!(entry.record[16..32], u128::to_le_bytes(number), "{what}");
        // One letter, behind the head and the length of the author's bytes.
        let changes = &entry.record[53..];
        assert!(changes.iter().all(|byte| *byte == changes[0]), "{what}");
    }
}

/// What happens at an operation.
#[derive(Clone, Copy, Debug)]
enum Fate {
    PowerCut,
    Failure,
}

impl Fate {
    /// Three of four seeds cut the power.
    fn of(seed: u64) -> Fate {
        match seed % 4 {
            0 => Fate::Failure,
            _ => Fate::PowerCut,
        }
    }
}

/// One interleaving, with the power cut at an operation or with a failure there; returns how many operations there
/// were, and how many batches authors have written.
fn interleave(seed: u64, at: u64, end: Fate) -> (u64, usize) {
    let disk = SimulatedDisk::new();
    match end {
        Fate::PowerCut => disk.cut_power_at(at),
        Fate::Failure => disk.fail_operation(at),
    }
    let told = run(seed, &disk);
    let what = format!("seed {seed}, operation {at}, {end:?}");
    check(&disk.after_kill(), &told, told.buffered, &what);
    for cut in 0..2 {
        let what = format!("{what}, after power cut {cut}");
        check(
            &disk.after_power_cut(seed * 2 + cut),
            &told,
            told.durable,
            &what,
        );
    }
    (disk.operations(), told.led)
}

#[test]
fn what_authors_and_threads_write_under_any_interleaving_is_kept() {
    let mut led = 0;
    let opening = {
        let disk = SimulatedDisk::new();
        drop(open_on(disk.clone()));
        disk.operations()
    };
    for seed in 0..300 {
        let at = opening + Random(seed).below(50) as u64;
        led += interleave(seed, at, Fate::of(seed)).1;
    }
    assert!(led > 300, "authors have written only {led} batches");
}

#[test]
fn an_interleaving_that_is_cut_at_each_operation_keeps_what_was_told() {
    let (operations, _) = interleave(7, u64::MAX, Fate::PowerCut);
    for at in 0..operations {
        interleave(7, at, Fate::PowerCut);
        interleave(7, at, Fate::Failure);
    }
}

#[test]
fn soak_what_authors_and_threads_write_under_more_interleavings_is_kept() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    for seed in 300.. {
        interleave(seed, Random(seed).below(90) as u64, Fate::of(seed));
        if seed >= 320 && Instant::now() >= end {
            return;
        }
    }
}
