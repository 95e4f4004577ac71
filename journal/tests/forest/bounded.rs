//! However many programs had a forest open, and however soon each of them ended, an opening reads what is behind the
//! newest checkpoint, and no more.

use pollster::block_on;
use weald_forest::{ErasableBytes, Forest, Value};
use weald_journal::{
    DiskForest, DiskJournal, Moment, ReadOnlyForest, ReadOnlyJournal, Settings, SimulatedDisk,
};

use crate::counted::Counted;

fn settings() -> Settings {
    Settings::new()
        .segment(4 << 10)
        .checkpoint_after(Some(16 << 10))
}

fn open(disk: &SimulatedDisk) -> DiskForest {
    let journal = DiskJournal::open_on(disk.clone(), settings()).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(3), journal)).unwrap()
}

fn checkpoints(disk: &SimulatedDisk) -> usize {
    let names = disk.names();
    let is_checkpoint = |name: &&String| name.ends_with(".checkpoint");
    names.iter().filter(is_checkpoint).count()
}

/// How many files an opening for reading opens.
fn files_opened(disk: &SimulatedDisk) -> usize {
    let disk = Counted::after_kill(disk);
    ReadOnlyJournal::open_on(disk.clone()).unwrap();
    disk.counts().0
}

#[test]
fn programs_that_end_at_once_leave_no_long_opening_behind() {
    let disk = SimulatedDisk::new();
    let tree = block_on(open(&disk).create("t")).unwrap();
    drop(tree);
    let mut most = 0;
    let mut versions = Vec::new();
    for opening in 0..300 {
        let forest = open(&disk);
        let tree = forest.get("t").unwrap();
        if opening % 3 > 0 {
            let text = "x".repeat(700);
            let mut edit = tree.edit();
            let root = edit.root();
            edit.put_attribute(root, "text", text.as_str()).unwrap();
            versions.push(block_on(edit.commit()).unwrap().version);
        }
        drop((tree, forest));
        if opening % 10 == 0 {
            most = most.max(files_opened(&disk));
        }
    }
    assert!(checkpoints(&disk) >= 4, "{}", checkpoints(&disk));
    assert!(most < 120, "an opening looked at {most} files");
    // All of the history is there.
    for version in versions.iter().step_by(37) {
        let journal = ReadOnlyJournal::open_on(disk.after_kill()).unwrap();
        let past = journal.at(Moment::Version(*version)).unwrap();
        let past = block_on(ReadOnlyForest::recover(Forest::builder().keep(1), past)).unwrap();
        assert_eq!(past.get("t").unwrap().view().version(), *version);
    }
}

#[test]
fn erasable_values_are_read_without_a_look_at_a_file_for_each() {
    let disk = SimulatedDisk::new();
    let settings = Settings::new().segment(256 << 10);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let tree = block_on(forest.create("t")).unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    for number in 0..300 {
        let (name, value) = (format!("name {number}"), format!("value {number}"));
        edit.put_erasable(root, &name, &value).unwrap();
    }
    block_on(edit.commit()).unwrap();
    drop((tree, forest));
    let counted = Counted::after_kill(&disk);
    let journal = ReadOnlyJournal::open_on(counted.clone()).unwrap();
    let before = counted.counts().0;
    let forest = block_on(ReadOnlyForest::recover(Forest::builder(), journal)).unwrap();
    let view = forest.get("t").unwrap().snapshot();
    for number in 0..300 {
        let value = forest.value(view.tree().root(), &format!("name {number}"));
        assert_eq!(
            value.unwrap().bytes(),
            Some(format!("value {number}").as_bytes())
        );
    }
    let opened = counted.counts().0 - before;
    assert!(opened < 10, "{opened} files were opened");
}

fn text(forest: &Forest) -> Option<ErasableBytes> {
    let notes = forest.get("notes").unwrap().snapshot();
    match forest.value(notes.tree().root(), "text") {
        Some(Value::Erasable(bytes)) => Some(bytes),
        Some(Value::Erased { .. }) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_earlier_moment_shares_the_erasable_bytes_that_memory_has() {
    let disk = SimulatedDisk::new();
    let forest = open(&disk);
    let notes = block_on(forest.create("notes")).unwrap();
    let put = |name: &str, text: &str| {
        let mut edit = notes.edit();
        edit.put_erasable(edit.root(), name, text).unwrap();
        block_on(edit.commit()).unwrap().version
    };
    let first = put("text", "first");
    let second = put("text", "second");
    let past = block_on(forest.at(Moment::Version(second))).unwrap();
    let [now, then] = [text(&forest), text(&past)].map(Option::unwrap);
    assert_eq!((&now[..], now.as_ptr()), (&b"second"[..], then.as_ptr()));

    // Memory lets the first text go, and the disk has it.
    for number in 0..5 {
        put("number", &number.to_string());
    }
    let past = block_on(forest.at(Moment::Version(first))).unwrap();
    assert_eq!(text(&past).unwrap()[..], b"first"[..]);

    // A forest of the past that is open keeps what it has, until it is dropped.
    let kept = block_on(forest.at(Moment::Version(second))).unwrap();
    block_on(notes.erase(notes.view().tree().root().id(), "text")).unwrap();
    assert_eq!(text(&forest), None);
    assert_eq!(text(&kept).unwrap()[..], b"second"[..]);
    drop(kept);
    for moment in [first, second] {
        let past = block_on(forest.at(Moment::Version(moment))).unwrap();
        assert_eq!(text(&past), None);
    }
}
