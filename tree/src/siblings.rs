//! The children of one node as an iterator; every walk is built from such iterators.

use std::ops::Range;

use crate::branch::{Branch, Content, WIDTH};
use crate::children::Listing;
use crate::id::NodeId;
use crate::leaf::{Leaf, SLOTS};
use crate::node::Node;
use crate::prefetch::Prefetch;
use crate::rope::RopeIter;
use crate::shape::Family;
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
    Few(std::slice::Iter<'t, NodeId>),
    List(RopeIter<'t>),
}

/// Siblings without children, in one or two leaves of the map.
pub(crate) struct Leaves<'t> {
    /// The node before the first sibling, and how many siblings are in its leaf.
    before: Node<'t>,
    here: u64,
    /// The first sibling in the next leaf, and how many are there.
    next: Node<'t>,
    there: u64,
}

impl<'t> Leaves<'t> {
    #[inline(always)]
    pub(crate) fn fold<B>(self, all: B, visit: impl FnMut(B, Node<'t>) -> B) -> B {
        let here = (1..=self.here).map(|at| self.before.beside(at));
        let there = (0..self.there).map(|at| self.next.beside(at));
        here.chain(there).fold(all, visit)
    }
}

/// Finds records, and keeps the leaf of the last one: the next node of a document is mostly in the same leaf
/// of the map.
#[derive(Clone)]
pub(crate) struct Finger<'t> {
    tree: &'t Tree,
    /// The leaves of the lowest branch visited last and the number of the first of them; the number and the
    /// leaf of the last record.
    family: &'t [Branch],
    first: u64,
    number: u64,
    leaf: Option<&'t Leaf>,
    prefetch: Prefetch,
}

impl<'t> Node<'t> {
    /// Its children in order.
    #[inline]
    pub fn children(self) -> Siblings<'t> {
        Siblings::new(self, 0..usize::MAX)
    }

    /// Its children at these positions, as far as they exist. The cost is logarithmic in the number of
    /// children.
    pub fn children_in(self, positions: Range<usize>) -> Siblings<'t> {
        Siblings::new(self, positions)
    }
}

impl<'t> Siblings<'t> {
    fn new(node: Node<'t>, positions: Range<usize>) -> Self {
        Self {
            finger: Finger::new(node.tree),
            ids: SiblingIds::of(node, positions),
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
            SiblingIds::Few(ids) => ids.len(),
            SiblingIds::List(ids) => ids.left(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Siblings<'_> {}

impl<'t> SiblingIds<'t> {
    /// The ids of all children of a node.
    #[inline]
    pub(crate) fn all(node: Node<'t>) -> Self {
        match node.leaf.shape.get(node.id.slot()) {
            Family::None => Self::Run(0..0),
            Family::Following(count) => {
                let first = node.id.get() + 1;
                Self::Run(first..first + u64::from(count))
            }
            Family::Listed => Self::of(node, 0..usize::MAX),
        }
    }

    /// The ids at these positions, as far as they exist.
    #[inline]
    fn of(node: Node<'t>, positions: Range<usize>) -> Self {
        match node.links().children() {
            Listing::None => Self::Run(0..0),
            Listing::Run { count, first } => {
                let count = u64::from(count);
                let from = count.min(positions.start as u64);
                let to = count.min(positions.end as u64).max(from);
                Self::Run(first.get() + from..first.get() + to)
            }
            Listing::Few(ids) => {
                let to = positions.end.min(ids.len());
                Self::Few(ids[positions.start.min(to)..to].iter())
            }
            Listing::List(list) => Self::List(list.iter(positions)),
        }
    }
}

impl Iterator for SiblingIds<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        match self {
            Self::Run(ids) => ids.next().map(NodeId::at),
            Self::Few(ids) => ids.next().copied(),
            Self::List(ids) => ids.next(),
        }
    }
}

impl<'t> Finger<'t> {
    #[inline]
    pub(crate) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            family: &[],
            first: 0,
            number: 0,
            leaf: None,
            prefetch: Prefetch::default(),
        }
    }

    /// The node with an id from a child list.
    #[inline]
    pub(crate) fn node(&mut self, id: NodeId) -> Node<'t> {
        Node {
            tree: self.tree,
            id,
            leaf: self.leaf_of(id),
        }
    }

    /// The start of a run that is not empty, as far as it is in one leaf: how many nodes come before the first
    /// parent, the first node, and whether that parent is in the leaf too.
    #[inline]
    pub(crate) fn nodes(&mut self, run: &Range<u64>) -> (u64, Node<'t>, bool) {
        let first = self.node(NodeId::at(run.start));
        let slot = first.id.slot();
        let length = (run.end - run.start).min((SLOTS - slot) as u64);
        let leaves = first.leaf.shape.before_parent(slot);
        (leaves.min(length), first, leaves < length)
    }

    /// The children of a node, if they come right after it and have no children themselves. There may be none.
    #[inline(always)]
    pub(crate) fn leaf_children(&mut self, node: Node<'t>) -> Option<Leaves<'t>> {
        let slot = node.id.slot();
        let count = match node.leaf.shape.get(slot) {
            Family::None => 0,
            Family::Following(count) => u64::from(count),
            Family::Listed => return None,
        };
        let room = (SLOTS - 1 - slot) as u64;
        let here = count.min(room);
        let next = node.id.plus(here + 1);
        let mut other = node.leaf;
        if count > here {
            other = self.leaf_of(next);
            if other.shape.before_parent(0) < count - here {
                return None;
            }
        }
        (node.leaf.shape.after(slot).before_parent(0) >= here).then_some(Leaves {
            before: node,
            here,
            next: Node {
                id: next,
                leaf: other,
                ..node
            },
            there: count - here,
        })
    }

    #[inline]
    fn leaf_of(&mut self, id: NodeId) -> &'t Leaf {
        match self.leaf {
            Some(leaf) if id.leaf() == self.number => leaf,
            _ => self.move_to(id),
        }
    }

    #[inline]
    fn move_to(&mut self, id: NodeId) -> &'t Leaf {
        let number = id.leaf();
        let at = number.wrapping_sub(self.first);
        let beside = usize::try_from(at).ok().and_then(|at| self.family.get(at));
        let leaf = match beside.map(Branch::content) {
            Some(Content::Leaf(leaf)) => leaf,
            // The leaf is elsewhere, or it is beside the tree, and its place among these is empty.
            _ => self.enter(id),
        };
        self.number = number;
        self.leaf = Some(leaf);
        leaf
    }

    /// Descends from the top of the map.
    #[cold]
    fn enter(&mut self, id: NodeId) -> &'t Leaf {
        let (first, family) = self.tree.records.beside(id);
        if first == self.first + WIDTH as u64 {
            self.prefetch.fetch(self.tree, id);
        }
        (self.first, self.family) = (first, family);
        let at = usize::try_from(id.leaf() - first).expect("less than eight");
        match self.family[at].content() {
            Content::Leaf(leaf) => leaf,
            _ => unreachable!("a listed child has a record"),
        }
    }
}
