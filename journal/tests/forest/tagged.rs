//! A tag whose turn comes late, or while a checkpoint is made, is there again, or was refused.

use pollster::block_on;
use weald_forest::journal::Journal;
use weald_forest::{CommitError, Forest, TreeHandle, Version, VersionError};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

fn open(disk: &SimulatedDisk) -> DiskForest {
    let journal = DiskJournal::open_on(disk.clone(), Settings::new()).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(3), journal)).unwrap()
}

fn put(tree: &TreeHandle, value: &str) -> Version {
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_attribute(root, "n", value).unwrap();
    block_on(edit.commit()).unwrap().version
}

#[test]
fn a_tag_whose_version_is_gone_when_its_turn_comes_is_refused_and_the_forest_opens() {
    let disk = SimulatedDisk::new();
    let forest = open(&disk);
    let tree = block_on(forest.create("t")).unwrap();
    let late = tree.tag("late", put(&tree, "old"));
    (0..5).for_each(|n| _ = put(&tree, &n.to_string()));
    block_on(forest.checkpoint()).unwrap();
    let refused = block_on(late);
    assert!(
        matches!(
            refused,
            Err(CommitError::Version(VersionError::TooOld { .. }))
        ),
        "{refused:?}"
    );
    drop((tree, forest));
    assert_eq!(open(&disk).get("t").unwrap().tags(), []);
}

#[test]
fn a_tag_that_is_given_while_a_checkpoint_is_made_is_there_again() {
    let disk = SimulatedDisk::new();
    let forest = open(&disk);
    let tree = block_on(forest.create("t")).unwrap();
    let [early, old, _] = ["early", "old", "newer"].map(|value| put(&tree, value));
    block_on(tree.tag("early", early)).unwrap();
    let checkpoint = block_on(Forest::checkpoint(&forest)).unwrap();
    block_on(tree.tag("release", old)).unwrap();
    (0..5).for_each(|n| _ = put(&tree, &n.to_string()));
    block_on(forest.journal().put_checkpoint(checkpoint)).unwrap();
    drop((tree, forest));
    let tree = open(&disk).get("t").unwrap();
    let release = tree.tagged("release").unwrap();
    assert_eq!(release.tree().root().get_str("n"), Some("old"));
}
