//! A subtree built separately: nodes that are in no version yet, to be spliced in as a whole.
//!
//! - Its ids come from the tree's source, so it never collides with what is built at the same time.
//! - It is a list of whole leaves of the map (see `radix`), in order. A leaf that holds only its nodes is
//!   shared with the version that it is spliced into; only the first and the last may have to be merged.

use std::sync::Arc;

use crate::attributes::Attributes;
use crate::id::{Ids, NodeId};
use weald_memory::Shared;

use crate::leaf::Leaf;
use crate::radix::Radix;
use crate::record::{Links, Place, Record};
use crate::tree::Tree;

/// A tree without a place yet. A clone shares everything.
#[derive(Clone)]
pub struct Subtree(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) root: NodeId,
    pub(crate) len: u64,
    pub(crate) ids: Ids,
    /// The leaves with their numbers, in rising order.
    pub(crate) leaves: Vec<(u64, Shared<Leaf>)>,
}

impl Subtree {
    /// The id of its root.
    pub fn root(&self) -> NodeId {
        self.0.root.marked(self.0.ids.mark())
    }

    /// The source of its ids.
    pub fn ids(&self) -> &Ids {
        &self.0.ids
    }

    /// How many nodes it has; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a subtree has a root")]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// The greatest id of its nodes.
    pub(crate) fn last_id(&self) -> Option<NodeId> {
        let (number, leaf) = self.0.leaves.last()?;
        let slot = leaf.slots().last()?;
        Some(NodeId::in_leaf(*number, slot))
    }

    /// How many bytes of long values it has.
    pub(crate) fn long_bytes(&self) -> usize {
        let of_leaf = |leaf: &Leaf| -> usize {
            let attributes = leaf.slots().filter_map(|slot| leaf.attributes(slot));
            attributes.map(Attributes::long_bytes).sum()
        };
        self.0.leaves.iter().map(|(_, leaf)| of_leaf(leaf)).sum()
    }

    /// Turns the subtree into a tree that continues with the same id source.
    pub fn into_tree(self) -> Tree {
        let (records, root, len, ids) = match Arc::try_unwrap(self.0) {
            Ok(own) => (
                Radix::of_leaves(own.leaves.into_iter()),
                own.root,
                own.len,
                own.ids,
            ),
            Err(shared) => (
                Radix::of_leaves(shared.leaves.iter().cloned()),
                shared.root,
                shared.len,
                shared.ids.clone(),
            ),
        };
        Tree {
            records,
            root: root.marked(ids.mark()),
            len,
            ids,
        }
    }

    /// An id that both this subtree and the map have.
    pub(crate) fn collision(&self, records: &Radix) -> Option<NodeId> {
        let ids = |(number, leaf): &(u64, Shared<Leaf>)| {
            let there = records.leaf(NodeId::in_leaf(*number, 0))?;
            let both = leaf.slots().find(|slot| there.has(*slot));
            both.map(|slot| NodeId::in_leaf(*number, slot))
        };
        self.0.leaves.iter().find_map(ids)
    }

    /// Puts all records into the map, and the root at `place`.
    pub(crate) fn insert_into(&self, records: &mut Radix, place: Place) {
        for (number, leaf) in &self.0.leaves {
            let first = NodeId::in_leaf(*number, 0);
            if records.leaf(first).is_none() {
                records.insert_leaf(*number, Shared::clone(leaf));
                continue;
            }
            for slot in leaf.slots() {
                let parts = leaf.links(slot).zip(leaf.attributes(slot));
                let record = parts.map(|(links, attributes)| Record {
                    links: Links::clone(links),
                    attributes: attributes.clone(),
                });
                let id = NodeId::in_leaf(*number, slot);
                records.insert(id, record.expect("the slot has a record"));
            }
        }
        records.change_links(self.0.root, |its_own, _| *its_own = place);
    }
}

impl std::fmt::Debug for Subtree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Subtree {{ root: {}, len: {} }}",
            self.0.root, self.0.len
        )
    }
}
