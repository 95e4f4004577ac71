//! Every reference that comes into a tree has a holder of this forest, wherever it comes from: from another attribute,
//! from a snapshot, or from a forest of a past moment, whose holders are its own.
//!
//! A forest with a journal holds references to bytes that it does not know as well. Before the commit, its author reads
//! these bytes back from the history ([`missing`](Blobs::missing)).

use std::sync::{Arc, PoisonError};

use weald_tree::{Attributes, Bytes, NodeRecord, Operation, Subtree, Tree};

use super::erasable::{Blobs, Holder, is_reference, referred};
use super::shelves::{BlobId, Content};

impl Blobs {
    /// The same value for a tree; a reference that was copied byte by byte holds what it refers to from then on.
    pub(crate) fn held(self: &Arc<Self>, value: &[u8]) -> Option<Bytes> {
        let id = referred(value)?;
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        // The history may have what memory does not.
        let may_be_there =
            shelves.blobs.has(&id) || shelves.holders.has(&id) || shelves.keeps_copies;
        drop(shelves);
        may_be_there.then(|| self.reference(id))
    }

    /// The same for all attributes of a node.
    pub(crate) fn all_held(self: &Arc<Self>, attributes: Attributes) -> Attributes {
        if !self.were_used() {
            return attributes;
        }
        let held = attributes
            .iter()
            .filter_map(|(name, value)| Some((name, self.held(value)?)));
        let held: Vec<(String, Bytes)> =
            held.map(|(name, value)| (name.to_owned(), value)).collect();
        let with = |all: Attributes, (name, value): &(String, Bytes)| all.with_bytes(name, value);
        held.iter().fold(attributes, with)
    }

    /// The same for a tree. If all its references have holders of this forest already, it stays what it is, and shares
    /// its nodes.
    pub(crate) fn tree_held(self: &Arc<Self>, tree: Tree) -> Tree {
        if !self.were_used()
            || !tree
                .root()
                .preorder()
                .any(|node| self.lack(node.attributes()))
        {
            return tree;
        }
        let held = Tree::from_records(tree.ids().clone(), self.records_held(tree.records()));
        held.expect("these are the nodes of a tree")
    }

    /// The same for a subtree; `None`, if it stays what it is.
    pub(crate) fn subtree_held(self: &Arc<Self>, subtree: &Subtree) -> Option<Subtree> {
        if !self.were_used() || !subtree.records().any(|node| self.lack(&node.attributes)) {
            return None;
        }
        let held = Subtree::from_records(subtree.ids(), self.records_held(subtree.records()));
        Some(held.expect("these are the nodes of a subtree"))
    }

    /// The same for what an operation brings.
    pub(crate) fn operation_held(self: &Arc<Self>, operation: &Operation) -> Option<Operation> {
        let mut held = operation.clone();
        match &mut held {
            Operation::PutAttribute { value, .. } => *value = self.held(value)?,
            Operation::Add { attributes, .. }
            | Operation::ReplaceRoot { attributes, .. }
            | Operation::PushRoot { attributes, .. } => {
                *attributes = self.all_held(attributes.clone());
            }
            Operation::Splice { subtree, .. } => *subtree = self.subtree_held(subtree)?,
            _ => return None,
        }
        Some(held)
    }

    fn records_held<'a>(
        self: &'a Arc<Self>,
        records: impl Iterator<Item = NodeRecord> + 'a,
    ) -> impl Iterator<Item = NodeRecord> + 'a {
        records.map(|record| NodeRecord {
            attributes: self.all_held(record.attributes),
            ..record
        })
    }

    /// Whether one of these attributes is a reference without a holder of this forest.
    fn lack(self: &Arc<Self>, attributes: &Attributes) -> bool {
        let mut references = attributes.iter().filter(|(_, value)| is_reference(value));
        references.any(|(name, _)| {
            let value = attributes.get_bytes(name);
            let holder = value.as_ref().and_then(Bytes::companion::<Holder>);
            !holder.is_some_and(|holder| Arc::ptr_eq(&holder.blobs, self))
        })
    }

    /// Those of some blobs whose bytes are not here.
    pub(crate) fn missing(&self, ids: impl Iterator<Item = BlobId>) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |id: &BlobId| match shelves.blobs.get(id) {
            // An edit that may never be committed has them alone.
            Some(shelf) => matches!(shelf.content, Content::Absent) || !shelf.is_committed(),
            None => true,
        };
        ids.filter(is_missing).collect()
    }

    /// The blobs that have a reference and were brought by no record that was read.
    pub(crate) fn unknown(&self) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let held = shelves.holders.iter().map(|(id, _)| *id);
        held.filter(|id| !shelves.blobs.has(id)).collect()
    }

    /// Those of some blobs about which nothing is known here.
    pub(crate) fn without_shelf(&self, ids: impl Iterator<Item = BlobId>) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        ids.filter(|id| !shelves.blobs.has(id)).collect()
    }
}
