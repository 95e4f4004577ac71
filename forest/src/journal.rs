//! The journal: what takes each commit before it becomes visible.
//!
//! A forest has one journal, and one record carries one commit over any number of trees, so trees change
//! together without help from the medium. The order of a commit is: check, append, publish. Applying the
//! changes of all records in their order to an empty forest restores the same trees.

use std::time::SystemTime;

use weald_tree::{NodeId, Operation, Tree};

use crate::content::erasable::Blob;
use crate::version::{CommitId, Version};

/// Takes the commits of a forest, one after the other. Only one thread at a time calls it.
pub trait Journal: Send + 'static {
    /// Takes one commit, or refuses it; a refused commit is not made.
    ///
    /// It is called while other writers wait, so it must not wait for a medium.
    ///
    /// # Errors
    /// A sentence for the author of the commit.
    fn append(&mut self, record: &Record<'_>) -> Result<(), String>;
}

/// One commit.
#[derive(Debug)]
pub struct Record<'a> {
    /// The version that it creates.
    pub version: Version,
    /// Its id.
    pub id: CommitId,
    /// Its time.
    pub time: SystemTime,
    /// The bytes that its author attached to it.
    pub bytes: &'a [u8],
    /// What it changes. Trees are identified by numbers, which stay when they are renamed.
    pub changes: &'a [Change<'a>],
}

/// What a commit does to one tree.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The tree is created.
    Create {
        /// Its number.
        tree: u64,
        /// Its name.
        name: &'a str,
        /// Its nodes.
        content: &'a Tree,
    },
    /// Operations on the previous version, in order.
    Edit {
        /// The number of the tree.
        tree: u64,
        /// The operations.
        operations: &'a [Operation],
        /// Erasable bytes to which the operations refer; they are kept separately, so that they can be erased.
        blobs: &'a [Blob],
    },
    /// The tree gets the nodes of an older version.
    Restore {
        /// The number of the tree.
        tree: u64,
        /// The older version.
        version: Version,
    },
    /// The tree is renamed.
    Rename {
        /// The number of the tree.
        tree: u64,
        /// The new name.
        name: &'a str,
    },
    /// The tree is deleted.
    Delete {
        /// The number of the tree.
        tree: u64,
    },
    /// An attribute has an index from this version on.
    AddIndex {
        /// The number of the tree.
        tree: u64,
        /// The name of the attribute.
        attribute: &'a str,
    },
    /// An attribute has no index from this version on.
    DropIndex {
        /// The number of the tree.
        tree: u64,
        /// The name of the attribute.
        attribute: &'a str,
    },
    /// All erasable bytes that were stored for an attribute of a node are erased from every version.
    Erase {
        /// The number of the tree.
        tree: u64,
        /// The node.
        node: NodeId,
        /// The name of the attribute.
        name: &'a str,
    },
    /// A version is given a tag.
    Tag {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: &'a str,
        /// The version of the forest; the tree is as it was then.
        version: Version,
    },
    /// A tag is removed.
    Untag {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: &'a str,
    },
}
