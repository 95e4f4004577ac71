//! A leaf of the map that is beside the tree of branches and not in it. See `radix`.

use crate::branch::{Branch, Content};
use crate::leaf::Leaf;

/// A leaf, or the empty place of one, with its number.
#[derive(Clone, Copy)]
pub(crate) struct Loose<'a> {
    pub(crate) number: u64,
    pub(crate) leaf: &'a Branch,
}

impl<'a> Loose<'a> {
    /// The leaf, if it has this number.
    #[inline]
    pub(crate) fn leaf(self, number: u64) -> Option<&'a Leaf> {
        match self.leaf.content() {
            Content::Leaf(leaf) if self.number == number => Some(leaf),
            _ => None,
        }
    }
}
