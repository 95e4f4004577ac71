//! The node that an edit appended last, and siblings before it that their parent does not list yet. See `edit`.

use crate::id::NodeId;
use crate::insert_position::InsertPosition;
use crate::key::OrderKey;
use crate::tree::Tree;

/// A node that the last operation added after all its siblings, so that the next one finds its place quickly.
pub(crate) struct Newest {
    node: NodeId,
    to: InsertPosition,
    /// How many nodes with consecutive ids, this one the last, are in the map and not among their parent's children.
    unlisted: u32,
}

impl Newest {
    /// A node that was put at `to`, and that its parent does not list.
    #[inline]
    pub(crate) fn new(node: NodeId, to: InsertPosition) -> Self {
        let unlisted = 1;
        Self { node, to, unlisted }
    }

    #[inline]
    pub(crate) fn parent(&self) -> NodeId {
        self.to.parent
    }

    #[inline]
    pub(crate) fn place(&self) -> &InsertPosition {
        &self.to
    }

    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        self.unlisted == 0
    }

    /// Goes on to a node that is put after this one, and that the parent does not list either. Returns its place.
    #[inline]
    pub(crate) fn advance(&mut self, node: NodeId, tree: &mut Tree) -> &InsertPosition {
        if self.node.plus(1) != node || self.unlisted == u32::MAX {
            self.list_now(tree);
        }
        self.to.key = OrderKey::between(Some(self.to.key.rank(self.node)), None);
        self.to.position += 1;
        self.node = node;
        self.unlisted += 1;
        &self.to
    }

    /// Has the parent list all nodes in this version, which has them in its map.
    #[inline]
    pub(crate) fn list(&self, tree: &mut Tree) {
        if let Some(before) = self.unlisted.checked_sub(1) {
            let at = self.to.position - before as usize;
            let first = NodeId::at(self.node.get() - u64::from(before));
            tree.records
                .adopt(self.to.parent, at, (first, self.unlisted));
        }
    }

    #[inline]
    pub(crate) fn list_now(&mut self, tree: &mut Tree) {
        self.list(tree);
        self.unlisted = 0;
    }
}
