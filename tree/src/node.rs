//! A node as a reader sees it: one record of one version, borrowed.

use std::ops::Range;

use crate::attributes::Attributes;
use crate::children::Children;
use crate::id::NodeId;
use crate::key::Rank;
use crate::path::Path;
use crate::radix::{Leaf, slot_of};
use crate::record::Record;
use crate::siblings::Siblings;
use crate::tree::Tree;
use crate::walk::{BreadthFirst, Postorder, Preorder};

/// A node of one version. Copying it costs nothing; it lives as long as the version is borrowed.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) id: NodeId,
    /// The leaf of the map in which its record lies: a walk need not look at the record itself.
    pub(crate) leaf: &'t Leaf<Record>,
}

impl<'t> Node<'t> {
    /// Its address, which is the same in every version.
    pub fn id(self) -> NodeId {
        self.id
    }

    /// The version in which it is seen.
    pub fn tree(self) -> &'t Tree {
        self.tree
    }

    /// All its attributes.
    pub fn attributes(self) -> &'t Attributes {
        &self.record().attributes
    }

    /// The bytes of one attribute.
    #[inline]
    pub fn get(self, name: &str) -> Option<&'t [u8]> {
        self.record().attributes.get(name)
    }

    /// One attribute as text; nothing if it is missing or no UTF-8.
    pub fn get_str(self, name: &str) -> Option<&'t str> {
        str::from_utf8(self.get(name)?).ok()
    }

    /// The node above; the root has none.
    pub fn parent(self) -> Option<Node<'t>> {
        if self.id == self.tree.root {
            return None;
        }
        self.tree.node(self.record().place.parent())
    }

    /// The nodes above, from the parent to the root.
    pub fn ancestors(self) -> impl Iterator<Item = Node<'t>> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    /// Whether `self` is `other` or lies above it.
    pub fn is_above(self, other: Node<'_>) -> bool {
        self.id == other.id || other.ancestors().any(|node| node.id == self.id)
    }

    /// How many children it has.
    pub fn child_count(self) -> usize {
        self.record().children.len()
    }

    /// Its children in order.
    #[inline]
    pub fn children(self) -> Siblings<'t> {
        Siblings::new(self, 0..usize::MAX)
    }

    /// Its children at these positions, as many of them as there are. It costs the logarithm of the
    /// children before them.
    pub fn children_in(self, positions: Range<usize>) -> Siblings<'t> {
        Siblings::new(self, positions)
    }

    /// Its child at a position.
    pub fn child(self, position: usize) -> Option<Node<'t>> {
        self.tree.node(self.record().children.get(position)?)
    }

    /// Its position among its siblings; that of the root is 0.
    pub fn position(self) -> usize {
        self.parent()
            .map_or(0, |parent| parent.position_of(self.id))
    }

    /// Its positional path, which holds in this version only.
    pub fn path(self) -> Path {
        let above = std::iter::once(self).chain(self.ancestors());
        let mut positions: Vec<usize> = above.map(Node::position).collect();
        positions.pop();
        positions.reverse();
        Path::new(positions)
    }

    /// This node and all below it, parents before children.
    pub fn preorder(self) -> Preorder<'t> {
        Preorder::new(self)
    }

    /// This node and all below it, children before parents.
    pub fn postorder(self) -> Postorder<'t> {
        Postorder::new(self)
    }

    /// This node and all below it, level by level.
    pub fn breadth_first(self) -> BreadthFirst<'t> {
        BreadthFirst::new(self)
    }

    /// The nodes for which `is_sought` holds, this one and below, found as the iterator is asked.
    ///
    /// ```
    /// use weald_tree::{Attributes, Tree};
    ///
    /// let mut edit = Tree::new().edit();
    /// let root = edit.tree().root().id();
    /// for role in ["author", "reader", "author"] {
    ///     edit.append(root, Attributes::new().with("role", role))?;
    /// }
    /// let tree = edit.freeze();
    /// let authors = tree.root().find(|node| node.get_str("role") == Some("author"));
    /// assert_eq!(authors.count(), 2);
    /// # Ok::<(), weald_tree::EditError>(())
    /// ```
    pub fn find<F>(self, is_sought: F) -> impl Iterator<Item = Node<'t>>
    where
        F: FnMut(&Node<'t>) -> bool,
    {
        self.preorder().filter(is_sought)
    }

    #[inline]
    pub(crate) fn record(self) -> &'t Record {
        let slot = &self.leaf.slots[slot_of(self.id)];
        slot.as_ref().expect("a node has a record")
    }

    /// The node so many slots behind it in its leaf, where one is.
    #[inline]
    pub(crate) fn beside(self, slots: u64) -> Self {
        Self {
            id: self.id.plus(slots),
            ..self
        }
    }

    /// Whether it has children.
    #[inline]
    pub(crate) fn is_parent(self) -> bool {
        self.leaf.shape.is_parent(slot_of(self.id))
    }

    /// The position of a child that it has.
    pub(crate) fn position_of(self, child: NodeId) -> usize {
        let found = match &self.record().children {
            Children::Run { first, .. } => usize::try_from(child.get() - first.get()).ok(),
            Children::Few(ids) => ids.slice.iter().position(|id| *id == child),
            _ => Some(self.position_for(self.tree.rank(child))),
        };
        found.expect("a node is among the children of its parent")
    }

    /// How many children stand before this rank.
    pub(crate) fn position_for(self, rank: Rank<'_>) -> usize {
        let children = &self.record().children;
        let is_before = |at: usize| {
            let id = children.get(at).expect("the position is within the list");
            self.tree.rank(id) < rank
        };
        let (mut from, mut to) = (0, children.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if is_before(middle) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

impl PartialEq for Node<'_> {
    /// Whether both are the same node of the same version in memory.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && triomphe::Arc::ptr_eq(&self.leaf.slots, &other.leaf.slots)
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.id, self.record().attributes)
    }
}
