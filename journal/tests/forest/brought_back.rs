//! Erasable values that come back from a forest of a past moment, long after memory has let them go: they are what they
//! were, at once, after each opening, and behind checkpoints and trims.

use pollster::block_on;
use weald_forest::journal::Journal;
use weald_forest::{
    Attributes, Bytes, CommitError, CommitId, Forest, LostBytes, NodeId, Operation, TreeHandle,
    Value, Where,
};
use weald_journal::{DiskForest, DiskJournal, Moment, ReadOnlyForest, Settings, SimulatedDisk};

/// More commits than the forest makes before it asks what is settled.
const MANY: usize = 300;

const NAME: &str = "secret";

/// The attribute that has the reference now: the tree, the node, the name.
type Place = (&'static str, NodeId, &'static str);

fn open(disk: &SimulatedDisk) -> DiskForest {
    let settings = Settings::new().segment(4096).checkpoint_after(None);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(1), journal)).unwrap()
}

fn pass(forest: &DiskForest) {
    let tree = forest.get("people").unwrap();
    for number in 0..MANY {
        let mut edit = tree.edit();
        edit.put_attribute(edit.root(), "number", number.to_string())
            .unwrap();
        block_on(edit.commit()).unwrap();
    }
}

/// A forest whose past had an erasable value, and the past.
fn begin(disk: &SimulatedDisk) -> (DiskForest, ReadOnlyForest) {
    let forest = open(disk);
    let tree = block_on(forest.create("people")).unwrap();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), NAME, b"of Ada").unwrap();
    let had = block_on(edit.commit()).unwrap().version;
    let mut edit = tree.edit();
    edit.delete_attribute(edit.root(), NAME).unwrap();
    block_on(edit.commit()).unwrap();
    pass(&forest);
    assert_eq!(forest.stats().blobs, 0, "memory has let it go");
    let past = block_on(forest.at(Moment::Version(had))).unwrap();
    (forest, past)
}

fn then(past: &Forest) -> (Attributes, Bytes) {
    let view = past.get("people").unwrap().snapshot();
    let attributes = view.tree().root().attributes().clone();
    let value = attributes.get_bytes(NAME).unwrap();
    (attributes, value)
}

fn edited(forest: &Forest, change: impl FnOnce(&TreeHandle, &mut weald_forest::Edit)) -> NodeId {
    let tree = forest.get("people").unwrap();
    let mut edit = tree.edit();
    change(&tree, &mut edit);
    let root = edit.root();
    block_on(edit.commit()).unwrap();
    root
}

fn as_a_tree(forest: &Forest, past: &Forest) -> Place {
    let content = past.get("people").unwrap().snapshot().tree().clone();
    let tree = block_on(forest.create_from("back", content)).unwrap();
    ("back", tree.view().tree().root().id(), NAME)
}

fn as_its_attribute(forest: &Forest, past: &Forest) -> Place {
    let (_, value) = then(past);
    let root = edited(forest, |_, edit| {
        edit.put_attribute(edit.root(), NAME, &*value).unwrap();
    });
    ("people", root, NAME)
}

fn as_another_attribute(forest: &Forest, past: &Forest) -> Place {
    let (_, value) = then(past);
    let root = edited(forest, |_, edit| {
        edit.put_attribute(edit.root(), "other", &*value).unwrap();
    });
    ("people", root, "other")
}

fn with_a_node(forest: &Forest, past: &Forest) -> Place {
    let (attributes, _) = then(past);
    let mut node = None;
    edited(forest, |_, edit| {
        node = edit.append(edit.root(), attributes).ok();
    });
    ("people", node.unwrap(), NAME)
}

fn in_a_subtree(forest: &Forest, past: &Forest) -> Place {
    let (attributes, _) = then(past);
    let mut node = None;
    edited(forest, |tree, edit| {
        let mut builder = tree.view().tree().builder(Attributes::new());
        node = Some(builder.leaf(attributes));
        let root = edit.root();
        edit.splice(Where::Last(root), &builder.finish()).unwrap();
    });
    ("people", node.unwrap(), NAME)
}

fn by_an_operation(forest: &Forest, past: &Forest) -> Place {
    let (_, value) = then(past);
    let root = edited(forest, |_, edit| {
        let (node, name) = (edit.root(), Bytes::new(b"applied"));
        edit.apply(&Operation::PutAttribute { node, name, value })
            .unwrap();
    });
    ("people", root, "applied")
}

const WAYS: [fn(&Forest, &Forest) -> Place; 6] = [
    as_a_tree,
    as_its_attribute,
    as_another_attribute,
    with_a_node,
    in_a_subtree,
    by_an_operation,
];

/// What is there: the bytes; `None`, if they were erased.
fn read(forest: &Forest, (tree, node, name): Place) -> Option<Vec<u8>> {
    let view = forest.get(tree).unwrap().snapshot();
    let node = view.tree().node(NodeId::new(node.get()).unwrap()).unwrap();
    match forest.value(node, name).unwrap() {
        Value::Erasable(bytes) => Some(bytes.to_vec()),
        Value::Erased { .. } => None,
        Value::Plain(bytes) => panic!("a reference is shown as {bytes:?}"),
        Value::Elsewhere => panic!("its bytes are here"),
    }
}

fn must_have(forest: &Forest, place: Place) {
    assert_eq!(read(forest, place).as_deref(), Some(&b"of Ada"[..]));
}

#[test]
fn what_comes_back_from_the_past_is_there_at_once_and_after_every_opening() {
    for way in WAYS {
        let disk = SimulatedDisk::new();
        let (forest, past) = begin(&disk);
        let place = way(&forest, &past);
        drop(past);
        must_have(&forest, place);
        pass(&forest);
        must_have(&forest, place);
        drop(forest);
        let forest = open(&disk);
        must_have(&forest, place);
        block_on(forest.checkpoint()).unwrap();
        drop(forest);
        let forest = open(&disk);
        must_have(&forest, place);
        pass(&forest);
        must_have(&forest, place);
    }
}

#[test]
fn a_checkpoint_before_it_came_back_has_nothing_of_it_and_a_trim_to_that_takes_nothing() {
    for way in WAYS {
        for is_put_again in [false, true] {
            let disk = SimulatedDisk::new();
            let (forest, past) = begin(&disk);
            pass(&forest);
            block_on(forest.checkpoint()).unwrap();
            let before = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
            let place = way(&forest, &past);
            drop(past);
            let mut forest = forest;
            if is_put_again {
                block_on(forest.checkpoint()).unwrap();
                drop(forest);
                forest = open(&disk);
            }
            block_on(forest.journal().trim(before)).unwrap();
            must_have(&forest, place);
            drop(forest);
            let forest = open(&disk);
            must_have(&forest, place);
        }
    }
}

/// No checkpoint refers to it yet, so its segment could be taken for one that was trimmed.
#[test]
fn a_lost_segment_with_what_came_back_keeps_the_forest_closed() {
    for way in WAYS {
        let disk = SimulatedDisk::new();
        let (forest, past) = begin(&disk);
        block_on(forest.checkpoint()).unwrap();
        way(&forest, &past);
        drop((past, forest));
        let mut names = disk.names().into_iter();
        let first = names.find(|name| name.ends_with(".segment")).unwrap();
        disk.set_file(&first, None);
        let settings = Settings::new().segment(4096).checkpoint_after(None);
        let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
        let opened = block_on(DiskForest::recover(Forest::builder().keep(1), journal));
        let error = opened.err().map(|error| error.to_string());
        let is_told = error.as_ref().is_some_and(|error| error.contains(&first));
        assert!(is_told, "{error:?} names {first}");
    }
}

#[test]
fn what_came_back_is_erased_through_each_attribute_that_ever_had_it() {
    for way in WAYS {
        for is_erased_where_it_was in [false, true] {
            let disk = SimulatedDisk::new();
            let (forest, past) = begin(&disk);
            block_on(forest.checkpoint()).unwrap();
            let place = way(&forest, &past);
            drop(past);
            let people = forest.get("people").unwrap();
            let (tree, node, name) = match is_erased_where_it_was {
                true => ("people", people.view().tree().root().id(), NAME),
                false => place,
            };
            let tree = forest.get(tree).unwrap();
            block_on(tree.erase(node, name)).unwrap();
            assert_eq!(read(&forest, place), None);
            drop((forest, people, tree));
            let forest = open(&disk);
            assert_eq!(read(&forest, place), None);
            block_on(forest.checkpoint()).unwrap();
            drop(forest);
            assert_eq!(read(&open(&disk), place), None);
        }
    }
}

#[test]
fn a_tree_from_the_past_holds_what_memory_has_already() {
    let disk = SimulatedDisk::new();
    let (forest, past) = begin(&disk);
    let place = as_another_attribute(&forest, &past);
    let back = as_a_tree(&forest, &past);
    drop(past);
    edited(&forest, |_, edit| {
        edit.delete_attribute(edit.root(), place.2).unwrap();
    });
    pass(&forest);
    must_have(&forest, back);
    block_on(forest.delete("back")).unwrap();
    pass(&forest);
    assert_eq!(forest.stats().blobs, 0, "nothing refers to it any more");
}

/// It is in none of the newest versions, so nothing but the history refers to it when the forest is opened again.
#[test]
fn what_came_back_and_is_gone_again_stays_in_the_history() {
    for way in WAYS {
        for is_put_before_the_end in [false, true] {
            let disk = SimulatedDisk::new();
            let (forest, past) = begin(&disk);
            block_on(forest.checkpoint()).unwrap();
            let before = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
            let place = way(&forest, &past);
            let had = forest.get(place.0).unwrap().view().version();
            drop(past);
            match place {
                ("back", ..) => _ = block_on(forest.delete("back")).unwrap(),
                (_, node, name) => {
                    edited(&forest, |_, edit| {
                        edit.delete_attribute(node, name).unwrap();
                    });
                }
            }
            pass(&forest);
            assert_eq!(forest.stats().blobs, 0, "no version in memory has it");
            if is_put_before_the_end {
                block_on(forest.checkpoint()).unwrap();
            }
            drop(forest);
            for _ in 0..2 {
                let forest = open(&disk);
                block_on(forest.checkpoint()).unwrap();
                block_on(forest.journal().trim(before)).unwrap();
                let then = block_on(forest.at(Moment::Version(had))).unwrap();
                must_have(&then, place);
            }
        }
    }
}

/// Commits that refer to what the past had, of a tree and of an edit: why they were refused.
fn refusals(forest: &Forest, past: &Forest) -> [Option<LostBytes>; 2] {
    let content = past.get("people").unwrap().snapshot().tree().clone();
    let created = block_on(forest.create_from("back", content)).err();
    let (_, value) = then(past);
    let tree = forest.get("people").unwrap();
    let mut edit = tree.edit();
    edit.put_attribute(edit.root(), NAME, &*value).unwrap();
    let committed = block_on(edit.commit()).err();
    [created, committed].map(|refused| match refused {
        Some(CommitError::Bytes { name, why, .. }) => {
            assert_eq!(name, NAME);
            Some(why)
        }
        None => None,
        Some(error) => panic!("{error}"),
    })
}

#[test]
fn a_commit_that_refers_to_bytes_that_were_trimmed_is_refused() {
    let disk = SimulatedDisk::new();
    let (forest, past) = begin(&disk);
    block_on(forest.checkpoint()).unwrap();
    let last = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
    block_on(forest.journal().trim(last)).unwrap();
    let version = forest.get("people").unwrap().view().version();
    let gone = [Some(LostBytes::Gone), Some(LostBytes::Gone)];
    assert_eq!(refusals(&forest, &past), gone);
    assert_eq!(forest.list(), ["people"]);
    assert_eq!(forest.get("people").unwrap().view().version(), version);
    assert_eq!(forest.stats().blobs, 0, "nothing is left of them");
    drop(forest);
    assert_eq!(refusals(&open(&disk), &past), gone);
}

#[test]
fn a_commit_that_refers_to_bytes_that_were_erased_is_refused() {
    let disk = SimulatedDisk::new();
    let (forest, past) = begin(&disk);
    let people = forest.get("people").unwrap();
    block_on(people.erase(people.view().tree().root().id(), NAME)).unwrap();
    let gone = [Some(LostBytes::Gone), Some(LostBytes::Gone)];
    assert_eq!(refusals(&forest, &past), gone);
    drop((people, forest));
    assert_eq!(refusals(&open(&disk), &past), gone);
}

#[test]
fn a_commit_whose_bytes_could_not_be_read_is_refused_and_made_when_they_can_be() {
    let disk = SimulatedDisk::new();
    let (forest, past) = begin(&disk);
    let mut names = disk.names().into_iter();
    let first = names.find(|name| name.ends_with(".segment")).unwrap();
    let bytes = disk.file(&first);
    disk.set_file(&first, None);
    for refused in refusals(&forest, &past) {
        assert!(
            matches!(refused, Some(LostBytes::Unreadable(_))),
            "{refused:?}"
        );
    }
    disk.set_file(&first, bytes.as_deref());
    assert_eq!(refusals(&forest, &past), [None, None]);
    let root = |tree| forest.get(tree).unwrap().view().tree().root().id();
    for place in [
        ("back", root("back"), NAME),
        ("people", root("people"), NAME),
    ] {
        must_have(&forest, place);
    }
}

/// The id of a commit answers with what was made, whatever became of the bytes since.
#[test]
fn a_commit_that_was_made_is_answered_though_its_bytes_are_gone() {
    let disk = SimulatedDisk::new();
    let (forest, past) = begin(&disk);
    let (_, value) = then(&past);
    let tree = forest.get("people").unwrap();
    let commit = || {
        let mut edit = tree.edit();
        edit.put_attribute(edit.root(), NAME, &*value).unwrap();
        block_on(edit.commit().id(CommitId(7)))
    };
    let made = commit().unwrap();
    block_on(tree.erase(tree.view().tree().root().id(), NAME)).unwrap();
    edited(&forest, |_, edit| {
        edit.delete_attribute(edit.root(), NAME).unwrap();
    });
    pass(&forest);
    assert_eq!(commit(), Ok(made));
}
