//! A forest in a real directory is read while a program has it open.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pollster::block_on;
use weald_forest::journal::{AppendError, Journal};
use weald_forest::{Attributes, CommitError, Forest, Value};
use weald_journal::{
    DiskForest, DiskJournal, OpenError, OpenForestError, ReadOnlyForest, ReadOnlyJournal, Settings,
};

/// The names and lengths of all files, and when they were changed.
fn state(path: &Path) -> Vec<(String, u64, std::time::SystemTime)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let data = entry.metadata().unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, data.len(), data.modified().unwrap())
    });
    let mut all: Vec<_> = entries.collect();
    all.sort();
    all
}

#[test]
fn a_forest_is_read_whole_and_takes_no_commit() {
    let directory = tempfile::tempdir().unwrap();
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let tree = block_on(forest.create("notes")).unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    edit.append(root, Attributes::new().with("text", "tea"))
        .unwrap();
    edit.put_erasable(root, "secret", b"hidden").unwrap();
    edit.put_erasable(root, "other", b"shown").unwrap();
    block_on(edit.commit()).unwrap();
    block_on(tree.erase(root, "secret")).unwrap();
    let newest = tree.view().version();
    for is_closed in [false, true] {
        let before = is_closed.then(|| state(directory.path()));
        let seen = block_on(ReadOnlyForest::open(directory.path())).unwrap();
        let notes = seen.get("notes").unwrap();
        assert_eq!(notes.view().version(), newest);
        let view = notes.snapshot();
        let value = |name| seen.value(view.tree().root(), name);
        assert!(matches!(value("secret"), Some(Value::Erased { .. })));
        assert_eq!(value("other").unwrap().bytes(), Some(&b"shown"[..]));
        let mut edit = notes.edit();
        edit.append(root, Attributes::new()).unwrap();
        let refused = block_on(edit.commit()).unwrap_err();
        assert_eq!(refused, CommitError::Journal(AppendError::ReadOnly));
        assert!(block_on(seen.create("mine")).is_err());
        drop(seen);
        if let Some(before) = before {
            assert_eq!(state(directory.path()), before);
        }
        if !is_closed {
            let journal = forest.journal().clone();
            journal.close();
        }
    }
}

#[test]
fn what_is_no_forest_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    for path in [directory.path(), &file, &directory.path().join("missing")] {
        let error = block_on(ReadOnlyForest::open(path)).unwrap_err();
        let OpenForestError::Journal(OpenError::NoForest { medium, .. }) = &error else {
            panic!("{error}");
        };
        assert!(path.ends_with(medium) || medium.ends_with(path.to_str().unwrap()));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn each_look_at_a_busy_forest_has_all_that_was_acknowledged_before() {
    let directory = tempfile::tempdir().unwrap();
    let journal = DiskJournal::open_on(
        weald_journal::Directory::create(directory.path()).unwrap(),
        Settings::new().segment(4096),
    );
    let forest = DiskForest::recover(Forest::builder().keep(5), journal.unwrap());
    let forest = block_on(forest).unwrap();
    let tree = block_on(forest.create("tree")).unwrap();
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicU64::new(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1;
            while !is_over.load(Ordering::Relaxed) {
                let mut edit = tree.edit();
                let root = edit.root();
                let text = number.to_string().repeat(20);
                edit.append(root, Attributes::new().with("text", text))
                    .unwrap();
                block_on(edit.commit()).unwrap();
                number += 1;
                acknowledged.store(number, Ordering::Release);
                if number % 40 == 0 {
                    block_on(forest.checkpoint()).unwrap();
                    let last = block_on(forest.journal().last()).unwrap().unwrap().0;
                    // Where the checkpoint is older than that, there is nothing to trim.
                    let _ = block_on(forest.journal().trim(last));
                }
            }
        });
        let look = || {
            let mut last = 0;
            for _ in 0..30 {
                let due = acknowledged.load(Ordering::Acquire);
                let seen = block_on(ReadOnlyForest::open(directory.path())).unwrap();
                let len = seen.get("tree").unwrap().view().tree().len();
                assert!(len >= due.max(last), "{len} of {due} and {last}");
                last = len;
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

/// Tells the test below that it is the program, and where its forest is.
const CHILD: &str = "WEALD_TEST_READ_FOREST";

/// Not a test of its own: the program that has the forest open.
#[test]
fn the_program_that_has_it_open() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let forest = block_on(DiskForest::open(directory)).unwrap();
    block_on(forest.create("notes")).unwrap();
    println!("created");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn another_process_has_it_open_or_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "reading::the_program_that_has_it_open",
            "--nocapture",
        ])
        .env(CHILD, directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    lines
        .map(Result::unwrap)
        .find(|line| line.contains("created"))
        .unwrap();
    let look = || {
        block_on(ReadOnlyForest::open(directory.path()))
            .unwrap()
            .list()
    };
    assert_eq!(look(), ["notes"]);
    assert!(matches!(
        DiskJournal::open(directory.path()),
        Err(OpenError::Locked { .. })
    ));
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(look(), ["notes"]);
    let journal = ReadOnlyJournal::open(directory.path()).unwrap();
    let sizes = journal.sizes().unwrap();
    assert!(sizes.segments.files >= 1 && sizes.segments.bytes >= 16 << 20);
}
