//! Forests that were written in a format of the past open for ever.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/describe.rs"]
mod describe;

use std::fs;
use std::path::Path;

use describe::describe;
use pollster::block_on;
use weald_journal::DiskForest;

#[test]
fn every_kind_of_record_of_format_1_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let due = fs::read_to_string(copy.path().join("description.txt")).unwrap();
    for _ in 0..2 {
        let forest = block_on(DiskForest::open(copy.path())).unwrap();
        assert_eq!(describe(&forest), due);
    }
}
