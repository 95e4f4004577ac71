//! The indexes of one version: for an attribute, all values and the nodes that have them, sorted.
//!
//! - They belong to a version like its nodes, so each version is queried through its own.
//! - A commit updates them by the difference between two versions, in the time of that difference.
//! - Erasable values are in no index, because an index would keep them.

use std::sync::Arc;

use weald_tree::{Bytes, Change, Node, Tree};

use super::erasable::is_reference;
use super::sorted::{Key, Sorted};

/// The indexes of a version; most have none.
#[derive(Clone, Default)]
pub(crate) struct Indexes(Option<Arc<[Index]>>);

/// All values of one attribute.
#[derive(Clone)]
pub(crate) struct Index {
    pub(crate) attribute: Arc<str>,
    pub(crate) keys: Sorted,
}

impl Indexes {
    pub(crate) fn all(&self) -> &[Index] {
        self.0.as_deref().unwrap_or_default()
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
                Self(Some(all.into()))
            }
        }
    }

    pub(crate) fn with(&self, index: Index) -> Self {
        let others = self.all().iter().cloned();
        Self(Some(others.chain([index]).collect()))
    }

    pub(crate) fn without(&self, attribute: &str) -> Self {
        let others = self
            .all()
            .iter()
            .filter(|index| &*index.attribute != attribute);
        let others: Arc<[Index]> = others.cloned().collect();
        Self((!others.is_empty()).then_some(others))
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
        for index in &mut *indexes {
            let value = |node: Option<Node<'_>>| key(node?, &index.attribute);
            let (old, new) = (value(old), value(new));
            if old == new {
                continue;
            }
            if let Some(old) = old {
                index.keys.remove(&old);
            }
            if let Some(new) = new {
                index.keys.insert(new);
            }
        }
    }
}

fn key(node: Node<'_>, attribute: &str) -> Option<Key> {
    let value = node.get(attribute).filter(|value| !is_reference(value))?;
    let (value, node) = (Bytes::new(value), node.id());
    Some(Key { value, node })
}
