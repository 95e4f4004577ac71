//! `weald forest DIR log` reads what it shows, and no history of years; and a forest with a damaged part.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::path::Path;

use pollster::block_on;
use program::{fails, lines, says, weald};
use serde_json::Value as Json;
use weald_forest::{Attributes, Forest, TreeHandle};
use weald_journal::{Directory, DiskForest, DiskJournal, Settings};

/// More commits than the forest makes before it asks what is settled.
const MANY: usize = 300;

fn append(tree: &TreeHandle, many: usize) {
    for _ in 0..many {
        let mut edit = tree.edit();
        edit.append(edit.root(), Attributes::new()).unwrap();
        block_on(edit.commit()).unwrap();
    }
}

/// Flips a byte of the oldest segment, behind its head.
fn damage_the_oldest(path: &Path, at: impl Fn(&[u8]) -> usize) {
    let entries = fs::read_dir(path).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let segments = paths.filter(|path| path.extension().is_some_and(|it| it == "segment"));
    let oldest = segments.min().unwrap();
    let mut bytes = fs::read(&oldest).unwrap();
    let at = at(&bytes);
    bytes[at] ^= 1;
    fs::write(oldest, bytes).unwrap();
}

/// Trees are created, renamed and deleted before, between and behind checkpoints.
fn fill(path: &Path) {
    let forest = block_on(DiskForest::open(path)).unwrap();
    for name in ["a", "b", "gone"] {
        append(&block_on(forest.create(name)).unwrap(), 3);
    }
    block_on(forest.rename("a", "a2")).unwrap();
    block_on(forest.checkpoint()).unwrap();
    drop(forest);
    for round in 0..4 {
        let forest = block_on(DiskForest::open(path)).unwrap();
        append(&forest.get("a2").unwrap(), 2);
        let short = block_on(forest.create("short")).unwrap();
        append(&short, 1);
        if round == 1 {
            append(&forest.get("gone").unwrap(), 1);
            block_on(forest.delete("gone")).unwrap();
            block_on(forest.rename("b", "b2")).unwrap();
        }
        block_on(forest.checkpoint()).unwrap();
        append(&forest.get(["b", "b2"][usize::from(round > 0)]).unwrap(), 2);
        block_on(forest.delete("short")).unwrap();
        append(&forest.get("a2").unwrap(), 1);
    }
}

#[test]
fn the_newest_commits_are_those_of_the_whole_list_and_need_no_older_segments() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    for tree in [&[][..], &["a2"], &["b2"], &["gone"], &["short"]] {
        let log = |n: usize| -> Vec<Json> {
            let n = n.to_string();
            lines(path, &[&["log"], tree, &["-n", &n]].concat())
        };
        let all = log(0);
        assert!(all.len() > 4);
        for n in 1..=all.len() {
            assert_eq!(log(n), all[..n.min(all.len())], "{tree:?}");
        }
    }
    damage_the_oldest(path, |bytes| bytes.len() / 2);
    assert_eq!(lines(path, &["log", "a2", "-n", "3"]).len(), 3);
    let (code, err) = fails(path, &["log", "-n", "0"]);
    assert!(code == 3 && err.contains("damaged"), "{err}");
}

/// No opening needs it, as long as there is the newest checkpoint.
#[test]
fn check_finds_a_damaged_head_of_an_old_segment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(path);
    assert!(says(path, &["check"]).contains("sound"));
    damage_the_oldest(path, |_| 12);
    assert!(says(path, &["ls"]).contains("a2"));
    let (code, err) = fails(path, &["check"]);
    assert!(code == 3 && err.contains("its head is not valid"), "{err}");
}

#[test]
fn a_forest_with_a_damaged_value_is_shown_without_it_if_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let forest = block_on(DiskForest::open(path)).unwrap();
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    edit.put_erasable(root, "value", "erasable").unwrap();
    edit.put_attribute(root, "plain", "plain").unwrap();
    block_on(edit.commit()).unwrap();
    drop((tree, forest));
    // What the last opening has written is always read.
    let forest = block_on(DiskForest::open(path)).unwrap();
    append(&block_on(forest.create("other")).unwrap(), 1);
    block_on(forest.checkpoint()).unwrap();
    drop(forest);
    assert!(says(path, &["show", "t"]).contains("erasable"));
    // The frame with the bytes, by its length and kind.
    damage_the_oldest(path, |bytes| {
        let mut words = bytes.windows(4);
        let frame = words.position(|word| word == [24 + 8 + 16, 0, 0, 0x60]);
        frame.unwrap() + 40
    });
    let (code, err) = fails(path, &["show", "t"]);
    assert!(code == 3 && err.contains("--skip-damaged-values"), "{err}");
    let (code, out, err) = weald(path, &["show", "t", "--skip-damaged-values"], "");
    assert!(code == 0 && out.contains("plain"), "{err}");
    assert!(err.contains("1 erasable value cannot be read"), "{err}");
    // The record lies behind it.
    let (code, _, err) = weald(path, &["check", "--skip-damaged-values"], "");
    assert!(code == 3 && err.contains("damaged"), "{err}");
}

/// The records can be read, so only the values tell.
#[test]
fn check_counts_values_that_no_key_opens_also_those_that_only_the_history_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let forest = block_on(DiskForest::open(path)).unwrap();
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    edit.put_erasable(root, "value", "erasable").unwrap();
    block_on(edit.commit()).unwrap();
    drop((tree, forest));
    // What the last opening has written is always read.
    let forest = block_on(DiskForest::open(path)).unwrap();
    block_on(forest.checkpoint()).unwrap();
    drop(forest);
    seal_wrongly(path);
    must_be_counted(path);
    let forest = block_on(skipping(path));
    let tree = forest.get("t").unwrap();
    let mut edit = tree.edit();
    edit.delete_attribute(root, "value").unwrap();
    block_on(edit.commit()).unwrap();
    append(&tree, MANY);
    block_on(forest.checkpoint()).unwrap();
    assert_eq!(forest.stats().unreadable_blobs, 0);
    drop((tree, forest));
    must_be_counted(path);
}

/// Changes the bytes of a value in the oldest segment, and makes a frame of them that is valid.
fn seal_wrongly(path: &Path) {
    let entries = fs::read_dir(path).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let segments = paths.filter(|path| path.extension().is_some_and(|it| it == "segment"));
    let oldest = segments.min().unwrap();
    let mut bytes = fs::read(&oldest).unwrap();
    let name = oldest.file_stem().unwrap().to_str().unwrap();
    let (epoch, index) = name.split_once('-').unwrap();
    let epoch = u64::from_str_radix(epoch, 16).unwrap().to_le_bytes();
    let index = u32::from_str_radix(index, 16).unwrap().to_le_bytes();
    let len = 24 + 8 + 16;
    let mut words = bytes.windows(4);
    let at = words.position(|word| word == [len, 0, 0, 0x60]).unwrap();
    let offset = u32::try_from(at).unwrap().to_le_bytes();
    let place = [&epoch[..], &index, &offset].concat();
    let body = at + 12..at + 12 + usize::from(len);
    bytes[at + 12 + 30] ^= 1;
    let check = crc32c(&[&place, &bytes[at..at + 4], &bytes[body]].concat());
    bytes[at + 4..at + 8].copy_from_slice(&check.to_le_bytes());
    let check = crc32c(&[&place, &bytes[at..at + 8]].concat());
    bytes[at + 8..at + 12].copy_from_slice(&check.to_le_bytes());
    fs::write(oldest, bytes).unwrap();
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut check = !0_u32;
    for byte in bytes {
        check ^= u32::from(*byte);
        for _ in 0..8 {
            check = (check >> 1) ^ ((check & 1) * 0x82F6_3B78);
        }
    }
    !check
}

async fn skipping(path: &Path) -> DiskForest {
    let settings = Settings::new().skip_damaged_values();
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), settings).unwrap();
    let forest = DiskForest::recover(Forest::builder().keep(1), journal);
    forest.await.unwrap()
}

fn must_be_counted(path: &Path) {
    let (code, _, err) = weald(path, &["check", "--skip-damaged-values"], "");
    let due = "1 erasable value cannot be read. Without";
    assert!(code == 3 && err.contains(due), "{err}");
}
