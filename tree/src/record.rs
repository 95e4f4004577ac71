//! What a version holds for one node: its place, its attributes and the ids of its children.
//!
//! A record takes 56 bytes, and so does a slot of the map, which may be empty. A test checks both.

use std::sync::Arc;

use crate::attributes::Attributes;
use crate::children::Children;
use crate::id::NodeId;
use crate::key::{OrderKey, Rank};
use crate::radix::Entry;
use crate::shape::{Family, MOST};

/// One node in one version.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) attributes: Attributes,
    pub(crate) children: Children,
}

/// The parent and the order key under it; a root is its own parent.
#[derive(Clone)]
pub(crate) enum Place {
    Word { parent: NodeId, word: u64 },
    Words(Arc<(NodeId, OrderKey)>),
}

impl Record {
    #[inline]
    pub(crate) fn new(place: Place, attributes: Attributes) -> Self {
        Self {
            place,
            attributes,
            children: Children::None,
        }
    }
}

impl Entry for Record {
    #[inline]
    fn family(&self, id: NodeId) -> Family {
        match &self.children {
            Children::None => Family::None,
            Children::Run { count, first } => match u8::try_from(*count) {
                Ok(count @ 1..=MOST) if *first == id.plus(1) => Family::Following(count),
                _ => Family::Listed,
            },
            Children::Few(_) | Children::List(_) => Family::Listed,
        }
    }
}

impl Place {
    #[inline]
    pub(crate) fn new(parent: NodeId, key: &OrderKey) -> Self {
        match *key.words() {
            [word] => Self::Word { parent, word },
            _ => Self::Words(Arc::new((parent, key.clone()))),
        }
    }

    /// The place of the root with this id.
    pub(crate) fn of_root(id: NodeId) -> Self {
        Self::new(id, &OrderKey::nth(0))
    }

    #[inline]
    pub(crate) fn parent(&self) -> NodeId {
        match self {
            Self::Word { parent, .. } => *parent,
            Self::Words(shared) => shared.0,
        }
    }

    #[inline]
    pub(crate) fn rank(&self, id: NodeId) -> Rank<'_> {
        let words = match self {
            Self::Word { word, .. } => std::slice::from_ref(word),
            Self::Words(shared) => shared.1.words(),
        };
        Rank { words, id }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        let id = self.parent();
        id == other.parent() && self.rank(id) == other.rank(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_takes_fifty_six_bytes() {
        assert_eq!(size_of::<Record>(), 56);
        assert_eq!(size_of::<Option<Record>>(), 56);
    }
}
