//! What an edit did and what it relied on, as data that outlives it.
//!
//! To bring an edit from its base to a newer head: [`Script::stale`] says whether the head still has what
//! the edit relied on; if so, [`Script::replay`] applies the operations to the head in their order. An
//! operation that the head does not allow is refused with a typed error, and nothing of the head has
//! changed. No code of the edit's author runs.
//!
//! What an edit relied on is what it read, and what its operations destroy: who puts or deletes an
//! attribute relied on its old value, who moves a node on its old place, who deletes a subtree on all
//! that was in it. A blind edit relied on nothing.

use std::collections::HashSet;

use crate::bytes::Bytes;
use crate::diff::Change;
use crate::error::EditError;
use crate::id::NodeId;
use crate::node::Node;
use crate::operation::Operation;
use crate::tree::Tree;

/// The operations of an edit, and what it relied on.
#[derive(Clone, Debug, Default)]
pub struct Script {
    operations: Vec<Operation>,
    /// Nothing, if the edit was blind.
    reads: Option<Vec<Read>>,
}

/// Something that an edit relied on, in the grain in which it can be disturbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// One attribute of one node, or that it has none.
    Attribute {
        /// The node.
        node: NodeId,
        /// The attribute's name.
        name: Bytes,
    },
    /// Which children a node has, in order.
    Children(NodeId),
    /// Under which parent a node stands, and where among its siblings.
    Place(NodeId),
    /// A node and all below it.
    Subtree(NodeId),
}

impl Script {
    pub(crate) fn new(operations: Vec<Operation>, reads: Option<Vec<Read>>) -> Self {
        Self { operations, reads }
    }

    /// What was done, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What was read, in order; nothing, if the edit was blind.
    pub fn reads(&self) -> &[Read] {
        self.reads.as_deref().unwrap_or_default()
    }

    /// Something that the edit relied on in `base`, from which it began, and that is otherwise in `head`.
    ///
    /// It costs two look-ups for each read and operation; subtrees, read or deleted, together cost the
    /// difference of both versions. Nodes that the edit made itself are in no base and never stale.
    pub fn stale(&self, base: &Tree, head: &Tree) -> Option<Read> {
        let reads = self.reads.as_deref()?;
        let both = Both { base, head };
        let is_stale = |read: &&Read| both.is_stale(read);
        let stale = reads.iter().find(is_stale).cloned();
        let stale = stale.or_else(|| self.operations.iter().find_map(|step| both.overtaken(step)));
        stale.or_else(|| both.disturbed(&self.subtrees(base)))
    }

    /// The version that the operations make of `head`, which does not change.
    ///
    /// # Errors
    /// That of the first operation that the head does not allow.
    pub fn replay(&self, head: &Tree) -> Result<Tree, EditError> {
        let mut tree = head.clone();
        for operation in &self.operations {
            tree.apply(operation)?;
        }
        Ok(tree)
    }

    /// The topmost nodes of all subtrees that were read or deleted.
    fn subtrees(&self, base: &Tree) -> HashSet<NodeId> {
        let read = self.reads().iter().filter_map(|read| match read {
            Read::Subtree(node) => Some(*node),
            _ => None,
        });
        let deleted = self.operations.iter().filter_map(|step| match step {
            Operation::Delete { node } => Some(*node),
            Operation::ReplaceRoot { .. } => Some(base.root),
            _ => None,
        });
        let mut subtrees: HashSet<NodeId> = read.chain(deleted).collect();
        if !subtrees.is_empty() {
            // What the edit moved may have come into such a subtree, and was then read or deleted with it.
            subtrees.extend(self.operations.iter().filter_map(|step| match step {
                Operation::Move { node, .. } => Some(*node),
                _ => None,
            }));
        }
        subtrees
    }
}

/// The version from which an edit began, and the one to which it is to be brought.
struct Both<'a> {
    base: &'a Tree,
    head: &'a Tree,
}

impl Both<'_> {
    fn is_stale(&self, read: &Read) -> bool {
        match read {
            Read::Attribute { node, name } => {
                let name = str::from_utf8(name).expect("the name came as text");
                self.differ(*node, |old, new| old.get(name) != new.get(name))
            }
            Read::Children(node) => self.differ(*node, |old, new| {
                old.record().children != new.record().children
            }),
            Read::Place(node) => {
                self.differ(*node, |old, new| old.record().place != new.record().place)
            }
            Read::Subtree(_) => false, // All of them are looked at together.
        }
    }

    /// What an operation would overwrite and its author has not seen. That a node is gone is found when
    /// the operation is applied.
    fn overtaken(&self, operation: &Operation) -> Option<Read> {
        let (node, read) = match operation {
            Operation::PutAttribute { node, name, .. }
            | Operation::DeleteAttribute { node, name } => {
                let (node, name) = (*node, name.clone());
                (node, Read::Attribute { node, name })
            }
            Operation::Move { node, .. } => (*node, Read::Place(*node)),
            Operation::PushRoot { .. } => {
                let root = self.base.root;
                return self.head.node(root).is_none().then_some(Read::Place(root));
            }
            _ => return None,
        };
        self.head.node(node)?;
        self.is_stale(&read).then_some(read)
    }

    /// Whether the base has a node, and the head has none or one that differs in what was read.
    fn differ(&self, node: NodeId, differs: impl Fn(Node<'_>, Node<'_>) -> bool) -> bool {
        let (old, new) = (self.base.node(node), self.head.node(node));
        old.is_some_and(|old| new.is_none_or(|new| differs(old, new)))
    }

    /// One of these subtrees in which something differs.
    fn disturbed(&self, roots: &HashSet<NodeId>) -> Option<Read> {
        if roots.is_empty() {
            return None;
        }
        let above = |node: Node<'_>| {
            let ids = std::iter::once(node).chain(node.ancestors()).map(Node::id);
            ids.into_iter().find(|id| roots.contains(id))
        };
        let mut changes = self.base.diff(self.head);
        let found = changes.find_map(|change| match change {
            Change::Added(node) | Change::Deleted(node) => above(node),
            Change::Changed { old, new } => above(old).or_else(|| above(new)),
        });
        found.map(Read::Subtree)
    }
}
