//! Erasing where an attribute had a copy of a reference that only the history on disk still has.

use pollster::block_on;
use weald_forest::journal::{BlobId, Journal};
use weald_forest::{Committed, Forest, TreeHandle, Value, Version};
use weald_journal::{DiskForest, DiskJournal, Moment, Settings, SimulatedDisk};

/// More commits than the forest makes before it asks what is settled.
const MANY: usize = 300;

fn open(disk: &SimulatedDisk) -> DiskForest {
    let journal = DiskJournal::open_on(disk.clone(), Settings::new().segment(64 << 10)).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(1), journal)).unwrap()
}

fn put(tree: &TreeHandle, name: &str, value: &[u8]) -> Committed {
    let mut edit = tree.edit();
    edit.put_attribute(edit.root(), name, value).unwrap();
    block_on(edit.commit()).unwrap()
}

/// What the tree `copies` had under `secret` then; `None`, if it was erased.
fn secret_at(forest: &DiskForest, version: Version) -> Option<Vec<u8>> {
    let past = block_on(forest.at(Moment::Version(version))).unwrap();
    let view = past.get("copies").unwrap().snapshot();
    match past.value(view.tree().root(), "secret").unwrap() {
        Value::Erasable(bytes) => Some(bytes.to_vec()),
        Value::Erased { .. } => None,
        Value::Plain(_) => panic!("it is a reference"),
    }
}

fn must_be_erased_after(what_happens: fn(&SimulatedDisk, DiskForest) -> DiskForest) {
    for is_original_deleted in [true, false] {
        let disk = SimulatedDisk::new();
        let forest = open(&disk);
        let tree = block_on(forest.create("originals")).unwrap();
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_erasable(root, "secret", b"of Ada").unwrap();
        block_on(edit.commit()).unwrap();
        let view = tree.snapshot();
        let reference = view.tree().root().get("secret").unwrap();
        let id = BlobId(u128::from_le_bytes(*reference.last_chunk().unwrap()));
        let copies = block_on(forest.create("copies")).unwrap();
        let copied = put(&copies, "secret", reference).version;
        put(&copies, "secret", b"nothing");
        if is_original_deleted {
            block_on(forest.delete("originals")).unwrap();
        }
        drop((view, tree, copies));
        let forest = what_happens(&disk, forest);
        assert_eq!(secret_at(&forest, copied).as_deref(), Some(&b"of Ada"[..]));
        let copies = forest.get("copies").unwrap();
        block_on(copies.erase(root, "secret")).unwrap();
        assert_eq!(block_on(forest.journal().blob(id)), Ok(None));
        assert_eq!(secret_at(&forest, copied), None);
        if !is_original_deleted {
            let view = forest.get("originals").unwrap().snapshot();
            let value = forest.value(view.tree().root(), "secret").unwrap();
            assert!(matches!(value, Value::Erased { .. }), "{value:?}");
        }
        drop((copies, forest));
        let forest = open(&disk);
        assert_eq!(block_on(forest.journal().blob(id)), Ok(None));
        assert_eq!(secret_at(&forest, copied), None);
    }
}

#[test]
fn a_copy_is_erased_when_every_version_in_memory_that_had_it_was_let_go() {
    must_be_erased_after(|_, forest| {
        let copies = forest.get("copies").unwrap();
        (0..MANY).for_each(|number| _ = put(&copies, "number", number.to_string().as_bytes()));
        forest
    });
}

#[test]
fn a_copy_is_erased_after_an_opening_that_has_read_its_record() {
    must_be_erased_after(|disk, forest| {
        drop(forest);
        open(disk)
    });
}

#[test]
fn a_copy_is_erased_after_openings_that_have_read_checkpoints_only() {
    must_be_erased_after(|disk, mut forest| {
        for _ in 0..3 {
            block_on(forest.checkpoint()).unwrap();
            drop(forest);
            forest = open(disk);
        }
        forest
    });
}

#[test]
fn a_copy_that_was_taken_from_the_history_is_erased() {
    let disk = SimulatedDisk::new();
    let forest = open(&disk);
    let tree = block_on(forest.create("copies")).unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_erasable(root, "secret", b"of Ada").unwrap();
    let had = block_on(edit.commit()).unwrap().version;
    put(&tree, "secret", b"nothing");
    block_on(forest.checkpoint()).unwrap();
    drop((tree, forest));
    let forest = open(&disk);
    let tree = forest.get("copies").unwrap();
    let past = block_on(forest.at(Moment::Version(had))).unwrap();
    let view = past.get("copies").unwrap().snapshot();
    put(&tree, "another", view.tree().root().get("secret").unwrap());
    block_on(tree.erase(root, "another")).unwrap();
    assert_eq!(secret_at(&forest, had), None);
}
