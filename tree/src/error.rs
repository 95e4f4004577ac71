//! Why an edit was refused. A refused operation changes nothing.

use std::fmt;

use crate::id::NodeId;

/// Why an operation of an edit was refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The node was deleted, or was never in this tree.
    #[error("the node {0} is not in this version; it was deleted, or belongs to another tree")]
    Missing(NodeId),
    /// The id was given out by another tree. Its number may be that of a node here, which is not meant.
    #[error(
        "the id {0} was given out by another tree; look the node up in the tree that is edited"
    )]
    OtherTree(NodeId),
    /// The root has no siblings, and cannot be deleted or moved, only replaced.
    #[error("{0} is the root, which has no siblings; replace the root, or push a new one above it")]
    IsRoot(NodeId),
    /// A node cannot be moved under itself.
    #[error("the node {node} cannot move to {parent}, which is below it; move {parent} out first")]
    Cycle {
        /// The node to be moved.
        node: NodeId,
        /// Its new parent, which is the node itself or below it.
        parent: NodeId,
    },
    /// Only a root with one child can be taken away alone.
    #[error("the node {0} is not a root with exactly one child, so it cannot be popped")]
    NotAlone(NodeId),
    /// The sibling beside which a node was to go has moved to another parent since.
    #[error("the node {0} has moved to another parent since; choose the place to insert again")]
    SiblingMoved(NodeId),
    /// The node has no attribute of this name.
    #[error("the node {node} has no attribute `{name}` to delete")]
    NoAttribute {
        /// The node.
        node: NodeId,
        /// The name.
        name: String,
    },
    /// An operation from elsewhere names an attribute in bytes that are not UTF-8.
    #[error(
        "the operation on {0} names an attribute that is not UTF-8; it was not made by an edit"
    )]
    NameNotText(NodeId),
    /// A subtree or an operation brings an id that the tree already has.
    #[error("the node {0} is in this version already; a subtree can be spliced in only once")]
    AlreadyThere(NodeId),
    /// The source of the tree's ids was told that 2⁶² were given out.
    #[error("the tree has given out all its ids, so it can have no new nodes")]
    NoIdLeft,
    /// An operation from elsewhere brings an id of 2⁶¹ or more, or a record one of 2⁶² or more.
    #[error(
        "the operation brings the id {0}, which no source gave out; it was not made by an edit"
    )]
    IdTooLarge(NodeId),
    /// The name of an attribute is too long for the kind of value that is to be put there. Only a database of trees
    /// refuses that.
    #[error("the name has {len} bytes, and that of an erasable attribute has at most {max}")]
    NameTooLong {
        /// How many bytes it has.
        len: usize,
        /// How many it may have.
        max: usize,
    },
    /// The subtree was built with the ids of another tree.
    #[error("the subtree was built with the ids of another tree; build it with `tree.builder`")]
    ForeignSubtree,
}

/// The sentence: a program prints with Debug what its `main` returns.
impl fmt::Debug for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
