//! On a full disk erasures succeed, even if others want to commit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use pollster::block_on;
use weald_forest::{AppendError, Attributes, CommitError, Forest, Level};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

#[test]
fn erasures_are_not_refused_with_the_commits_before_them() {
    let disk = SimulatedDisk::new();
    let settings = Settings::new().segment(64 * 1024);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let tree = block_on(forest.create("tree")).unwrap();
    let mut edit = tree.edit();
    let mut nodes = Vec::new();
    for _ in 0..12 {
        let node = edit.append(edit.root(), Attributes::new()).unwrap();
        edit.put_erasable(node, "name", "Ada").unwrap();
        nodes.push(node);
    }
    block_on(edit.commit()).unwrap();
    disk.set_room(Some(disk.used()));

    let is_over = &AtomicBool::new(false);
    let (full, is_full) = mpsc::channel();
    thread::scope(|scope| {
        for writer in 0..4 {
            let (full, tree) = (full.clone(), tree.clone());
            scope.spawn(move || {
                let name = format!("{writer}");
                while !is_over.load(Ordering::Relaxed) {
                    let mut edit = tree.edit();
                    edit.put_attribute(edit.root(), &name, [7; 3000]).unwrap();
                    let commit = edit.commit().level(Level::Accepted);
                    if block_on(commit) == Err(CommitError::Journal(AppendError::Full)) {
                        let _ = full.send(());
                    }
                }
            });
        }
        is_full.recv().unwrap();
        let erased = nodes.iter().map(|node| block_on(tree.erase(*node, "name")));
        let erased: Vec<_> = erased.collect();
        is_over.store(true, Ordering::Relaxed);
        for (at, erased) in erased.into_iter().enumerate() {
            erased.unwrap_or_else(|error| panic!("erasure {at}: {error}"));
        }
    });
    disk.set_room(None);
    drop((tree, forest));
    let journal = DiskJournal::open_on(disk.clone(), Settings::new()).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let view = forest.get("tree").unwrap().snapshot();
    for node in view.tree().root().children() {
        let value = forest.value(node, "name").unwrap();
        assert_eq!(value.bytes(), None);
    }
}
