//! The operations of an edit as data: each change, in terms of ids and order keys.
//!
//! - An operation holds everything it adds, so it can be applied to any version without the code that made
//!   it: by a combiner that merges edits, from a journal, or on another machine.
//! - Its ids come from the tree's source and its keys are unique, so operations of different edits name the
//!   same node only if they mean the same node.
//! - An operation needs the nodes that it names: it is refused when one of them is gone.

use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::id::NodeId;
use crate::key::OrderKey;
use crate::subtree::Subtree;

/// Where a node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Before all children of a parent.
    First(NodeId),
    /// After all children of a parent.
    Last(NodeId),
    /// Before a sibling.
    Before(NodeId),
    /// After a sibling.
    After(NodeId),
    /// Among the children of a parent, where the order key of an operation says. Without a key, it is after all.
    AtKey(NodeId),
}

/// The place that an edit chose for a node.
///
/// In another version the key is kept if it is still where `at` says; otherwise a new key is made. So inserts
/// between siblings commute, and appended nodes are in the order of commits. When an operation was carried out,
/// `parent` and `key` are its outcome, and [`Edit::replay`](crate::Edit::replay) needs nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The requested place.
    pub at: Where,
    /// The parent that `at` meant in the edit's own version.
    pub parent: NodeId,
    /// The order key under it.
    pub key: OrderKey,
}

impl Operation {
    /// Notes the key under which the node was placed.
    pub(crate) fn place_at(&mut self, used: Option<OrderKey>) {
        if let (
            Some(key),
            Self::Add { target, .. } | Self::Splice { target, .. } | Self::Move { target, .. },
        ) = (used, self)
        {
            target.key = key;
        }
    }

    /// The greatest id of a node that it brings, if it brings any.
    pub fn last_id(&self) -> Option<NodeId> {
        match self {
            Self::Add { node, .. }
            | Self::ReplaceRoot { node, .. }
            | Self::PushRoot { node, .. } => Some(*node),
            Self::Splice { subtree, .. } => subtree.last_id(),
            Self::Move { .. }
            | Self::Delete { .. }
            | Self::PutAttribute { .. }
            | Self::DeleteAttribute { .. }
            | Self::PopRoot { .. } => None,
        }
    }

    /// How many bytes of long values it brings. It costs a look at the values that are not stored in place, and at each
    /// node of a subtree.
    pub fn long_bytes(&self) -> usize {
        match self {
            Self::Add { attributes, .. }
            | Self::ReplaceRoot { attributes, .. }
            | Self::PushRoot { attributes, .. } => attributes.long_bytes(),
            Self::PutAttribute { value, .. } => value.heap(),
            Self::Splice { subtree, .. } => subtree.long_bytes(),
            Self::Move { .. }
            | Self::Delete { .. }
            | Self::DeleteAttribute { .. }
            | Self::PopRoot { .. } => 0,
        }
    }

    /// Whether it takes a whole subtree away.
    pub(crate) fn takes_subtree(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::ReplaceRoot { .. })
    }
}

/// One step of an edit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// A new node.
    Add {
        /// Its id.
        node: NodeId,
        /// Its place.
        target: Target,
        /// Its attributes.
        attributes: Attributes,
    },
    /// A subtree that was built separately.
    Splice {
        /// The subtree; a clone shares it.
        subtree: Subtree,
        /// The place of its topmost node.
        target: Target,
    },
    /// A node moves to another place, with everything below it.
    Move {
        /// The node.
        node: NodeId,
        /// Its new place.
        target: Target,
    },
    /// A node is deleted, with everything below it.
    Delete {
        /// The node.
        node: NodeId,
    },
    /// An attribute is set to a value.
    PutAttribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, which is UTF-8.
        name: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// An attribute is deleted.
    DeleteAttribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, which is UTF-8.
        name: Bytes,
    },
    /// All nodes are deleted, and there is a new root.
    ReplaceRoot {
        /// The new root.
        node: NodeId,
        /// Its attributes.
        attributes: Attributes,
    },
    /// A new root is put above the present one, which becomes its only child.
    PushRoot {
        /// The new root.
        node: NodeId,
        /// Its attributes.
        attributes: Attributes,
    },
    /// The root is taken away, and its only child becomes the root.
    PopRoot {
        /// The root.
        node: NodeId,
    },
}
