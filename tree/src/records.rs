//! A version as a list: each node with its parent, its order key and its attributes, in the order of the ids. It is
//! what a journal and a checkpoint hold of a tree, and the tree that is read back from it is the same, ids and keys
//! included.
//!
//! A list may come from a file, so nothing in it is believed: the tree that it describes is checked.

use weald_memory::Shared;

use crate::attributes::Attributes;
use crate::children::Children;
use crate::id::{FOREIGN_END, Ids, NodeId, OWN_END};
use crate::key::OrderKey;
use crate::leaf::Leaf;
use crate::radix::Radix;
use crate::record::{Place, Record};
use crate::subtree::{Parts, Subtree};
use crate::tree::Tree;

/// One node of a version as data.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRecord {
    /// Its id.
    pub id: NodeId,
    /// The node above it; `None` for the topmost.
    pub parent: Option<NodeId>,
    /// Its order key among its siblings.
    pub key: OrderKey,
    /// Its attributes.
    pub attributes: Attributes,
}

/// Why a list of records describes no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// An id is not greater than the one before it.
    #[error("the record of {0} is out of order; records are listed by rising ids")]
    OutOfOrder(NodeId),
    /// An id of 2⁶¹ or more that the source has not given out; in what a journal has, an id of 2⁶² or more.
    #[error("the record of {0} has an id that no source gave out")]
    IdTooLarge(NodeId),
    /// No node is without a parent.
    #[error("no record is without a parent, so there is no topmost node")]
    NoRoot,
    /// A second node is without a parent.
    #[error("the record of {0} has no parent, and neither has one before it")]
    TwoRoots(NodeId),
    /// A parent is not in the list.
    #[error("the parent of {node} is {parent}, which has no record")]
    NoParent {
        /// The node.
        node: NodeId,
        /// Its parent.
        parent: NodeId,
    },
    /// Nodes that are above themselves.
    #[error("{0} nodes are not below the topmost one, but above themselves")]
    Circle(u64),
    /// A node with 2³² children or more.
    #[error("the node {0} has more children than a node can have")]
    TooManyChildren(NodeId),
}

impl Tree {
    /// All nodes, in the order of their ids.
    ///
    /// ```
    /// use weald::tree::{Attributes, Ids, Tree};
    ///
    /// let mut edit = Tree::new().edit();
    /// let root = edit.tree().root().id();
    /// edit.append(root, Attributes::new().with("n", "1"))?;
    /// let tree = edit.freeze();
    /// let again = Tree::from_records(Ids::above(tree.ids().last()), tree.records())?;
    /// assert!(again.records().eq(tree.records()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn records(&self) -> impl Iterator<Item = NodeRecord> {
        let leaves = self.records.leaves();
        leaves.flat_map(|(number, leaf)| node_records(number, leaf, self.root))
    }

    /// All nodes from this id on, in the order of their ids. It skips what is before by sixteens.
    pub fn records_from(&self, first: NodeId) -> impl Iterator<Item = NodeRecord> {
        let leaves = self.records.leaves();
        let leaves = leaves.skip_while(move |(number, _)| *number < first.leaf());
        let records = leaves.flat_map(|(number, leaf)| node_records(number, leaf, self.root));
        records.skip_while(move |node| node.id < first)
    }

    /// The tree of these records, which are in the order of their ids. `ids` gives out none of their ids from then
    /// on. For a tree that was there before, pass a source [above](Ids::above) the [last](Ids::last) id of that
    /// tree, because the id of a deleted node may not return. An id that the source has not given out is below 2⁶¹, so
    /// that ids are left.
    ///
    /// # Errors
    /// [`RecordsError`], if they describe no tree.
    pub fn from_records(
        ids: Ids,
        records: impl IntoIterator<Item = NodeRecord>,
    ) -> Result<Self, RecordsError> {
        let end = FOREIGN_END.max(ids.last() + 1);
        Self::of_records(ids, end, records)
    }

    /// The same with ids below an end.
    fn of_records(
        ids: Ids,
        end: u64,
        records: impl IntoIterator<Item = NodeRecord>,
    ) -> Result<Self, RecordsError> {
        let (mut map, mut families) = (Radix::new(), Vec::new());
        let (mut root, mut last, mut len) = (None, 0, 0);
        for NodeRecord {
            id,
            parent,
            key,
            attributes,
        } in records
        {
            if id.get() <= last {
                return Err(RecordsError::OutOfOrder(id));
            }
            if id.get() >= end {
                return Err(RecordsError::IdTooLarge(id));
            }
            let (id, parent) = (id.plain(), parent.map(NodeId::plain));
            (last, len) = (id.get(), len + 1);
            let place = Place::new(parent.unwrap_or(id), &key);
            map.insert(id, Record::new(place, attributes));
            match parent {
                Some(parent) => families.push((parent, key, id)),
                None if root.replace(id).is_some() => return Err(RecordsError::TwoRoots(id)),
                None => {}
            }
        }
        let root = root.ok_or(RecordsError::NoRoot)?;
        families.sort_unstable_by(|(one, a, x), (other, b, y)| {
            one.cmp(other).then_with(|| a.rank(*x).cmp(&b.rank(*y)))
        });
        for family in families.chunk_by(|one, other| one.0 == other.0) {
            adopt(&mut map, family)?;
        }
        let tree = Self {
            records: map,
            root: root.marked(ids.mark()),
            len,
            ids,
        };
        tree.must_hang_together()?;
        if let Some(last) = NodeId::new(last) {
            tree.ids.pass(last);
        }
        Ok(tree)
    }

    fn must_hang_together(&self) -> Result<(), RecordsError> {
        let (mut below, mut reached) = (vec![self.root], 0);
        while let Some(id) = below.pop() {
            reached += 1;
            let links = self.records.links(id).expect("a listed child has a record");
            below.extend(links.children().iter());
        }
        match self.len - reached {
            0 => Ok(()),
            lost => Err(RecordsError::Circle(lost)),
        }
    }
}

impl Subtree {
    /// All nodes, in the order of their ids. The topmost one has no parent.
    pub fn records(&self) -> impl Iterator<Item = NodeRecord> {
        let leaves = self.0.leaves.iter();
        leaves.flat_map(|(number, leaf)| node_records(*number, leaf, self.0.root))
    }

    /// The subtree of these records, which are in the order of their ids, for a tree with this source of ids. The
    /// source gives out none of their ids from then on.
    ///
    /// # Errors
    /// [`RecordsError`], if they describe no tree.
    pub fn from_records(
        ids: &Ids,
        records: impl IntoIterator<Item = NodeRecord>,
    ) -> Result<Self, RecordsError> {
        Ok(Self::of(Tree::from_records(ids.clone(), records)?))
    }

    /// As above, for what an edit of this tree brought, read from a journal: its ids may be any that the tree's source
    /// had given out by then, even ones that this source does not know yet.
    ///
    /// # Errors
    /// [`RecordsError`], if they describe no tree.
    pub fn recovered(
        ids: &Ids,
        records: impl IntoIterator<Item = NodeRecord>,
    ) -> Result<Self, RecordsError> {
        let tree = Tree::of_records(ids.clone(), OWN_END, records)?;
        Ok(Self::of(tree))
    }

    fn of(tree: Tree) -> Self {
        let leaves = tree.records.leaves();
        Self(std::sync::Arc::new(Parts {
            root: tree.root.plain(),
            len: tree.len,
            leaves: leaves
                .map(|(number, leaf)| (number, Shared::new(leaf.clone())))
                .collect(),
            ids: tree.ids.clone(),
        }))
    }
}

/// The records of a leaf as data.
fn node_records(number: u64, leaf: &Leaf, root: NodeId) -> impl Iterator<Item = NodeRecord> {
    leaf.slots().filter_map(move |slot| {
        let id = NodeId::in_leaf(number, slot);
        let (links, attributes) = (leaf.links(slot)?, leaf.attributes(slot)?);
        let key = OrderKey::from_words(links.rank(id).words);
        Some(NodeRecord {
            id,
            parent: (id != root).then(|| links.parent()),
            key: key.expect("a key has an odd number of words"),
            attributes: attributes.clone(),
        })
    })
}

/// Gives a parent its children, which are in their order.
fn adopt(map: &mut Radix, family: &[(NodeId, OrderKey, NodeId)]) -> Result<(), RecordsError> {
    let (parent, _, node) = family[0];
    if map.links(parent).is_none() {
        return Err(RecordsError::NoParent { node, parent });
    }
    let Ok(count) = u32::try_from(family.len()) else {
        return Err(RecordsError::TooManyChildren(parent));
    };
    let mut pairs = family.windows(2);
    let children = if pairs.all(|pair| pair[0].2.plus(1) == pair[1].2) {
        Children::Run { count, first: node }
    } else {
        let ids: Vec<_> = family.iter().map(|(_, _, id)| *id).collect();
        Children::from_list(&ids)
    };
    map.change_links(parent, |_, none| *none = children);
    Ok(())
}
