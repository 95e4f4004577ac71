//! A journal in a real directory, and what others do to that meanwhile.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weald_forest::journal::{AppendError, Durability, Journal, Level};
use weald_journal::{Directory, DiskJournal, Settings};

use crate::records::{all, append, flush, must_append, small};

fn open(path: &Path) -> DiskJournal {
    DiskJournal::open_on(Directory::create(path).unwrap(), small()).unwrap()
}

#[test]
fn a_writer_whose_lock_was_removed_acknowledges_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let old = open(directory.path());
    must_append(&old, 1, 100);
    flush(&old);
    let lost = must_append(&old, 2, 100);
    fs::remove_file(directory.path().join("lock")).unwrap();
    let new = open(directory.path());
    must_append(&new, 2, 50);
    flush(&new);

    flush(&old);
    let waits = old.when_reached(lost, Level::Durable);
    assert_eq!(pollster::block_on(waits), Durability::Unknown);
    assert_eq!(append(&old, 3, 10).err(), Some(AppendError::Fenced));
    drop((old, new));
    assert_eq!(all(&open(directory.path())).len(), 2);
}

#[test]
fn a_directory_that_is_moved_stays_the_one_of_its_writer() {
    let directory = tempfile::tempdir().unwrap();
    let (path, moved) = (directory.path().join("a"), directory.path().join("b"));
    let journal = open(&path);
    must_append(&journal, 1, 100);
    flush(&journal);
    fs::rename(&path, &moved).unwrap();
    fs::create_dir(&path).unwrap();
    // Several segments.
    for number in 2..=20 {
        must_append(&journal, number, 500);
        flush(&journal);
    }
    drop(journal);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    assert_eq!(all(&open(&moved)).len(), 20);
    assert_eq!(all(&open(&path)).len(), 0);
}

/// Nothing is refused to a superuser, so for one this test says nothing.
#[test]
fn a_directory_is_opened_also_where_what_it_is_in_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let (parent, path) = (directory.path().join("a"), directory.path().join("a/b"));
    drop(open(&path));
    fs::set_permissions(&parent, Permissions::from_mode(0o300)).unwrap();
    let opened = Directory::create(&path);
    fs::set_permissions(&parent, Permissions::from_mode(0o700)).unwrap();
    opened.unwrap();
}

/// Prepared segments are removed then, and an open file would keep their room.
#[test]
fn a_journal_that_was_closed_has_no_segment_open_though_handles_are_left() {
    let directory = tempfile::tempdir().unwrap();
    let medium = Directory::create(directory.path()).unwrap();
    let journal = DiskJournal::open_on(medium, Settings::new().segment(16 * 1024)).unwrap();
    let open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let is_ours = |path: &std::path::PathBuf| {
            let is_segment = path.to_string_lossy().contains(".segment");
            path.starts_with(directory.path()) && is_segment
        };
        targets.filter(is_ours).count()
    };
    assert!(open() > 0);
    let handle = journal.clone();
    journal.close();
    assert_eq!(open(), 0);
    drop(handle);
}
