//! Everything that a forest knew is there when it is opened again.

use pollster::block_on;
use weald_forest::journal::{BlobId, Journal, Resolved};
use weald_forest::{
    Attributes, Commit, CommitError, CommitId, Committed, EditError, Forest, NodeId, Tree,
    TreeHandle, Value,
};
use weald_journal::{
    DiskForest, DiskJournal, ReadOnlyForest, ReadOnlyJournal, Settings, SimulatedDisk,
};
use weald_tree::{Ids, NodeRecord};

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

/// One flipped bit of a value would keep the forest closed, even to a program that wants to erase the value.
#[test]
fn a_forest_with_a_damaged_erasable_value_opens_without_it_if_that_is_asked_for() {
    let disk = SimulatedDisk::new();
    let open = |settings: Settings| {
        let journal = DiskJournal::open_on(disk.clone(), settings.segment(64 << 10)).unwrap();
        block_on(DiskForest::recover(Forest::builder(), journal))
    };
    let forest = open(Settings::new()).unwrap();
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    for name in ["one", "two", "three"] {
        let mut edit = tree.edit();
        edit.put_erasable(root, name, name).unwrap();
        block_on(edit.commit()).unwrap();
    }
    block_on(forest.checkpoint()).unwrap();
    drop((tree, forest));
    // What the last opening has written is always read.
    let forest = open(Settings::new()).unwrap();
    block_on(forest.create("other")).unwrap();
    block_on(forest.checkpoint()).unwrap();
    drop(forest);
    let segment = disk
        .names()
        .into_iter()
        .find(|name| name.ends_with(".segment"));
    let segment = segment.unwrap();
    let mut bytes = disk.file(&segment).unwrap();
    // The second frame with erasable bytes of three letters, by its length and kind.
    let mut frames = bytes.windows(4).enumerate();
    let mut frames = frames
        .by_ref()
        .filter(|(_, word)| *word == [24 + 3 + 16, 0, 0, 0x60]);
    let (second, _) = frames.nth(1).unwrap();
    bytes[second + 40] ^= 1;
    disk.set_file(&segment, Some(&bytes));

    let error = open(Settings::new()).unwrap_err().to_string();
    assert!(error.contains("skip_damaged_values"), "{error}");
    let forest = open(Settings::new().skip_damaged_values()).unwrap();
    let tree = forest.get("t").unwrap();
    let has = |name| {
        let view = tree.snapshot();
        let value = forest.value(view.tree().root(), name).unwrap();
        value.bytes() == Some(name.as_bytes())
    };
    assert_eq!(["one", "two", "three"].map(has), [true, false, true]);
    assert_eq!(forest.stats().unreadable_blobs, 1);
    let skipping = Settings::new().skip_damaged_values();
    let reader = ReadOnlyJournal::open_with(disk.clone(), &skipping).unwrap();
    let reader = block_on(ReadOnlyForest::recover(Forest::builder(), reader)).unwrap();
    assert_eq!(reader.stats().unreadable_blobs, 1);
    block_on(tree.erase(root, "two")).unwrap();
    assert_eq!(forest.stats().unreadable_blobs, 0);
    drop((tree, forest));
    open(Settings::new()).unwrap();
}

/// While the value cannot be read, its reference is copied, and a checkpoint is put. Then the file is put back.
#[test]
fn a_value_that_was_left_out_can_be_erased_where_its_reference_was_copied_to() {
    for is_put_back in [false, true] {
        let disk = SimulatedDisk::new();
        let open = |settings: Settings| {
            let journal = DiskJournal::open_on(disk.clone(), settings.segment(64 << 10)).unwrap();
            block_on(DiskForest::recover(Forest::builder(), journal)).unwrap()
        };
        let forest = open(Settings::new());
        let tree = block_on(forest.create("t")).unwrap();
        let root = tree.view().tree().root().id();
        let mut edit = tree.edit();
        edit.put_erasable(root, "one", "one").unwrap();
        block_on(edit.commit()).unwrap();
        drop((tree, forest));
        // What the last opening has written is always read.
        let forest = open(Settings::new());
        block_on(forest.create("other")).unwrap();
        block_on(forest.checkpoint()).unwrap();
        drop(forest);
        let mut names = disk.names().into_iter();
        let segment = names.find(|name| name.ends_with(".segment")).unwrap();
        let bytes = disk.file(&segment).unwrap();
        disk.set_file(&segment, None);

        let forest = open(Settings::new().skip_damaged_values());
        let tree = forest.get("t").unwrap();
        let view = tree.snapshot();
        let reference = view.tree().root().get("one").unwrap();
        let id = BlobId(u128::from_le_bytes(*reference.last_chunk().unwrap()));
        let mut edit = tree.edit();
        edit.put_attribute(root, "copy", reference).unwrap();
        block_on(edit.commit()).unwrap();
        block_on(forest.checkpoint()).unwrap();
        drop(view);
        let (forest, tree) = match is_put_back {
            false => (forest, tree),
            true => {
                drop((tree, forest));
                disk.set_file(&segment, Some(&bytes));
                let forest = open(Settings::new());
                let tree = forest.get("t").unwrap();
                let view = tree.snapshot();
                let value = forest.value(view.tree().root(), "copy").unwrap();
                assert_eq!(value.bytes(), Some(&b"one"[..]));
                (forest, tree)
            }
        };
        block_on(tree.erase(root, "copy")).unwrap();
        assert_eq!(block_on(forest.journal().has_blob(id)), Ok(false));
        drop((tree, forest));
        open(Settings::new());
    }
}

/// The journal no longer tells what became of such a commit. The forest does, for the newest ids that authors chose.
#[test]
fn a_commit_whose_record_was_trimmed_is_not_made_again_under_its_id() {
    let disk = SimulatedDisk::new();
    let open = || {
        let settings = Settings::new().segment(4 << 10);
        let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
        block_on(DiskForest::recover(Forest::builder().keep(1), journal)).unwrap()
    };
    let commit = |tree: &TreeHandle, text: &str, id| -> Result<Committed, CommitError> {
        let mut edit = tree.edit();
        let root = edit.root();
        edit.append(root, Attributes::new().with("text", text))
            .unwrap();
        block_on(edit.commit().id(CommitId(id)))
    };
    let forest = open();
    let tree = block_on(forest.create("notes")).unwrap();
    let first = commit(&tree, "first", 1).unwrap();
    for number in 2..30 {
        commit(&tree, &"x".repeat(300), number).unwrap();
    }
    block_on(forest.checkpoint()).unwrap();
    let at = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
    block_on(forest.journal().trim(at)).unwrap();
    drop((tree, forest));
    let forest = open();
    for id in [1, 77] {
        let told = block_on(forest.journal().resolve(CommitId(id)));
        assert_eq!(told, Resolved::Unknown, "{id}");
    }
    let tree = forest.get("notes").unwrap();
    assert_eq!(commit(&tree, "first", 1), Ok(first));
    assert_eq!(commit(&tree, "other", 1), Err(CommitError::IdTaken(first)));
    assert!(commit(&tree, "new", 77).unwrap().version > first.version);
}

#[test]
fn a_forest_opens_after_a_tree_has_used_up_its_ids() {
    let directory = tempfile::tempdir().unwrap();
    let last = (1 << 62) - 1;
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let node = NodeId::new(last - 2).unwrap();
    let record = Tree::new().records().next().unwrap();
    let root = NodeRecord { id: node, ..record };
    let content = Tree::from_records(Ids::above(last - 2), [root]).unwrap();
    let tree = block_on(forest.create_from("a", content)).unwrap();
    append(&tree, "last but one", 1);
    append(&tree, "last", 2);
    let mut edit = tree.edit();
    let refused = edit.append(node, Attributes::new());
    assert_eq!(refused, Err(EditError::NoIdLeft));
    drop((edit, tree));
    let before = described(&forest);
    drop(forest);
    for _ in 0..2 {
        let forest = block_on(DiskForest::open(directory.path())).unwrap();
        assert_eq!(described(&forest), before);
        block_on(forest.checkpoint()).unwrap();
    }
}
