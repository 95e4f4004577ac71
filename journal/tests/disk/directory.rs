//! A journal in a real directory, and what others do to that meanwhile.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};
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

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_created_is_for_its_owner_alone_and_what_is_there_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("above/new");
    let journal = open(&path);
    for number in 1..=20 {
        must_append(&journal, number, 500);
        flush(&journal);
    }
    drop(journal);
    assert_eq!(mode(&path), 0o700);
    let files = || {
        fs::read_dir(&path)
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    assert!(files().count() > 4);
    for file in files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }

    let keys = path.join(format!("{:016x}.keys", 1));
    fs::write(&keys, "").unwrap();
    fs::set_permissions(&keys, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let (sender, told) = channel();
    tracing::subscriber::with_default(Logged(sender), || drop(Directory::create(&path).unwrap()));
    let told = told.recv().unwrap();
    assert!(told.contains(".keys") && told.contains("chmod"), "{told}");
    assert_eq!(mode(&path), 0o750);
    assert_eq!(mode(&keys), 0o644);
}

/// Sends what is logged.
struct Logged(Sender<String>);

impl tracing::Subscriber for Logged {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        let mut note = |_: &Field, value: &dyn fmt::Debug| text += &format!("{value:?}");
        event.record(&mut note);
        let _ = self.0.send(text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
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
