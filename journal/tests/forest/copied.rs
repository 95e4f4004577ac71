//! Erasing where an attribute had a copy of a reference that only the history on disk still has.

use std::collections::{BTreeMap, BTreeSet};

use pollster::block_on;
use weald_forest::journal::{BlobId, Journal};
use weald_forest::{CommitError, Committed, Forest, TreeHandle, Value, Version};
use weald_journal::{DiskForest, DiskJournal, Moment, Settings, SimulatedDisk};

use crate::openings::Random;

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
        Value::Plain(_) | Value::Elsewhere => panic!("its bytes are here"),
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
        let top = copies.view().tree().root().id();
        block_on(copies.erase(top, "secret")).unwrap();
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

const TREES: [&str; 2] = ["one", "other"];

const ATTRIBUTES: [&str; 4] = ["a", "b", "c", "d"];

/// An attribute of the root of a tree.
type Place = (&'static str, &'static str);

/// What is known about the bytes from the acknowledged steps.
#[derive(Default)]
struct Known {
    /// The ids to which an attribute ever referred.
    referred: BTreeMap<Place, BTreeSet<u128>>,
    all: BTreeSet<u128>,
    erased: BTreeSet<u128>,
}

/// What a step that was not acknowledged may have done.
enum Doubt {
    Nothing,
    /// The attribute may refer to something new.
    Put(Place),
    Erase(Place),
}

fn id_at(forest: &DiskForest, (tree, name): Place) -> Option<u128> {
    let view = forest.get(tree).unwrap().snapshot();
    let value = view.tree().root().get(name)?;
    let id = value.strip_prefix(&[0xFF, 0xFE])?.last_chunk()?;
    Some(u128::from_le_bytes(*id))
}

impl Known {
    fn note(&mut self, forest: &DiskForest, place: Place) {
        if let Some(id) = id_at(forest, place) {
            self.referred.entry(place).or_default().insert(id);
            self.all.insert(id);
        }
    }

    fn erase(&mut self, place: Place) {
        let ids = self.referred.get(&place).into_iter().flatten();
        self.erased.extend(ids);
    }

    /// The journal has the bytes that were not erased at any attribute, and no others.
    fn check(&self, forest: &DiskForest, what: &str) {
        for id in &self.all {
            let found = block_on(forest.journal().blob(BlobId(*id))).unwrap();
            let is_erased = self.erased.contains(id);
            assert_eq!(found.is_none(), is_erased, "{what}: bytes {id:x}");
        }
    }

    /// Finds out the outcome of a step that was not acknowledged.
    fn settle(&mut self, forest: &DiskForest, doubt: &Doubt, what: &str) {
        match doubt {
            Doubt::Nothing => {}
            Doubt::Put(place) => self.note(forest, *place),
            Doubt::Erase(place) => {
                let ids = self.referred.get(place).cloned().unwrap_or_default();
                let doubtful: Vec<_> = ids.difference(&self.erased).collect();
                let is_gone = |id: &&u128| {
                    let found = block_on(forest.journal().blob(BlobId(**id)));
                    found.unwrap().is_none()
                };
                let gone = doubtful.iter().copied().filter(is_gone).count();
                assert!(gone == 0 || gone == doubtful.len(), "{what}: half erased");
                if gone > 0 {
                    self.erase(*place);
                }
            }
        }
    }
}

/// Does something; returns what is in doubt, if it was not acknowledged.
fn step(forest: &DiskForest, known: &mut Known, random: &mut Random) -> Result<(), Doubt> {
    let mut place = || (TREES[random.index(2)], ATTRIBUTES[random.index(4)]);
    let (place, from) = (place(), place());
    let tree = forest.get(place.0).unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    match random.below(8) {
        0 | 1 => edit.put_erasable(root, place.1, "secret").unwrap(),
        2..=4 => {
            let view = forest.get(from.0).unwrap().snapshot();
            let Some(value) = view.tree().root().get(from.1) else {
                return Ok(());
            };
            edit.put_attribute(root, place.1, value).unwrap();
        }
        5 => edit.put_attribute(root, place.1, "plain").unwrap(),
        6 => {
            let erased: Result<Committed, CommitError> = block_on(tree.erase(root, place.1));
            erased.map_err(|_| Doubt::Erase(place))?;
            known.erase(place);
            return Ok(());
        }
        _ => return block_on(forest.checkpoint()).map_err(|_| Doubt::Nothing),
    }
    block_on(edit.commit()).map_err(|_| Doubt::Put(place))?;
    known.note(forest, place);
    Ok(())
}

fn copy_and_erase(seed: u64) {
    let mut random = Random(seed);
    let mut disk = SimulatedDisk::new();
    let mut known = Known::default();
    let mut doubt = Doubt::Nothing;
    for opening in 0..8 {
        let what = format!("seed {seed}, opening {opening}");
        let forest = open(&disk);
        for tree in TREES {
            if forest.get(tree).is_err() {
                block_on(forest.create(tree)).unwrap();
            }
        }
        known.settle(&forest, &doubt, &what);
        known.check(&forest, &what);
        doubt = Doubt::Nothing;
        if random.below(2) == 0 {
            disk.cut_power_at(disk.operations() + random.below(60));
        }
        for _ in 0..12 {
            if let Err(in_doubt) = step(&forest, &mut known, &mut random) {
                doubt = in_doubt;
                break;
            }
        }
        drop(forest);
        disk = match random.below(2) {
            0 => disk.after_kill(),
            _ => disk.after_power_cut(random.below(1 << 20)),
        };
    }
}

#[test]
fn whatever_is_copied_and_erased_in_any_order_over_openings_is_erased_everywhere_and_nothing_else()
{
    (0..60).for_each(copy_and_erase);
}

#[test]
fn soak_whatever_is_copied_and_erased_in_any_order_is_erased_everywhere_and_nothing_else() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds.unwrap_or(0));
    for seed in 60.. {
        copy_and_erase(seed);
        if std::time::Instant::now() >= end {
            return;
        }
    }
}

#[test]
fn what_a_tree_had_that_was_deleted_in_an_earlier_opening_can_be_erased() {
    let disk = SimulatedDisk::new();
    let forest = open(&disk);
    let tree = block_on(forest.create("copies")).unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_erasable(root, "secret", b"of Ada").unwrap();
    let version = block_on(edit.commit()).unwrap().version;
    block_on(forest.delete("copies")).unwrap();
    drop((tree, forest));
    let forest = open(&disk);
    let past = block_on(forest.at(Moment::Version(version))).unwrap();
    let number = past.get("copies").unwrap().number();
    assert_eq!(secret_at(&forest, version).as_deref(), Some(&b"of Ada"[..]));
    block_on(forest.erase_in(number, root, "secret")).unwrap();
    assert_eq!(secret_at(&forest, version), None);
    drop((past, forest));
    assert_eq!(secret_at(&open(&disk), version), None);
}

#[test]
fn nothing_is_erased_in_a_tree_whose_number_no_commit_has() {
    let forest = open(&SimulatedDisk::new());
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    for number in [0, tree.number() + 1, u64::MAX] {
        let erased = block_on(forest.erase_in(number, root, "secret"));
        assert!(
            matches!(erased, Err(CommitError::NothingToErase { .. })),
            "{number}: {erased:?}"
        );
    }
}
