//! One version of a tree, which never changes.
//!
//! A version is a map from ids to records (see `radix`) and the id of its root. A record names its parent and
//! its children by id, so an edit copies the map's paths to a few records and never the path to the root of
//! the document: its cost does not depend on the depth of a node.

use crate::attributes::Attributes;
use crate::id::{Ids, Mark, NodeId};
use crate::key::Rank;
use crate::radix::Radix;
use crate::record::{Place, Record};

/// An immutable tree. A clone costs two counters and shares everything; any thread may hold one.
///
/// ```
/// use weald::tree::{Attributes, Tree};
///
/// let empty = Tree::new();
/// let mut edit = empty.edit();
/// let root = edit.tree().root().id();
/// let hello = edit.append(root, Attributes::new().with("text", "hello"))?;
/// let tree = edit.freeze();
///
/// assert_eq!(tree.node(hello).unwrap().get("text"), Some(&b"hello"[..]));
/// assert_eq!((empty.len(), tree.len()), (1, 2));
/// # Ok::<(), weald::tree::EditError>(())
/// ```
#[derive(Clone)]
pub struct Tree {
    pub(crate) records: Radix,
    /// With the mark of the ids that this version gives out.
    pub(crate) root: NodeId,
    /// How many nodes there are, the root included.
    pub(crate) len: u64,
    pub(crate) ids: Ids,
}

impl Tree {
    /// A tree of one node without attributes.
    pub fn new() -> Self {
        Self::with_root(Attributes::new())
    }

    /// A tree of one node.
    pub fn with_root(attributes: Attributes) -> Self {
        let ids = Ids::new();
        let root = ids.take();
        let mut records = Radix::new();
        records.insert(root, Record::new(Place::of_root(root), attributes));
        Self {
            records,
            root: root.marked(ids.mark()),
            len: 1,
            ids,
        }
    }

    /// How many nodes there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a tree has a root")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The id source that all versions of this tree share.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Whether both are versions of the same tree, so that edits of one can be applied to the other.
    pub fn shares_ids_with(&self, other: &Self) -> bool {
        self.ids.is(&other.ids)
    }

    /// The same version, for a tree that was read from where it has this number. Its ids, and those of the versions
    /// that are made from it, are then known to be of the tree with this number, wherever that is read.
    #[must_use]
    pub fn numbered(mut self, number: u64) -> Self {
        self.root = self.root.marked(Mark::of_tree(number));
        self
    }

    /// Whether this id is known to be another tree's. An id that was made of a number is not, and an id of a tree that
    /// was read from a journal is known only to others that were, too.
    #[inline]
    pub fn is_foreign(&self, node: NodeId) -> bool {
        node.is_of_another_tree(self.root)
    }

    /// Whether a node is in only one of the versions, or has different attributes or a different place in
    /// them. It costs two look-ups.
    pub fn differs_at(&self, other: &Self, node: NodeId) -> bool {
        match (self.node(node), other.node(node)) {
            (None, None) => false,
            (Some(one), Some(two)) => one.is_changed_to(two),
            _ => true,
        }
    }

    /// The rank of a node, which must exist.
    #[inline]
    pub(crate) fn rank(&self, id: NodeId) -> Rank<'_> {
        let links = self.records.links(id);
        links.expect("a listed child has a record").rank(id)
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree {{ root: {}, len: {} }}", self.root, self.len)
    }
}
