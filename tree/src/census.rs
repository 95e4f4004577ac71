//! Counts the memory that several versions hold together; shared parts count once.

use std::collections::HashMap;

use weald_memory::Shared;

use crate::branch::{Branch, Content, Inner};
use crate::leaf::Leaf;
use crate::tree::Tree;

/// The reference counter in front of a shared block; the standard library has two.
const COUNTER: usize = size_of::<usize>();

/// What several versions hold together. Adding a version costs time in proportion to what it does not share
/// with the versions added before.
///
/// ```
/// use weald::tree::{Attributes, Census, Tree};
///
/// let old = Tree::new();
/// let mut edit = old.edit();
/// let root = edit.tree().root().id();
/// edit.append(root, Attributes::new())?;
/// let mut census = Census::default();
/// census.add(&old);
/// census.add(&old.clone());
/// let alone = census.bytes();
/// census.add(&edit.freeze());
/// assert_eq!((census.versions(), census.nodes(), census.records()), (3, 4, 3));
/// assert!(census.bytes() > alone);
/// # Ok::<(), weald::tree::EditError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// The addresses of all blocks that were counted; of the blocks of leaves, the cells that were counted.
    seen: HashMap<usize, u16>,
    versions: u64,
    nodes: u64,
    records: u64,
    bytes: usize,
}

impl Census {
    /// Counts one more version.
    pub fn add(&mut self, tree: &Tree) {
        self.versions += 1;
        self.nodes += tree.len();
        self.add_branch(tree.records.top().0);
        for loose in tree.records.loose_leaves() {
            self.add_branch(loose.leaf);
        }
    }

    /// How many versions were added.
    pub fn versions(&self) -> u64 {
        self.versions
    }

    /// How many nodes they have; a node counts once in each version.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// How many records they hold in memory; nodes with the same record share it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many nodes have no record of their own, because another version has the same record.
    pub fn shared(&self) -> u64 {
        self.nodes.saturating_sub(self.records)
    }

    /// How many bytes they take together, as requested from the allocator.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    // Recurses as deep as the map is high: twenty levels at most.
    fn add_branch(&mut self, branch: &Branch) {
        match branch.content() {
            Content::Empty => {}
            Content::Inner(below) => {
                if self.look(std::ptr::from_ref(below).addr(), Shared::<Inner>::BYTES) {
                    let below = below.0.iter();
                    below.for_each(|branch| self.add_branch(branch));
                }
            }
            Content::Leaf(leaf) => {
                if self.look(std::ptr::from_ref(leaf).addr(), Shared::<Leaf>::BYTES) {
                    self.add_leaf(leaf);
                }
            }
        }
    }

    /// Counts the records that have a new part.
    fn add_leaf(&mut self, leaf: &Leaf) {
        let [links, attributes] = leaf.blocks().map(|block| self.look_at_cells(block));
        self.records += u64::from((links | attributes).count_ones());
        for slot in leaf.slots() {
            if attributes >> slot & 1 == 1
                && let Some(attributes) = leaf.attributes(slot)
                && let Some((address, bytes)) = attributes.shared()
            {
                self.look(address, bytes + 2 * COUNTER);
            }
            if links >> slot & 1 == 1
                && let Some(links) = leaf.links(slot)
            {
                let (own, long) = links.shared();
                if let Some((address, bytes)) = own {
                    self.look(address, bytes + 2 * COUNTER);
                }
                if let Some(list) = long {
                    list.chunks(&mut |address, bytes| self.look(address, bytes + 2 * COUNTER));
                }
            }
        }
    }

    /// Counts a block of cells and returns those of the leaf's cells that are new.
    fn look_at_cells(&mut self, (address, bytes, present): (usize, usize, u16)) -> u16 {
        self.look(address, bytes);
        let counted = self.seen.entry(address).or_default();
        let new = present & !*counted;
        *counted |= present;
        new
    }

    /// Counts an allocation; returns whether it is new.
    fn look(&mut self, address: usize, bytes: usize) -> bool {
        let mut is_new = false;
        self.seen.entry(address).or_insert_with(|| {
            is_new = true;
            0
        });
        if is_new {
            self.bytes += bytes;
        }
        is_new
    }
}
