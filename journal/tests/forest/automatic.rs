//! Checkpoints that a forest puts by itself, and the history that it removes.

use std::time::Duration;

use pollster::block_on;
use weald_forest::{Attributes, Forest, TreeHandle};
use weald_journal::{
    DiskForest, DiskJournal, Moment, OpenForestError, PastError, Settings, SimulatedDisk,
};

fn open(disk: &SimulatedDisk, settings: Settings) -> DiskForest {
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(3), journal)).unwrap()
}

fn append(tree: &TreeHandle) {
    let mut edit = tree.edit();
    let root = edit.root();
    let text = "x".repeat(200);
    edit.append(root, Attributes::new().with("text", &text))
        .unwrap();
    let node = edit.tree().root().children().next().unwrap().id();
    edit.delete(node).unwrap();
    block_on(edit.commit()).unwrap();
}

fn checkpoints(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".checkpoint")).collect()
}

/// Commits until something is so.
fn append_until(tree: &TreeHandle, mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        append(tree);
    }
}

#[test]
fn checkpoints_are_put_by_themselves_and_an_opening_begins_with_the_newest() {
    let disk = SimulatedDisk::new();
    let settings = || {
        Settings::new()
            .segment(16 << 10)
            .checkpoint_after(Some(4 << 10))
    };
    let forest = open(&disk, settings());
    let tree = block_on(forest.create("t")).unwrap();
    append_until(&tree, || checkpoints(&disk).len() >= 5);
    let first = tree.view().version();
    drop((tree, forest));
    // Nobody has the files any more: the next opening gets the lock.
    let forest = open(&disk, settings());
    assert_eq!(forest.get("t").unwrap().view().version(), first);
    let past = block_on(forest.at(Moment::Version(first))).unwrap();
    assert_eq!(past.list(), ["t"]);
}

fn limited(by_time: bool) -> Settings {
    let settings = Settings::new()
        .segment(4 << 10)
        .checkpoint_after(Some(4 << 10));
    match by_time {
        true => settings.history_time(Duration::ZERO),
        false => settings.history_bytes(40 << 10),
    }
}

#[test]
fn history_that_is_too_long_is_removed_and_the_newest_stays() {
    for by_time in [false, true] {
        let disk = SimulatedDisk::new();
        let forest = open(&disk, limited(by_time));
        let tree = block_on(forest.create("t")).unwrap();
        let first = tree.view().version();
        let is_gone = || {
            let past = block_on(forest.at(Moment::Version(first)));
            matches!(past, Err(OpenForestError::Past(PastError::TooOld { .. })))
        };
        append_until(&tree, is_gone);
        assert!(!checkpoints(&disk).is_empty());
        // The newest version is there, and so are those younger than the oldest checkpoint.
        let newest = tree.view().version();
        let past = block_on(forest.at(Moment::Version(newest))).unwrap();
        assert_eq!(past.get("t").unwrap().view().version(), newest);
    }
}

#[test]
fn history_within_its_limits_stays_also_before_the_first_checkpoint() {
    let disk = SimulatedDisk::new();
    let settings = Settings::new()
        .segment(4 << 10)
        .checkpoint_after(Some(4 << 10))
        .history_time(Duration::from_secs(3600))
        .history_bytes(1 << 30);
    let forest = open(&disk, settings);
    let tree = block_on(forest.create("t")).unwrap();
    let first = tree.view().version();
    append_until(&tree, || checkpoints(&disk).len() >= 4);
    block_on(forest.at(Moment::Version(first))).unwrap();
}

#[test]
fn history_is_removed_although_old_checkpoints_are_damaged() {
    for by_time in [false, true] {
        let disk = SimulatedDisk::new();
        let settings = Settings::new()
            .segment(4 << 10)
            .checkpoint_after(Some(4 << 10));
        let forest = open(&disk, settings);
        let tree = block_on(forest.create("t")).unwrap();
        append_until(&tree, || checkpoints(&disk).len() >= 4);
        drop((tree, forest));
        let mut old = checkpoints(&disk);
        old.sort_unstable();
        old.pop();
        for name in &old {
            let mut bytes = disk.file(name).unwrap();
            bytes.iter_mut().for_each(|byte| *byte ^= 1);
            disk.set_file(name, Some(&bytes));
        }
        let forest = open(&disk, limited(by_time));
        let tree = forest.get("t").unwrap();
        append_until(&tree, || {
            let names = checkpoints(&disk);
            !old.iter().any(|old| names.contains(old))
        });
    }
}

#[test]
fn a_checkpoint_that_finds_no_room_is_tried_again_and_stops_nobody() {
    let disk = SimulatedDisk::new();
    let settings = Settings::new()
        .segment(1 << 20)
        .checkpoint_after(Some(4 << 10));
    let forest = open(&disk, settings);
    let tree = block_on(forest.create("t")).unwrap();
    append(&tree);
    disk.set_room(Some(disk.used()));
    (0..200).for_each(|_| append(&tree));
    assert_eq!(checkpoints(&disk).len(), 0);
    disk.set_room(None);
    append_until(&tree, || !checkpoints(&disk).is_empty());
}
