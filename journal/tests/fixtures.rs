//! Forests that were written in a format of the past open for ever.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/describe.rs"]
mod describe;

use std::fs;
use std::path::Path;

use describe::describe;
use pollster::block_on;
use weald_forest::Forest;
use weald_journal::{Directory, DiskForest, DiskJournal, MasterKey, Settings};

/// Opens a copy of a fixture several times.
fn must_be_read(name: &str, settings: &Settings) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture.join(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let due = fs::read_to_string(copy.path().join("description.txt")).unwrap();
    for _ in 0..2 {
        let directory = Directory::open(copy.path()).unwrap();
        let journal = DiskJournal::open_on(directory, settings.clone()).unwrap();
        let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
        assert_eq!(describe(&forest), due);
    }
}

#[test]
fn every_kind_of_record_of_format_1_is_read() {
    must_be_read("format-1", &Settings::new());
}

/// The head of a segment names the key file, whose format is 2, and the first record is the opening.
#[test]
fn every_kind_of_record_with_sealed_keys_is_read() {
    let key = MasterKey::new([7; 32]);
    must_be_read("format-1-sealed", &Settings::new().master_key(key));
}

/// Here the key file is of format 3, and the checkpoint, of format 2, has a copy of a reference.
#[test]
fn keys_with_one_proof_for_a_journal_and_copies_in_a_checkpoint_are_read() {
    let key = MasterKey::new([7; 32]);
    must_be_read("format-1-copied", &Settings::new().master_key(key));
}

/// The newest checkpoint lists the segments before its own, which are of two openings.
#[test]
fn a_checkpoint_with_a_list_of_segments_is_read() {
    let key = MasterKey::new([7; 32]);
    must_be_read("format-1-listed", &Settings::new().master_key(key));
}
