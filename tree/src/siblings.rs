//! The children of one node as an iterator; every walk is made of these.

use std::ops::Range;

use crate::children::Children;
use crate::id::NodeId;
use crate::node::Node;
use crate::radix::{LEAF, Leaf, slot_of};
use crate::record::Record;
use crate::rope;
use crate::tree::Tree;

/// Nodes with one parent, in order.
#[derive(Clone)]
pub struct Siblings<'t> {
    finger: Finger<'t>,
    ids: SiblingIds<'t>,
}

/// The ids of nodes with one parent, in order.
#[derive(Clone)]
pub(crate) enum SiblingIds<'t> {
    Run(Range<u64>),
    List(rope::Iter<'t>),
}

/// Finds records, and keeps the leaf in which the last one lay: what follows in a document mostly lies
/// in the same leaf of the map.
#[derive(Clone)]
pub(crate) struct Finger<'t> {
    tree: &'t Tree,
    /// The id of the first slot of the leaf.
    first: u64,
    leaf: Option<&'t Leaf<Record>>,
}

impl<'t> Siblings<'t> {
    pub(crate) fn new(node: Node<'t>, positions: Range<usize>) -> Self {
        Self {
            finger: Finger::new(node.tree),
            ids: SiblingIds::new(&node.record.children, positions),
        }
    }
}

impl<'t> Iterator for Siblings<'t> {
    type Item = Node<'t>;

    #[inline]
    fn next(&mut self) -> Option<Node<'t>> {
        self.ids.next().map(|id| self.finger.node(id))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.ids {
            SiblingIds::Run(ids) => usize::try_from(ids.end - ids.start).unwrap_or(usize::MAX),
            SiblingIds::List(ids) => ids.left(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Siblings<'_> {}

impl<'t> SiblingIds<'t> {
    /// The ids at these positions, as many of them as there are.
    #[inline]
    pub(crate) fn new(children: &'t Children, positions: Range<usize>) -> Self {
        match children {
            Children::None => Self::Run(0..0),
            Children::Run { count, first } => {
                let count = u64::from(*count);
                let from = count.min(positions.start as u64);
                let to = count.min(positions.end as u64).max(from);
                Self::Run(first.get() + from..first.get() + to)
            }
            Children::List(list) => Self::List(list.iter(positions)),
        }
    }
}

impl Iterator for SiblingIds<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        match self {
            Self::Run(ids) => ids.next().map(NodeId::at),
            Self::List(ids) => ids.next(),
        }
    }
}

impl<'t> Finger<'t> {
    #[inline]
    pub(crate) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            first: 0,
            leaf: None,
        }
    }

    /// The node with an id that some child list names.
    #[inline]
    pub(crate) fn node(&mut self, id: NodeId) -> Node<'t> {
        let record = self.leaf_of(id)[slot_of(id)].as_ref();
        Node {
            tree: self.tree,
            id,
            record: record.expect("a listed child has a record"),
        }
    }

    /// The first nodes of a run that is not empty: those that lie in one leaf.
    #[inline]
    pub(crate) fn nodes(&mut self, run: Range<u64>) -> impl Iterator<Item = Node<'t>> {
        let first = NodeId::at(run.start);
        let tree = self.tree;
        let slots = self.leaf_of(first)[slot_of(first)..].iter();
        run.zip(slots).map(move |(id, slot)| Node {
            tree,
            id: NodeId::at(id),
            record: slot.as_ref().expect("a listed child has a record"),
        })
    }

    #[inline]
    fn leaf_of(&mut self, id: NodeId) -> &'t Leaf<Record> {
        match self.leaf {
            Some(leaf) if id.get().wrapping_sub(self.first) < LEAF => leaf,
            _ => self.move_to(id),
        }
    }

    fn move_to(&mut self, id: NodeId) -> &'t Leaf<Record> {
        let leaf = self.tree.records.leaf(id);
        let leaf = leaf.expect("a listed child has a record");
        self.first = id.get() / LEAF * LEAF;
        self.leaf = Some(leaf);
        leaf
    }
}
