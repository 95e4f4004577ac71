//! Counts the memory that several versions hold together: what they share counts once.

use std::collections::HashSet;

use triomphe::{Arc, ThinArc};

use crate::children::Children;
use crate::radix::{Branch, Slots, WIDTH};
use crate::record::Record;
use crate::tree::Tree;

/// The reference counter in front of a shared block; the standard library has two.
const COUNTER: usize = size_of::<usize>();

/// What several versions hold together. Adding a version costs time in proportion to what it does not share
/// with the versions added before.
///
/// ```
/// use weald_tree::{Attributes, Census, Tree};
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
/// # Ok::<(), weald_tree::EditError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Addresses of all blocks that were counted.
    seen: HashSet<usize>,
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
        self.add_branch(&tree.records.tail().leaf);
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
    fn add_branch(&mut self, branch: &Branch<Record>) {
        match branch {
            Branch::Empty => {}
            Branch::Inner(below) => {
                let bytes = size_of::<[Branch<Record>; WIDTH]>() + COUNTER;
                if self.look(Arc::as_ptr(below).addr(), bytes) {
                    below.iter().for_each(|branch| self.add_branch(branch));
                }
            }
            Branch::Leaf(leaf) => {
                let bytes = size_of::<Slots<Record>>() + COUNTER;
                if self.look(Arc::as_ptr(&leaf.slots).addr(), bytes) {
                    leaf.slots
                        .iter()
                        .flatten()
                        .for_each(|record| self.add_record(record));
                }
            }
        }
    }

    fn add_record(&mut self, record: &Record) {
        self.records += 1;
        if let Some((address, bytes)) = record.attributes.shared() {
            self.look(address, bytes + 2 * COUNTER);
        }
        match &record.children {
            Children::None | Children::Run { .. } => {}
            Children::Few(ids) => {
                // The counter, the length, the ids.
                let bytes = 2 * COUNTER + size_of_val(&ids.slice);
                self.look(ThinArc::as_ptr(ids).addr(), bytes);
            }
            Children::List(list) => {
                list.chunks(&mut |address, bytes| self.look(address, bytes + 2 * COUNTER));
            }
        }
    }

    /// Counts an allocation; returns whether it is new.
    fn look(&mut self, address: usize, bytes: usize) -> bool {
        let is_new = self.seen.insert(address);
        if is_new {
            self.bytes += bytes;
        }
        is_new
    }
}
