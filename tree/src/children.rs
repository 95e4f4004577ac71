//! The children of one node, in order: none, a run of consecutive ids, a few ids, or a long list.
//!
//! A run takes no memory of its own, and its records are adjacent: children that a builder adds in one go, and
//! children that one edit appends to one node, are runs. A few ids are one block, which is copied whole; a
//! long list shares its chunks with other versions. The order is that of the order keys; the caller of
//! [`Children::insert`] keeps it.

use std::cmp::Ordering;

use triomphe::ThinArc;

use crate::id::NodeId;
use crate::rope::Rope;

/// The most ids that are copied whole.
const FEW: usize = 32;

/// Ids of siblings by position.
#[derive(Clone, Default)]
pub(crate) enum Children {
    #[default]
    None,
    Run {
        count: u32,
        first: NodeId,
    },
    Few(ThinArc<(), NodeId>),
    List(Rope),
}

/// The ids, borrowed from wherever they are.
#[derive(Clone, Copy)]
pub(crate) enum Listing<'a> {
    None,
    Run { count: u32, first: NodeId },
    Few(&'a [NodeId]),
    List(&'a Rope),
}

impl Children {
    pub(crate) fn from_list(ids: &[NodeId]) -> Self {
        match ids {
            [] => Self::None,
            _ if ids.len() <= FEW => Self::Few(ThinArc::from_header_and_slice((), ids)),
            _ => Self::List(Rope::new(ids.iter().copied())),
        }
    }

    #[inline]
    pub(crate) fn listing(&self) -> Listing<'_> {
        match self {
            Self::None => Listing::None,
            Self::Run { count, first } => Listing::Run {
                count: *count,
                first: *first,
            },
            Self::Few(ids) => Listing::Few(&ids.slice),
            Self::List(rope) => Listing::List(rope),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.listing().len()
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<NodeId> {
        self.listing().get(at)
    }

    /// Inserts an id before the one at a position, or at the end.
    #[inline]
    pub(crate) fn insert(&mut self, at: usize, id: NodeId) {
        match self {
            Self::None => {
                *self = Self::Run {
                    count: 1,
                    first: id,
                };
            }
            Self::Run { count, first }
                if at == *count as usize
                    && first.get() + u64::from(*count) == id.get()
                    && *count < u32::MAX =>
            {
                *count += 1;
            }
            Self::List(rope) => rope.insert(at, id),
            _ => {
                let listing = self.listing();
                let with = (0..listing.len() + 1).map(|place| match place.cmp(&at) {
                    Ordering::Less => listing.at(place),
                    Ordering::Equal => id,
                    Ordering::Greater => listing.at(place - 1),
                });
                *self = match listing.len() < FEW {
                    true => Self::Few(ThinArc::from_header_and_iter((), with)),
                    false => Self::List(Rope::new(with)),
                };
            }
        }
    }

    /// Removes the id at a position, which must exist.
    pub(crate) fn remove(&mut self, at: usize) {
        match self {
            Self::Run { count: 1, .. } => *self = Self::None,
            Self::Run { count, first } if at == 0 => {
                *count -= 1;
                *first = NodeId::at(first.get() + 1);
            }
            Self::Run { count, .. } if at + 1 == *count as usize => *count -= 1,
            Self::List(rope) => {
                rope.remove(at);
                if rope.len() <= FEW / 2 {
                    *self = Self::from_list(&rope.iter(0..FEW).collect::<Vec<_>>());
                }
            }
            _ => {
                let others = (0..self.len()).filter(|other| *other != at);
                let others: Vec<_> = others.filter_map(|at| self.get(at)).collect();
                *self = Self::from_list(&others);
            }
        }
    }
}

impl<'a> Listing<'a> {
    /// A run, which may be empty.
    #[inline]
    pub(crate) fn run(count: u32, first: u64) -> Self {
        match NodeId::new(first) {
            Some(first) if count > 0 => Self::Run { count, first },
            _ => Self::None,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Run { count, .. } => count as usize,
            Self::Few(ids) => ids.len(),
            Self::List(rope) => rope.len(),
        }
    }

    /// The first id of a list that is one block; otherwise zero.
    pub(crate) fn first_listed(self) -> u64 {
        match self {
            Self::Few(ids) => ids.first().map_or(0, |id| id.get()),
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn get(self, at: usize) -> Option<NodeId> {
        match self {
            Self::None => None,
            Self::Run { count, first } => {
                (at < count as usize).then(|| NodeId::at(first.get() + at as u64))
            }
            Self::Few(ids) => ids.get(at).copied(),
            Self::List(rope) => rope.get(at),
        }
    }

    /// The id at a position, which must exist.
    #[inline]
    fn at(self, at: usize) -> NodeId {
        self.get(at).expect("the position is in the list")
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = NodeId> + use<'a> {
        (0..self.len()).filter_map(move |at| self.get(at))
    }
}

impl PartialEq for Listing<'_> {
    fn eq(&self, other: &Self) -> bool {
        if let (Self::List(a), Self::List(b)) = (self, other)
            && a.is(b)
        {
            return true;
        }
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_and_lists_are_one_sequence(
            steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 0..60)
        ) {
            let (mut children, mut model) = (Children::default(), Vec::new());
            for (number, (step, at)) in (1..).map(NodeId::at).zip(steps) {
                let at = match step {
                    0 | 1 => model.len(),
                    2 => at.index(model.len() + 1),
                    _ if model.is_empty() => continue,
                    _ => at.index(model.len()),
                };
                if step == 3 {
                    children.remove(at);
                    model.remove(at);
                } else {
                    children.insert(at, number);
                    model.insert(at, number);
                }
                let all: Vec<_> = (0..children.len()).filter_map(|at| children.get(at)).collect();
                prop_assert_eq!(&all, &model);
                prop_assert_eq!(children.len(), model.len());
            }
        }
    }
}
