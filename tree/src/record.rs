//! What a version holds for one node beside its attributes: its links, which are its place and its children.
//!
//! - The links take 32 bytes, and a test checks that.
//! - Those of most nodes are plain data: a parent, a key of one word, and children that are a run. They are copied
//!   with the block that they are in; only a list of children and a longer key are shared by counter.

use std::sync::Arc;

use bytemuck::TransparentWrapper;
use triomphe::ThinArc;
use weald_memory::Item;

use crate::attributes::Attributes;
use crate::children::{Children, Listing};
use crate::id::NodeId;
use crate::key::{OrderKey, Rank};
use crate::shape::{Family, MOST};

/// One node in one version.
pub(crate) struct Record {
    pub(crate) links: Links,
    pub(crate) attributes: Attributes,
}

/// The place of a node and its children.
#[derive(Clone, TransparentWrapper)]
#[repr(transparent)]
pub(crate) struct Links(LinkItem);

/// Links as they are in a block.
pub(crate) type LinkItem = Item<Near, Far>;

/// Links that are plain data: the children are a run, which may be empty.
#[derive(Clone, Copy)]
pub(crate) struct Near {
    parent: NodeId,
    word: u64,
    first: u64,
    count: u32,
}

/// Links, a part of them in a counted block.
#[derive(Clone)]
pub(crate) enum Far {
    Few {
        parent: NodeId,
        word: u64,
        ids: ThinArc<(), NodeId>,
    },
    Any(Arc<(Place, Children)>),
}

/// The parent and the order key under it; a root is its own parent.
#[derive(Clone)]
pub(crate) enum Place {
    Word { parent: NodeId, word: u64 },
    Words(Arc<(NodeId, OrderKey)>),
}

impl Record {
    /// The record of a node without children.
    #[inline(always)]
    pub(crate) fn new(place: Place, attributes: Attributes) -> Self {
        let links = Links::new(place, Children::None);
        Self { links, attributes }
    }
}

impl Links {
    #[inline(always)]
    pub(crate) fn new(place: Place, children: Children) -> Self {
        let (parent, word) = match place {
            Place::Word { parent, word } => (parent, word),
            Place::Words(_) => return Self::any(place, children),
        };
        let (count, first) = match children {
            Children::None => (0, 0),
            Children::Run { count, first } => (count, first.get()),
            Children::Few(ids) => return Self(Item::Counted(Far::Few { parent, word, ids })),
            Children::List(_) => return Self::any(place, children),
        };
        Self(Item::Plain(Near {
            parent,
            word,
            first,
            count,
        }))
    }

    #[cold]
    fn any(place: Place, children: Children) -> Self {
        Self(Item::Counted(Far::Any(Arc::new((place, children)))))
    }

    /// The place and the children: what [`new`](Self::new) made the links of.
    #[inline(always)]
    pub(crate) fn into_parts(self) -> (Place, Children) {
        match self.0 {
            Item::Plain(Near {
                parent,
                word,
                first,
                count,
            }) => {
                let run = NodeId::new(first).map(|first| Children::Run { count, first });
                let children = run.filter(|_| count > 0).unwrap_or_default();
                (Place::Word { parent, word }, children)
            }
            Item::Counted(Far::Few { parent, word, ids }) => {
                (Place::Word { parent, word }, Children::Few(ids))
            }
            Item::Counted(Far::Any(shared)) => Arc::unwrap_or_clone(shared),
        }
    }

    #[inline]
    pub(crate) fn parent(&self) -> NodeId {
        match &self.0 {
            Item::Plain(Near { parent, .. }) | Item::Counted(Far::Few { parent, .. }) => *parent,
            Item::Counted(Far::Any(shared)) => shared.0.parent(),
        }
    }

    #[inline]
    pub(crate) fn rank(&self, id: NodeId) -> Rank<'_> {
        let words = match &self.0 {
            Item::Plain(Near { word, .. }) | Item::Counted(Far::Few { word, .. }) => {
                std::slice::from_ref(word)
            }
            Item::Counted(Far::Any(shared)) => shared.0.words(),
        };
        Rank { words, id }
    }

    #[inline]
    pub(crate) fn children(&self) -> Listing<'_> {
        match &self.0 {
            Item::Plain(near) => near.children(),
            Item::Counted(Far::Few { ids, .. }) => Listing::Few(&ids.slice),
            Item::Counted(Far::Any(shared)) => shared.1.listing(),
        }
    }

    /// Whether both have the same parent and the same key.
    pub(crate) fn has_place_of(&self, other: &Self) -> bool {
        let id = self.parent();
        id == other.parent() && self.rank(id) == other.rank(id)
    }

    /// The list of children, if it is a block of its own, by its address and its size in bytes without counters; and
    /// the long list.
    pub(crate) fn shared(&self) -> (Option<(usize, usize)>, Option<&crate::rope::Rope>) {
        let children = match &self.0 {
            Item::Plain(_) => return (None, None),
            Item::Counted(Far::Few { ids, .. }) => {
                let bytes = size_of_val(&ids.slice);
                return (Some((ThinArc::as_ptr(ids).addr(), bytes)), None);
            }
            Item::Counted(Far::Any(shared)) => shared,
        };
        let bytes = size_of::<(Place, Children)>();
        let own = Some((Arc::as_ptr(children).addr(), bytes));
        match &children.1 {
            Children::List(rope) => (own, Some(rope)),
            _ => (own, None),
        }
    }
}

impl Near {
    /// The links of a node without children.
    #[inline(always)]
    pub(crate) fn alone(parent: NodeId, word: u64) -> Self {
        let (first, count) = (0, 0);
        Self {
            parent,
            word,
            first,
            count,
        }
    }

    /// Adds children with consecutive ids at a position, if all children are a run then; otherwise returns false.
    #[inline]
    pub(crate) fn adopt(&mut self, at: usize, (first, count): (NodeId, u32)) -> bool {
        if self.count == 0 {
            (self.first, self.count) = (first.get(), count);
            return true;
        }
        let follows =
            at == self.count as usize && self.first + u64::from(self.count) == first.get();
        match self.count.checked_add(count) {
            Some(sum) if follows => self.count = sum,
            _ => return false,
        }
        true
    }

    #[inline]
    pub(crate) fn children(&self) -> Listing<'_> {
        Listing::run(self.count, self.first)
    }
}

impl Listing<'_> {
    /// What a shape says of these children of a node.
    #[inline]
    pub(crate) fn family(self, id: NodeId) -> Family {
        match self {
            Listing::None => Family::None,
            Listing::Run { count, first } => match u8::try_from(count) {
                Ok(count @ 1..=MOST) if first == id.plus(1) => Family::Following(count),
                _ => Family::Listed,
            },
            Listing::Few(_) | Listing::List(_) => Family::Listed,
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
    fn parent(&self) -> NodeId {
        match self {
            Self::Word { parent, .. } => *parent,
            Self::Words(shared) => shared.0,
        }
    }

    #[inline]
    fn words(&self) -> &[u64] {
        match self {
            Self::Word { word, .. } => std::slice::from_ref(word),
            Self::Words(shared) => shared.1.words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_take_thirty_two_bytes() {
        assert_eq!(size_of::<Links>(), 32);
    }

    #[test]
    fn links_give_back_what_they_were_made_of() {
        let [parent, first, other] = [3, 8, 5].map(NodeId::at);
        let long = OrderKey::from_words(&[1, 2, 3]).expect("three is odd");
        let list: Vec<_> = (10..100).map(NodeId::at).collect();
        for key in [OrderKey::nth(4), long] {
            for children in [
                Children::None,
                Children::Run { count: 2, first },
                Children::from_list(&[first, other]),
                Children::from_list(&list),
            ] {
                let links = Links::new(Place::new(parent, &key), children.clone());
                assert!(links.children() == children.listing());
                assert_eq!(
                    (links.parent(), links.rank(first).words),
                    (parent, key.words())
                );
                let (place, again) = links.clone().into_parts();
                assert!(again.listing() == children.listing());
                assert!(Links::new(place, again).has_place_of(&links));
            }
        }
    }
}
