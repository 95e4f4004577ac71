//! What an edit reads and relies on: each read goes on a list, which a merge checks against a newer version.

use crate::bytes::Bytes;
use crate::edit::Edit;
use crate::error::EditError;
use crate::id::NodeId;
use crate::node::Node;
use crate::script::Read;

impl Edit {
    /// Reads one attribute. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Attribute {
            node,
            name: Bytes::from(name),
        });
        Ok(found.get(name))
    }

    /// Reads which children a node has, in order. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn children(&self, node: NodeId) -> Result<impl Iterator<Item = NodeId>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Children(node));
        Ok(found.children().map(Node::id))
    }

    /// Reads a node and everything below it, as `find` does. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Subtree(node));
        Ok(found)
    }

    fn record(&self, read: impl FnOnce() -> Read) {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().push(read());
        }
    }
}
