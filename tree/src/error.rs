//! Why an edit was refused. A refused operation changes nothing.

use crate::id::NodeId;

/// Why an operation of an edit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The node was deleted, or never was in this tree.
    #[error("the node {0} is not in this version; it was deleted, or belongs to another tree")]
    Missing(NodeId),
    /// The root has no siblings, and is replaced rather than deleted or moved.
    #[error("{0} is the root, which has no siblings; replace the root, or push a new one above it")]
    IsRoot(NodeId),
    /// A node cannot come under itself.
    #[error(
        "the node {node} cannot move to {parent}, which lies under it; move {parent} out first"
    )]
    Cycle {
        /// The node that was to move.
        node: NodeId,
        /// Where it was to go.
        parent: NodeId,
    },
    /// The node that another one was to stand beside has moved to another parent meanwhile.
    #[error("the node {0} has moved to another parent meanwhile; say anew where to insert")]
    SiblingMoved(NodeId),
    /// The node has no attribute of this name.
    #[error("the node {node} has no attribute `{name}` that could be deleted")]
    NoAttribute {
        /// The node.
        node: NodeId,
        /// The name.
        name: String,
    },
    /// An operation that came from elsewhere names an attribute in bytes that are no UTF-8.
    #[error(
        "the operation on {0} names an attribute that is not UTF-8; it was not made by an edit"
    )]
    NameNotText(NodeId),
    /// A subtree or an operation brings an id that the tree has already.
    #[error("the node {0} is in this version already; a subtree can be spliced in once only")]
    AlreadyThere(NodeId),
    /// An operation that came from elsewhere brings an id of 2⁶² or more.
    #[error(
        "the operation brings the id {0}, which no source gave out; it was not made by an edit"
    )]
    IdTooLarge(NodeId),
    /// The subtree was built with the ids of another tree.
    #[error("the subtree was built with ids of another tree; build it with `tree.builder`")]
    ForeignSubtree,
}
