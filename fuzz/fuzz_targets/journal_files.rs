//! The files of a forest on disk, changed in any way, even so that all checks are right again: opening for reading and
//! for writing answer or fail, and what both find is the same.

#![no_main]

#[path = "journal/checks.rs"]
mod checks;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use pollster::block_on;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use weald_forest::journal::{Entry, Journal, Position};
use weald_forest::{CommitId, Forest};
use weald_journal::{
    DiskForest, DiskJournal, MasterKey, ReadOnlyForest, ReadOnlyJournal, Settings, SimulatedDisk,
    Work,
};

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../journal/tests/fixtures/", $folder, "/", $name)))),*]
    };
}

/// Forests with every kind of record, a checkpoint and keys: in plain, sealed by a master key, and sealed with copies
/// of references, in newer formats of the key file and of the checkpoint.
static FORESTS: [&[(&str, &[u8])]; 3] = [
    files!("format-1":
        "000660ecf39c5fd4-00000001.segment",
        "000660ecf39c5fd4-00000002.segment",
        "000660ecf39c5fd4-00000003.segment",
        "000660ecf39c5fd400000001000008a2.checkpoint",
        "0000000000000003.keys",
    ),
    files!("format-1-sealed":
        "000660f277e2a664-00000001.segment",
        "000660f277e2a664-00000002.segment",
        "000660f277e2a664-00000003.segment",
        "000660f277e2a6640000000100000937.checkpoint",
        "0000000000000003.keys",
    ),
    files!("format-1-copied":
        "00066147351f11fa-00000001.segment",
        "00066147351f11fa-00000002.segment",
        "00066147351f11fa00000001000009b8.checkpoint",
        "0000000000000003.keys",
    ),
];

/// The settings of a journal without threads, which knows the key that two of the forests are sealed by.
fn settings() -> Settings {
    Settings::new()
        .master_key(MasterKey::new([7; 32]))
        .by_hand()
}

#[derive(Arbitrary, Debug)]
struct Input {
    changes: Vec<Change>,
    /// Which files get right checks afterwards, by bits.
    mended: u8,
    /// Which forest it begins with.
    forest: u8,
}

#[derive(Arbitrary, Debug)]
enum Change {
    Set {
        file: u8,
        at: u16,
        bytes: Vec<u8>,
    },
    /// Bytes are put between others.
    Insert {
        file: u8,
        at: u16,
        bytes: Vec<u8>,
    },
    Truncate {
        file: u8,
        at: u16,
    },
    Fill {
        file: u8,
        from: u16,
        len: u16,
    },
    Copy {
        from: u8,
        file: u8,
        at: u16,
        len: u16,
    },
    Remove {
        file: u8,
    },
    Rename {
        file: u8,
        to: Name,
    },
}

#[derive(Arbitrary, Debug)]
enum Name {
    Segment {
        epoch: u64,
        index: u32,
    },
    /// Beside those that are there.
    Near {
        later: i8,
        index: u32,
    },
    Checkpoint(u128),
    Keys(u64),
    Any(String),
}

impl Name {
    /// `epoch` is that of the segments which are there.
    fn text(&self, epoch: u64) -> String {
        match self {
            Self::Segment { epoch, index } => format!("{epoch:016x}-{index:08x}.segment"),
            Self::Near { later, index } => {
                let epoch = epoch.wrapping_add_signed((*later).into());
                format!("{epoch:016x}-{index:08x}.segment")
            }
            Self::Checkpoint(at) => format!("{at:032x}.checkpoint"),
            Self::Keys(number) => format!("{number:016x}.keys"),
            Self::Any(name) => name.clone(),
        }
    }
}

type Files = Vec<(String, Vec<u8>)>;

fn change(files: &mut Files, epoch: u64, change: &Change) {
    let len = files.len().max(1);
    let which = |file: u8| usize::from(file) % len;
    let copied = match change {
        Change::Copy { from, at, len, .. } => files.get(which(*from)).map(|(_, bytes)| {
            let begin = usize::from(*at).min(bytes.len());
            bytes[begin..(begin + usize::from(*len)).min(bytes.len())].to_vec()
        }),
        _ => None,
    };
    let (Change::Set { file, .. }
    | Change::Insert { file, .. }
    | Change::Truncate { file, .. }
    | Change::Fill { file, .. }
    | Change::Copy { file, .. }
    | Change::Remove { file }
    | Change::Rename { file, .. }) = change;
    let which = which(*file);
    let Some((name, content)) = files.get_mut(which) else {
        return;
    };
    let end = content.len();
    match change {
        Change::Set { at, bytes, .. } => set(content, (*at).into(), bytes),
        Change::Copy { at, .. } => set(content, (*at).into(), &copied.unwrap_or_default()),
        Change::Insert { at, bytes, .. } => {
            let at = usize::from(*at).min(end);
            content.splice(at..at, bytes.iter().copied());
        }
        Change::Truncate { at, .. } => content.truncate((*at).into()),
        Change::Fill { from, len, .. } => {
            let from = usize::from(*from).min(end);
            content[from..(from + usize::from(*len)).min(end)].fill(0);
        }
        Change::Rename { to, .. } => *name = to.text(epoch),
        Change::Remove { .. } => _ = files.remove(which),
    }
}

fn set(content: &mut [u8], at: usize, bytes: &[u8]) {
    let at = at.min(content.len());
    let end = (at + bytes.len()).min(content.len());
    content[at..end].copy_from_slice(&bytes[..end - at]);
}

fn records(journal: &impl Journal) -> Option<Vec<Entry>> {
    block_on(journal.read(Position::default(), usize::MAX)).ok()
}

/// What a forest has, in short.
fn described(forest: &Forest) -> Vec<(String, u64, Vec<CommitId>)> {
    let names = forest.list().into_iter();
    let trees = names.map(|name| {
        let tree = forest.get(&name).expect("its name is in the list");
        let commits = tree
            .versions()
            .iter()
            .map(|version| version.commit_id())
            .collect();
        (name, tree.number(), commits)
    });
    trees.collect()
}

/// Waits, and does the work of the journal, which has no threads.
fn drive<T>(journal: &DiskJournal, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut cx) {
            return outcome;
        }
        let all = [Work::Prepare, Work::Write, Work::Sync];
        let has_worked = all.map(|work| journal.work(work)).contains(&true);
        assert!(has_worked, "it waits for nothing");
    }
}

fuzz_target!(|input: Input| {
    let forest = FORESTS[usize::from(input.forest) % FORESTS.len()];
    let epoch =
        u64::from_str_radix(&forest[0].0[..16], 16).expect("a segment begins with its epoch");
    let begin = forest.iter();
    let mut files: Files = begin
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    let changes = input.changes.iter();
    changes.for_each(|it| change(&mut files, epoch, it));
    let disk = SimulatedDisk::new();
    for (number, (name, bytes)) in files.iter_mut().enumerate() {
        if input.mended & 1 << number.min(7) != 0 {
            checks::mend(name, bytes);
        }
        disk.set_file(name, Some(bytes));
    }
    let operations = disk.operations();
    let read = ReadOnlyJournal::open_with(disk.clone(), &settings());
    let seen = read.as_ref().ok().and_then(records);
    let shown = read.ok().map(|journal| {
        let _ = block_on(journal.resolve(CommitId(1)));
        let forest = block_on(ReadOnlyForest::recover(Forest::builder(), journal));
        forest.ok().map(|forest| described(&forest))
    });
    assert!(disk.operations() <= operations + 8, "a reader only syncs");
    for round in 0..2 {
        let Ok(journal) = DiskJournal::open_on(disk.clone(), settings().segment(4096)) else {
            return;
        };
        if let Some(shown) = &shown {
            // Each opening of the forest is a record that changes nothing.
            let found = records(&journal);
            let len = seen.as_ref().map_or(0, |seen| seen.len());
            let begin = found.as_ref().map(|found| &found[..len.min(found.len())]);
            assert_eq!(begin, seen.as_deref());
            assert!(round > 0 || found == seen);
            let forest = DiskForest::recover(Forest::builder(), journal.clone());
            let forest = drive(&journal, forest);
            assert_eq!(forest.ok().map(|forest| described(&forest)), *shown);
        }
    }
});
