//! A file system that is really full: a forest is opened on it for writing, and erases.
//!
//! The file system is one in memory, which only a process in a mount namespace of its own sees. Where that needs more
//! rights than the user has, the test says so and ends.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;

use pollster::block_on;
use weald_forest::{AppendError, Attributes, CommitError, Forest};
use weald_journal::{Directory, DiskForest, DiskJournal, Settings};

/// Tells the program below that it is to run, and where its file system is.
const PATH: &str = "WEALD_TEST_FULL_DISK";

const SCRIPT: &str = r#"mount -t tmpfs -o size=4m none "$WEALD_TEST_FULL_DISK" || exit 77
exec "$0" --exact full_disk::the_program_on_a_full_disk --nocapture"#;

fn open(path: &Path) -> DiskForest {
    let settings = Settings::new().segment(1 << 20);
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), settings).unwrap();
    block_on(DiskForest::recover(Forest::builder(), journal)).unwrap()
}

fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    let mut write = |bytes: &[u8]| loop {
        match file.write(bytes) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => break,
            Err(error) => panic!("{error}"),
        }
    };
    write(&[7; 4096]);
    write(&[7]);
}

/// Not a test of its own: it runs in the namespace.
#[test]
fn the_program_on_a_full_disk() {
    let Some(root) = std::env::var_os(PATH) else {
        return;
    };
    let (path, rest) = (
        Path::new(&root).join("forest"),
        Path::new(&root).join("rest"),
    );
    let forest = open(&path);
    let people = block_on(forest.create("people")).unwrap();
    let mut edit = people.edit();
    let mut nodes = Vec::new();
    for _ in 0..5 {
        let node = edit.append(edit.root(), Attributes::new()).unwrap();
        edit.put_erasable(node, "name", "Ada").unwrap();
        nodes.push(node);
    }
    block_on(edit.commit()).unwrap();
    drop((people, forest));
    for (erased, node) in (1..).zip(nodes) {
        fill(&rest.with_extension(erased.to_string()));
        let forest = open(&path);
        fill(&rest.with_extension(format!("{erased}-open")));
        let people = forest.get("people").unwrap();
        let mut edit = people.edit();
        edit.put_attribute(edit.root(), "note", [7; 200_000])
            .unwrap();
        let refused = block_on(edit.commit());
        assert_eq!(refused, Err(CommitError::Journal(AppendError::Full)));
        block_on(people.erase(node, "name")).unwrap();
        let view = people.snapshot();
        let left = view.tree().root().children();
        let left = left.filter(|node| forest.value(*node, "name").unwrap().bytes().is_some());
        assert_eq!(left.count(), 5 - erased);
    }
    println!("erased on a full disk");
}

#[test]
fn a_forest_is_opened_on_a_file_system_that_is_full_and_erases() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT]);
    command.arg(std::env::current_exe().unwrap());
    let ended = match command.env(PATH, directory.path()).output() {
        Ok(ended) => ended,
        Err(error) => return println!("no namespace could be made: {error}"),
    };
    let out = String::from_utf8_lossy(&ended.stdout);
    let err = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(77) || err.starts_with("unshare:") {
        return println!("no file system could be mounted: {err}");
    }
    assert!(
        ended.status.success() && out.contains("erased on a full disk"),
        "{out}{err}"
    );
}
