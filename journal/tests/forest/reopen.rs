//! Everything that a forest knew is there when it is opened again.

use pollster::block_on;
use weald_forest::{Attributes, Commit, CommitId, Forest, TreeHandle, Value};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

fn append(tree: &TreeHandle, text: &str, id: u128) {
    let mut edit = tree.edit();
    let root = edit.root();
    edit.append(root, Attributes::new().with("text", text))
        .unwrap();
    block_on(edit.commit().id(CommitId(id)).bytes(text.as_bytes())).unwrap();
}

/// Everything of a forest that must be the same after opening.
fn described(forest: &Forest) -> Vec<String> {
    let mut all = Vec::new();
    for name in forest.list() {
        let tree = forest.get(&name).unwrap();
        all.push(format!("{name} {}", tree.number()));
        for root in tree.versions() {
            let nodes: Vec<_> = root.tree().records().collect();
            let (version, id, time) = (root.version(), root.commit_id(), root.time());
            all.push(format!(
                "{version} {id} {time:?} {:?} {nodes:?}",
                root.bytes()
            ));
        }
    }
    all
}

#[test]
fn versions_names_tags_ids_and_erasable_values_are_there_again_and_numbers_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut before = Vec::new();
    let mut newest = None;
    for opening in 0..5_u128 {
        let forest = block_on(DiskForest::open(directory.path())).unwrap();
        assert_eq!(described(&forest), before, "opening {opening}");
        if opening == 0 {
            let first = block_on(forest.create("first")).unwrap();
            block_on(forest.create("gone")).unwrap();
            append(&first, "a", 1);
            let version = first.view().version();
            block_on(first.tag("kept", version)).unwrap();
            block_on(forest.delete("gone")).unwrap();
            block_on(forest.rename("first", "notes")).unwrap();
            let mut edit = first.edit();
            let root = edit.root();
            edit.put_erasable(root, "secret", b"hidden").unwrap();
            edit.put_erasable(root, "other", b"shown").unwrap();
            block_on(edit.commit()).unwrap();
            block_on(first.erase(root, "secret")).unwrap();
        }
        let notes = forest.get("notes").unwrap();
        let view = notes.snapshot();
        let value = |name| forest.value(view.tree().root(), name);
        assert!(matches!(value("secret"), Some(Value::Erased { .. })));
        assert_eq!(value("other").unwrap().bytes(), Some(&b"shown"[..]));
        assert!(newest.is_none_or(|newest| view.version() == newest));
        append(&notes, &format!("opening {opening}"), 100 + opening);
        // The same id again is the same commit.
        let len = notes.view().tree().len();
        append(&notes, &format!("opening {opening}"), 100 + opening);
        assert_eq!(notes.view().tree().len(), len);
        assert!(
            Some(notes.view().version()) > newest,
            "a version was given out again"
        );
        newest = Some(notes.view().version());
        if opening % 2 == 1 {
            block_on(forest.checkpoint()).unwrap();
        }
        before = described(&forest);
    }
}

#[test]
fn several_trees_change_together_also_across_an_opening() {
    let directory = tempfile::tempdir().unwrap();
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let trees = ["one", "other"].map(|name| block_on(forest.create(name)).unwrap());
    for number in 0..20 {
        let edits = trees.each_ref().map(|tree| {
            let mut edit = tree.edit();
            let root = edit.root();
            edit.put_attribute(root, "number", format!("{number}").as_bytes())
                .unwrap();
            edit
        });
        block_on(Commit::of(edits).unwrap()).unwrap();
    }
    drop((forest, trees));
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let [one, other] = ["one", "other"].map(|name| forest.get(name).unwrap().snapshot());
    assert_eq!(one.version(), other.version());
    assert_eq!(
        one.tree().root().attributes().get("number"),
        Some(&b"19"[..])
    );
}

/// A thread of the journal may still be waking others when a commit is acknowledged: each one here waits for a segment.
#[test]
fn a_forest_whose_last_handle_was_dropped_is_closed() {
    for _ in 0..20 {
        let disk = SimulatedDisk::new();
        for number in 0..20_u128 {
            let journal = DiskJournal::open_on(disk.clone(), Settings::new().segment(1024));
            let journal = journal.unwrap_or_else(|error| panic!("opening {number}: {error}"));
            let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
            let tree = block_on(forest.create(&format!("tree {number}"))).unwrap();
            for nth in 0..=number % 4 {
                append(&tree, &"x".repeat(300), 100 * number + nth);
            }
        }
    }
}
