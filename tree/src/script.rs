//! What an edit did and what it relied on, as data that outlives it.
//!
//! To bring an edit from its base to a newer head: [`Script::stale`] says whether the head still has what
//! the edit read; if so, each of [`Script::operations`] is applied to an edit of the head in their order.
//! An operation that the head does not allow is refused with a typed error, and nothing of the head
//! has changed. No code of the edit's author runs.

use std::collections::HashSet;

use crate::bytes::Bytes;
use crate::diff::Change;
use crate::id::NodeId;
use crate::node::Node;
use crate::operation::Operation;
use crate::tree::Tree;

/// The operations of an edit, and what it read.
#[derive(Clone, Debug, Default)]
pub struct Script {
    operations: Vec<Operation>,
    reads: Vec<Read>,
}

/// Something that an edit read, in the grain in which it can be disturbed.
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
    /// A node and all below it.
    Subtree(NodeId),
}

impl Script {
    pub(crate) fn new(operations: Vec<Operation>, reads: Vec<Read>) -> Self {
        Self { operations, reads }
    }

    /// What was done, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What was read, in order.
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Something that was read in `base`, from which the edit began, and is otherwise in `head`.
    ///
    /// An attribute or a child list costs two look-ups; subtrees together cost the difference of both
    /// versions. Nodes that the edit made itself are in no base and never stale.
    pub fn stale(&self, base: &Tree, head: &Tree) -> Option<&Read> {
        let disturbed = self.disturbed(base, head);
        self.reads.iter().find(|read| match read {
            Read::Attribute { node, name } => {
                let value = |node: Node| {
                    let name = str::from_utf8(name).expect("the name came as text");
                    node.get(name).map(<[u8]>::to_vec)
                };
                base.node(*node)
                    .is_some_and(|old| head.node(*node).is_none_or(|new| value(old) != value(new)))
            }
            Read::Children(node) => {
                let list = |node: Node<'_>| node.record.children.clone();
                base.node(*node)
                    .is_some_and(|old| head.node(*node).is_none_or(|new| list(old) != list(new)))
            }
            Read::Subtree(node) => disturbed.contains(node),
        })
    }

    /// The subtrees that were read and in which something differs.
    fn disturbed(&self, base: &Tree, head: &Tree) -> HashSet<NodeId> {
        let roots = self.reads.iter().filter_map(|read| match read {
            Read::Subtree(node) => Some(*node),
            _ => None,
        });
        let roots: HashSet<NodeId> = roots.collect();
        let mut disturbed = HashSet::new();
        if roots.is_empty() {
            return disturbed;
        }
        for change in base.diff(head) {
            let seen = match change {
                Change::Added(new) => [Some(new), None],
                Change::Deleted(old) => [Some(old), None],
                Change::Changed { old, new } => [Some(old), Some(new)],
            };
            let above = |node: Node<'_>| {
                let ids = std::iter::once(node).chain(node.ancestors());
                ids.map(Node::id)
                    .filter(|id| roots.contains(id))
                    .collect::<Vec<_>>()
            };
            disturbed.extend(seen.into_iter().flatten().flat_map(above));
        }
        disturbed
    }
}
