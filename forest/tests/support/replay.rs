//! Makes a forest's trees again from the records of its journal, in the plainest way.

use std::collections::BTreeMap;

use weald_forest::journal::{Change, Entry, Stored};
use weald_forest::{Tree, TreeHandle};
use weald_tree::Ids;

/// The trees by their numbers: their names, and their versions by the numbers of the commits.
#[derive(Default)]
pub(crate) struct Replayed {
    pub(crate) trees: BTreeMap<u64, (String, BTreeMap<u64, Tree>)>,
    pub(crate) records: Vec<Stored>,
}

impl Replayed {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut replayed = Self::default();
        entries.iter().for_each(|entry| replayed.add(&entry.record));
        replayed
    }

    fn newest(&self, tree: u64) -> &Tree {
        self.trees[&tree].1.last_key_value().unwrap().1
    }

    fn ids(&self, tree: u64) -> Option<Ids> {
        self.trees
            .contains_key(&tree)
            .then(|| self.newest(tree).ids().clone())
    }

    fn versions(&mut self, tree: u64) -> &mut BTreeMap<u64, Tree> {
        &mut self.trees.get_mut(&tree).unwrap().1
    }

    fn add(&mut self, record: &[u8]) {
        let stored = Stored::read(record).unwrap();
        let number = stored.version.number;
        for change in stored.changes(&mut |tree| self.ids(tree)).unwrap() {
            match change {
                Change::Create { name, content } => {
                    let versions = BTreeMap::from([(number, content)]);
                    self.trees.insert(number, (name, versions));
                }
                Change::Edit {
                    tree, operations, ..
                } => {
                    let mut edit = self.newest(tree).edit();
                    for operation in &operations {
                        edit.replay(operation).unwrap();
                    }
                    self.versions(tree).insert(number, edit.freeze());
                }
                Change::AddIndex { tree, .. } | Change::DropIndex { tree, .. } => {
                    let same = self.newest(tree).clone();
                    self.versions(tree).insert(number, same);
                }
                Change::Rename { tree, name } => self.trees.get_mut(&tree).unwrap().0 = name,
                Change::Delete { tree } => _ = self.trees.remove(&tree),
                _ => {}
            }
        }
        self.records.push(stored);
    }

    /// The versions of a tree are those that the forest has, with the same ids and order keys.
    pub(crate) fn check(&self, tree: &TreeHandle) {
        let (name, versions) = &self.trees[&tree.number()];
        assert_eq!(*name, tree.name());
        let kept = tree.versions();
        assert_eq!(versions.len(), kept.len());
        for (root, (number, again)) in kept.iter().zip(versions) {
            assert_eq!(root.version().number, *number);
            assert!(
                root.tree().records().eq(again.records()),
                "version {number}"
            );
            assert_eq!(root.tree().root().to_json(), again.root().to_json());
        }
    }
}
