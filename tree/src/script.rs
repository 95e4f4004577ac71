//! What an edit did and what it relied on, as data that outlives the edit.
//!
//! To bring an edit from its base to a newer head: [`Script::stale`] checks whether the head still has what
//! the edit relied on; if so, [`Script::replay`] applies the operations to the head in order. An operation
//! that the head does not allow is refused with a typed error, and the head stays as it was. No code of the
//! edit's author runs.
//!
//! An edit relied on what it read, and on what its operations destroy: putting or deleting an attribute
//! relies on its old value, moving a node on its old place, deleting a subtree on everything in it. A blind
//! edit relied on nothing.

use std::collections::HashSet;

use crate::apply::Origin;
use crate::bytes::Bytes;
use crate::climb::Climb;
use crate::diff::Change;
use crate::error::EditError;
use crate::id::NodeId;
use crate::node::Node;
use crate::operation::Operation;
use crate::steps::Steps;
use crate::tree::Tree;

/// The operations of an edit, and what it relied on.
#[derive(Clone, Debug, Default)]
pub struct Script {
    operations: Steps,
    /// `None` if the edit was blind.
    reads: Option<Vec<Read>>,
    steps: u64,
}

/// Something that an edit relied on, as fine-grained as the check for conflicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// One attribute of one node, or its absence.
    Attribute {
        /// The node.
        node: NodeId,
        /// The attribute's name.
        name: Bytes,
    },
    /// The children of a node, in order.
    Children(NodeId),
    /// The parent of a node, and its place among its siblings.
    Place(NodeId),
    /// A node and everything below it.
    Subtree(NodeId),
}

impl Script {
    pub(crate) fn new(operations: Steps, reads: Option<Vec<Read>>, steps: u64) -> Self {
        Self {
            operations,
            reads,
            steps,
        }
    }

    /// The cost of a replay, in steps: an operation is one, and each node that it splices in or deletes is one more.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The greatest cost of bringing the edit to a version that is `between` steps away from its base: its check and
    /// its replay.
    pub fn steps_to_rebase(&self, between: u64) -> u64 {
        let reads = self.reads.as_deref();
        steps_to_rebase((&self.operations, self.steps), reads, between)
    }

    /// The operations, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The reads, in order; empty if the edit was blind.
    pub fn reads(&self) -> &[Read] {
        self.reads.as_deref().unwrap_or_default()
    }

    /// Something that the edit relied on in `base`, from which it started, and that is different in `head`;
    /// `None` if there is nothing of the kind.
    ///
    /// It costs two look-ups for each read and operation. The subtrees that were read or deleted together cost
    /// one diff of both versions. Nodes that the edit added itself are not in the base and are never stale.
    pub fn stale(&self, base: &Tree, head: &Tree) -> Option<Read> {
        let reads = self.reads.as_deref()?;
        let both = Both { base, head };
        let is_stale = |read: &&Read| both.is_stale(read);
        let stale = reads.iter().find(is_stale).cloned();
        let stale = stale.or_else(|| self.operations.iter().find_map(|step| both.overtaken(step)));
        stale.or_else(|| both.disturbed(&self.subtrees(base)))
    }

    /// Applies the operations to `head` and returns the new version; `head` does not change. The operations then
    /// hold the keys that were used, so they are what happened to `head`.
    ///
    /// # Errors
    /// The error of the first operation that the head does not allow.
    pub fn replay(&mut self, head: &Tree) -> Result<Tree, EditError> {
        let mut tree = head.clone();
        for operation in self.operations.iter_mut() {
            let used = tree.apply(operation, Origin::Edit)?;
            operation.place_at(used);
        }
        Ok(tree)
    }

    /// The roots of all subtrees that were read or deleted.
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
            // The edit may have moved nodes into such a subtree, and then read or deleted them with it.
            subtrees.extend(self.operations.iter().filter_map(|step| match step {
                Operation::Move { node, .. } => Some(*node),
                _ => None,
            }));
        }
        subtrees
    }
}

/// The cost of a check and a replay: of operations with their steps, and of reads unless the edit is blind.
pub(crate) fn steps_to_rebase(
    (operations, steps): (&[Operation], u64),
    reads: Option<&[Read]>,
    between: u64,
) -> u64 {
    let Some(reads) = reads else { return steps };
    // The subtrees that were read or deleted take a diff of both versions.
    let is_compared = reads.iter().any(|read| matches!(read, Read::Subtree(_)))
        || operations.iter().any(Operation::takes_subtree);
    steps + reads.len() as u64 + if is_compared { between } else { 0 }
}

/// The version from which an edit started, and the version on which it is replayed.
struct Both<'a> {
    base: &'a Tree,
    head: &'a Tree,
}

impl Both<'_> {
    fn is_stale(&self, read: &Read) -> bool {
        match read {
            Read::Attribute { node, name } => {
                let name = str::from_utf8(name).expect("names are checked to be text");
                self.differ(*node, |old, new| old.get(name) != new.get(name))
            }
            Read::Children(node) => self.differ(*node, |old, new| {
                old.links().children() != new.links().children()
            }),
            Read::Place(node) => self.differ(*node, |old, new| old.is_moved_to(new)),
            Read::Subtree(_) => false, // `disturbed` checks all subtrees together.
        }
    }

    /// What an operation would overwrite that its author has not seen. A missing node is found when the
    /// operation is applied.
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
            Operation::PopRoot { node } => {
                let differs = |old: Node<'_>, new: Node<'_>| {
                    let (one, other) = (old.links(), new.links());
                    one.children() != other.children() || old.attributes() != new.attributes()
                };
                return self.differ(*node, differs).then_some(Read::Children(*node));
            }
            _ => return None,
        };
        self.head.node(node)?;
        self.is_stale(&read).then_some(read)
    }

    /// Whether the base has a node that the head lacks, or whose relevant part differs in the head.
    fn differ(&self, node: NodeId, differs: impl Fn(Node<'_>, Node<'_>) -> bool) -> bool {
        let (old, new) = (self.base.node(node), self.head.node(node));
        old.is_some_and(|old| new.is_none_or(|new| differs(old, new)))
    }

    /// One of these subtrees in which something differs.
    fn disturbed(&self, roots: &HashSet<NodeId>) -> Option<Read> {
        if roots.is_empty() {
            return None;
        }
        let (mut in_base, mut in_head) = (Climb::to(roots.clone()), Climb::to(roots.clone()));
        let mut changes = self.base.diff(self.head);
        let found = changes.find_map(|change| match change {
            Change::Added(node) => in_head.from(node),
            Change::Deleted(node) => in_base.from(node),
            Change::Changed { old, new } => in_base.from(old).or_else(|| in_head.from(new)),
        });
        found.map(Read::Subtree)
    }
}
