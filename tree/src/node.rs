//! A node as readers see it: one record of one version, borrowed.

use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::children::Listing;
use crate::id::NodeId;
use crate::key::Rank;
use crate::leaf::Leaf;
use crate::record::Links;
use crate::tree::Tree;

/// A node of one version. Copying it costs nothing; it lives as long as the version is borrowed.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    pub(crate) tree: &'t Tree,
    /// Without a mark.
    pub(crate) id: NodeId,
    /// The leaf of the map that holds its record, so that a walk need not look at the record itself.
    pub(crate) leaf: &'t Leaf,
}

impl Tree {
    /// The topmost node.
    pub fn root(&self) -> Node<'_> {
        self.node(self.root).expect("every version has its root")
    }

    /// The node with this id, if this version has it.
    #[inline]
    pub fn node(&self, id: NodeId) -> Option<Node<'_>> {
        let leaf = self.records.leaf(id)?;
        leaf.has(id.slot()).then_some(Node {
            tree: self,
            id: id.plain(),
            leaf,
        })
    }
}

impl<'t> Node<'t> {
    /// Its address, which is the same in every version.
    pub fn id(self) -> NodeId {
        self.id.marked(self.tree.root.mark())
    }

    /// The version it belongs to.
    pub fn tree(self) -> &'t Tree {
        self.tree
    }

    /// All its attributes.
    pub fn attributes(self) -> &'t Attributes {
        let attributes = self.leaf.attributes(self.id.slot());
        attributes.expect("a node has a record")
    }

    /// The bytes of one attribute.
    #[inline]
    pub fn get(self, name: &str) -> Option<&'t [u8]> {
        self.attributes().get(name)
    }

    /// The bytes of one attribute, to keep: long ones are shared with the version and not copied.
    pub fn get_bytes(self, name: &str) -> Option<Bytes> {
        self.attributes().get_bytes(name)
    }

    /// One attribute as text; `None` if it is missing or not UTF-8.
    pub fn get_str(self, name: &str) -> Option<&'t str> {
        str::from_utf8(self.get(name)?).ok()
    }

    /// The node above it; the root has none.
    pub fn parent(self) -> Option<Node<'t>> {
        if self.id == self.tree.root {
            return None;
        }
        self.tree.node(self.links().parent())
    }

    /// The nodes above it, from the parent to the root.
    pub fn ancestors(self) -> impl Iterator<Item = Node<'t>> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    /// Whether `self` is `other` or is above it.
    pub fn is_above(self, other: Node<'_>) -> bool {
        self.id == other.id || other.ancestors().any(|node| node.id == self.id)
    }

    /// How many children it has.
    pub fn child_count(self) -> usize {
        self.links().children().len()
    }

    /// Its child at a position.
    pub fn child(self, position: usize) -> Option<Node<'t>> {
        self.tree.node(self.links().children().get(position)?)
    }

    /// Its position among its siblings; that of the root is 0.
    pub fn position(self) -> usize {
        self.parent()
            .map_or(0, |parent| parent.position_of(self.id))
    }

    #[inline]
    pub(crate) fn links(self) -> &'t Links {
        let links = self.leaf.links(self.id.slot());
        links.expect("a node has a record")
    }

    /// Whether a version of this node has another place.
    pub(crate) fn is_moved_to(self, new: Node<'_>) -> bool {
        !self.links().has_place_of(new.links())
    }

    /// Whether a version of this node has other attributes or another place.
    pub(crate) fn is_changed_to(self, new: Node<'_>) -> bool {
        self.is_moved_to(new) || self.attributes() != new.attributes()
    }

    /// The node `slots` slots after it in its leaf, which must exist.
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
        self.leaf.shape.is_parent(self.id.slot())
    }

    /// The position of a child that it has.
    pub(crate) fn position_of(self, child: NodeId) -> usize {
        let found = match self.links().children() {
            Listing::Run { first, .. } => usize::try_from(child.get() - first.get()).ok(),
            Listing::Few(ids) => ids.iter().position(|id| *id == child),
            _ => Some(self.position_for(self.tree.rank(child))),
        };
        found.expect("a node is among the children of its parent")
    }

    /// How many children are before this rank.
    pub(crate) fn position_for(self, rank: Rank<'_>) -> usize {
        let children = self.links().children();
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
        self.id == other.id && self.leaf.is(other.leaf)
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.id, self.attributes())
    }
}
