//! The power goes off under a forest, at any operation of the disk: every commit that was acknowledged is there, and of
//! the others a beginning.

use pollster::block_on;
use weald_forest::{Attributes, Forest, TreeHandle};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

fn open(disk: &SimulatedDisk) -> Option<DiskForest> {
    let settings = Settings::new().segment(16 * 1024);
    let journal = DiskJournal::open_on(disk.clone(), settings).ok()?;
    block_on(DiskForest::recover(Forest::builder(), journal)).ok()
}

/// Appends a node with the number of nodes before it; returns whether that is durable.
fn append(tree: &TreeHandle) -> bool {
    let mut edit = tree.edit();
    let root = edit.root();
    let number = edit.tree().len().to_string();
    edit.append(root, Attributes::new().with("number", &number))
        .is_ok()
        && block_on(edit.commit()).is_ok()
}

/// How many nodes a forest has, which must be numbered.
fn nodes(forest: &DiskForest) -> u64 {
    let Ok(tree) = forest.get("tree") else {
        return 0;
    };
    let view = tree.snapshot();
    for (child, number) in view.tree().root().children().zip(1..) {
        let due = format!("{number}");
        assert_eq!(child.attributes().get("number"), Some(due.as_bytes()));
    }
    view.tree().len()
}

#[test]
fn every_acknowledged_commit_is_there_after_power_cuts() {
    for seed in 0..40 {
        let mut disk = SimulatedDisk::new();
        let mut acknowledged = 0;
        for opening in 0..3 {
            disk.cut_power_at((seed * 7 + opening * 5) % 120);
            if let Some(forest) = open(&disk) {
                let found = nodes(&forest);
                assert!(
                    found >= acknowledged,
                    "seed {seed}: {found} of {acknowledged}"
                );
                acknowledged = found;
                let tree = match forest.get("tree") {
                    Ok(tree) => Some(tree),
                    Err(_) => block_on(forest.create("tree")).ok(),
                };
                if let Some(tree) = tree {
                    acknowledged = acknowledged.max(1);
                    while acknowledged < 60 && append(&tree) {
                        acknowledged += 1;
                        if acknowledged % 16 == 0 {
                            let _ = block_on(forest.checkpoint());
                        }
                    }
                }
            }
            disk = disk.after_power_cut(seed + opening);
        }
        let forest = open(&disk).unwrap_or_else(|| panic!("seed {seed}: it cannot be opened"));
        let found = nodes(&forest);
        assert!(
            found >= acknowledged,
            "seed {seed}: {found} of {acknowledged}"
        );
    }
}
