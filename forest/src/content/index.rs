//! The indexes of one version: for an attribute, all values and the nodes that have them, sorted.
//!
//! - They belong to a version like its nodes, so each version is queried through its own.
//! - A commit updates them by its operations if they are few, and otherwise by the difference between two versions, in
//!   the time of that difference.
//! - Erasable values are in no index, because an index would keep them.

use std::sync::Arc;

use weald_tree::{Change, Node, NodeId, Operation, Tree};

use super::erasable::is_reference;
use super::sorted::{Key, Sorted};

/// Up to this many operations are looked at one by one; more cost as much as the difference of two versions.
const FEW: usize = 16;

/// The indexes of a version; most have none.
#[derive(Clone, Default)]
pub(crate) struct Indexes(Option<Arc<Vec<Index>>>);

/// All values of one attribute.
#[derive(Clone)]
pub(crate) struct Index {
    pub(crate) attribute: Arc<str>,
    pub(crate) keys: Sorted,
}

impl Indexes {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn all(&self) -> &[Index] {
        self.0.as_ref().map_or(&[], |all| &all[..])
    }

    pub(crate) fn get(&self, attribute: &str) -> Option<&Index> {
        self.all()
            .iter()
            .find(|index| &*index.attribute == attribute)
    }

    /// The indexes of a version that was derived from `old`.
    #[inline]
    pub(crate) fn updated(&self, old: &Tree, new: &Tree) -> Self {
        match &self.0 {
            None => Self(None),
            Some(all) => {
                let mut all: Vec<Index> = all.to_vec();
                update(&mut all, old, new);
                Self(Some(Arc::new(all)))
            }
        }
    }

    /// The indexes of a version that these operations made of `old`.
    pub(crate) fn after(&self, operations: &[Operation], (old, new): (&Tree, &Tree)) -> Self {
        let Some(all) = &self.0 else {
            return Self(None);
        };
        let Some(touched) = touched(operations) else {
            return self.updated(old, new);
        };
        let mut all: Vec<Index> = all.to_vec();
        for id in touched {
            bring_up_to_date(&mut all, old.node(id), new.node(id));
        }
        Self(Some(Arc::new(all)))
    }

    /// The indexes of a version that gets the nodes of another one, and indexes the same attributes as this one. They
    /// are a function of the nodes, so those that the other version has are right.
    pub(crate) fn restored(&self, from: &Tree, (nodes, theirs): (&Tree, &Self)) -> Self {
        let all = self
            .all()
            .iter()
            .map(|index| match theirs.get(&index.attribute) {
                Some(theirs) => theirs.clone(),
                None => {
                    let mut index = index.clone();
                    index.update(from, nodes);
                    index
                }
            });
        Self((!self.all().is_empty()).then(|| Arc::new(all.collect())))
    }

    /// Whether both are indexes of the same attributes, in the same order.
    pub(crate) fn are_of_same(&self, other: &Self) -> bool {
        let both = self.all().iter().zip(other.all());
        self.all().len() == other.all().len()
            && both
                .into_iter()
                .all(|(one, other)| one.attribute == other.attribute)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn with(&self, index: Index) -> Self {
        let others = self.all().iter().cloned();
        Self(Some(Arc::new(others.chain([index]).collect())))
    }

    pub(crate) fn without(&self, attribute: &str) -> Self {
        let others = self
            .all()
            .iter()
            .filter(|index| &*index.attribute != attribute);
        let others: Vec<Index> = others.cloned().collect();
        Self((!others.is_empty()).then(|| Arc::new(others)))
    }
}

impl Index {
    /// Builds the index of a version, in the time of all its nodes.
    pub(crate) fn of(attribute: &str, tree: &Tree) -> Self {
        let keys = tree
            .root()
            .preorder()
            .filter_map(|node| key(node, attribute));
        Self {
            attribute: attribute.into(),
            keys: Sorted::from_keys(keys.collect()),
        }
    }

    /// Changes it from an index of the version `old` to one of the version `new`.
    pub(crate) fn update(&mut self, old: &Tree, new: &Tree) {
        update(std::slice::from_mut(self), old, new);
    }
}

fn update(indexes: &mut [Index], old: &Tree, new: &Tree) {
    for change in old.diff(new) {
        let (old, new) = match change {
            Change::Added(new) => (None, Some(new)),
            Change::Deleted(old) => (Some(old), None),
            Change::Changed { old, new } => (Some(old), Some(new)),
        };
        bring_up_to_date(indexes, old, new);
    }
}

/// A node changed from one state to another.
fn bring_up_to_date(indexes: &mut [Index], old: Option<Node<'_>>, new: Option<Node<'_>>) {
    for index in indexes {
        let is_unchanged = match (old, new) {
            (Some(old), Some(new)) => is_same(old.get(&index.attribute), new.get(&index.attribute)),
            _ => false,
        };
        if is_unchanged {
            continue;
        }
        let key = |node: Option<Node<'_>>| key(node?, &index.attribute);
        if let Some(old) = key(old) {
            index.keys.remove(&old);
        }
        if let Some(new) = key(new) {
            index.keys.insert(new);
        }
    }
}

/// The nodes whose attributes a few operations touch, each once; `None`, if they are many, or touch more than they
/// name.
fn touched(operations: &[Operation]) -> Option<Vec<NodeId>> {
    if operations.len() > FEW {
        return None;
    }
    let mut all = Vec::with_capacity(operations.len());
    for operation in operations {
        match operation {
            Operation::Add { node, .. }
            | Operation::PutAttribute { node, .. }
            | Operation::DeleteAttribute { node, .. } => all.push(*node),
            // An index has no places, so a move changes none.
            Operation::Move { .. } => {}
            _ => return None,
        }
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// Whether a value did not change. A long one that did not is the same memory in both versions.
fn is_same(old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => std::ptr::eq(old, new) || old == new,
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// The key of a node, whose value is shared with the version.
fn key(node: Node<'_>, attribute: &str) -> Option<Key> {
    let value = node.get_bytes(attribute)?;
    let node = node.id();
    (!is_reference(&value)).then_some(Key { value, node })
}
