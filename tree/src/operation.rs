//! The operations of an edit, as data: what was done, in terms of ids and order keys.
//!
//! - An operation holds all that it brings, so whoever has a version can apply it without the code
//!   that made it: a combiner that merges edits, a journal that is read again, another machine.
//! - Its ids came from the tree's source and its keys are unique, so operations of different edits
//!   name the same node only if they mean the same node.
//! - Ids of nodes say what an operation needs: it is refused when one of them is gone.

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
    /// Behind all children of a parent.
    Last(NodeId),
    /// Before a sibling.
    Before(NodeId),
    /// Behind a sibling.
    After(NodeId),
}

/// A place that was found for a node.
///
/// Applied to another version, the key holds if it still is where `at` says; otherwise it is made
/// anew. So inserts between siblings commute, and what is appended stands in the order of commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What was asked for.
    pub at: Where,
    /// The parent that this meant.
    pub parent: NodeId,
    /// The order key under it.
    pub key: OrderKey,
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
    /// A subtree that was built apart.
    Splice {
        /// The subtree; a clone shares it.
        subtree: Subtree,
        /// The place of its topmost node.
        target: Target,
    },
    /// A node comes to another place, with all below it.
    Move {
        /// The node.
        node: NodeId,
        /// Its new place.
        target: Target,
    },
    /// A node goes, with all below it.
    Delete {
        /// The node.
        node: NodeId,
    },
    /// An attribute gets a value.
    PutAttribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, which is UTF-8.
        name: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// An attribute goes.
    DeleteAttribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, which is UTF-8.
        name: Bytes,
    },
    /// All nodes go, and a new root comes.
    ReplaceRoot {
        /// The new root.
        node: NodeId,
        /// Its attributes.
        attributes: Attributes,
    },
    /// A new root comes above the present one, which is its only child.
    PushRoot {
        /// The new root.
        node: NodeId,
        /// Its attributes.
        attributes: Attributes,
    },
}
