//! The memory that a forest takes: the nodes, the indexes and the erasable values of all versions that are kept.

use std::collections::HashSet;

use weald_tree::Census;

use crate::forest::Forest;
use crate::state::root::{Root, RootRef};

/// The memory of all versions that are kept; what they share is counted once. See [`Forest::weigh`].
///
/// ```
/// use weald::block_on;
/// use weald::forest::Forest;
///
/// let forest = Forest::new();
/// let people = block_on(forest.create("people"))?;
/// block_on(people.add_index("name"))?;
/// let mut edit = people.edit();
/// let root = edit.root();
/// edit.put_attribute(root, "name", "Ada")?;
/// edit.put_erasable(root, "born", "1815")?;
/// block_on(edit.commit())?;
///
/// let weight = forest.weigh();
/// assert_eq!((weight.trees.versions(), weight.trees.nodes()), (3, 3));
/// assert_eq!(weight.trees.shared(), 1, "an index changes no node");
/// assert_eq!(weight.blob_bytes, 4);
/// assert_eq!(weight.bytes(), weight.trees.bytes() + weight.index_bytes + 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Weight {
    /// The nodes, and how many of them are shared between versions.
    pub trees: Census,
    /// Bytes of all indexes, as requested from the allocator.
    pub index_bytes: usize,
    /// Bytes of all erasable values that are stored, those of edits that are not committed yet among them.
    pub blob_bytes: usize,
}

impl Weight {
    /// All bytes together.
    pub fn bytes(&self) -> usize {
        self.trees.bytes() + self.index_bytes + self.blob_bytes
    }

    fn add(&mut self, root: &Root, seen: &mut HashSet<usize>) {
        self.trees.add(&root.tree);
        for index in root.all_indexes().all() {
            index.keys.chunks(&mut |address, bytes| {
                let is_new = seen.insert(address);
                self.index_bytes += if is_new { bytes } else { 0 };
                is_new
            });
        }
    }
}

impl Forest {
    /// The memory that all versions that are kept take. It takes the time of a walk over all of it.
    pub fn weigh(&self) -> Weight {
        let mut weight = Weight {
            blob_bytes: self.state().blobs.count().1,
            ..Weight::default()
        };
        let mut seen = HashSet::new();
        for state in self.state().trees() {
            let roots: Vec<RootRef> = {
                let history = state.history();
                let lone = history
                    .tags()
                    .values()
                    .map(|tagged| &tagged.root)
                    .filter(|root| root.number() <= history.gone());
                history.kept().chain(lone).cloned().collect()
            };
            roots.iter().for_each(|root| weight.add(root, &mut seen));
        }
        weight
    }
}
