//! Node ids, and the source that gives them out.
//!
//! - A source never gives out an id twice, so concurrent edits never collide.
//! - Ids are dense: the map of a version packs neighbours together (see `radix`).

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many ids share one leaf of the map: those that differ only in the lowest [`LEAF_BITS`] bits.
pub(crate) const LEAF: u64 = 1 << LEAF_BITS;
pub(crate) const LEAF_BITS: u32 = 4;

/// The address of a node: the same in every version, until the node is deleted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU64);

impl NodeId {
    /// The id with this number, unless it is zero.
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number, as it may be stored or sent.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The id that is `more` after this one.
    pub(crate) const fn plus(self, more: u64) -> Self {
        Self(self.0.saturating_add(more))
    }

    /// The id with this number, which is at or after a first id and so is not zero.
    pub(crate) fn at(number: u64) -> Self {
        Self::new(number).expect("a source begins at 1")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The end of the ids that an operation from elsewhere may bring. A source that has passed them all still has more
/// ids below [`OWN_END`] than any program lives to take.
pub(crate) const FOREIGN_END: u64 = 1 << 61;

/// The end of the ids that a source gives out, and so of those that a record may hold.
pub(crate) const OWN_END: u64 = 1 << 62;

/// The id source of one tree, shared by all its versions, edits and builders.
///
/// Any thread may take from it. Relaxed ordering is enough: the counter alone guarantees that a number is
/// given out once, and what is stored under an id is published with the version.
#[derive(Clone, Debug)]
pub struct Ids(Arc<AtomicU64>);

impl Ids {
    /// A source for a new tree.
    pub fn new() -> Self {
        Self::above(0)
    }

    /// A source that continues after `last`, for a tree whose ids up to `last` are taken.
    ///
    /// # Panics
    /// If `last` is 2⁶² or more, which no source has given out.
    pub fn above(last: u64) -> Self {
        assert!(last < OWN_END, "no source has given out 2⁶² ids");
        Self(Arc::new(AtomicU64::new(last + 1)))
    }

    /// The number of the last id that was taken or passed; 0, if none was. A source [`above`](Self::above) it gives out
    /// no id again. Other threads may have taken more when this returns.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed) - 1
    }

    /// Gives out none of the next `more` ids, because an earlier source may have given them out already. `false`, and nothing
    /// is skipped, if fewer are left.
    #[must_use]
    pub fn skip(&self, more: u64) -> bool {
        let after = |next: u64| next.checked_add(more).filter(|next| *next < OWN_END);
        let skipped = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        skipped.is_ok()
    }

    /// Takes an id, which no other call returns.
    pub fn take(&self) -> NodeId {
        NodeId::at(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// Never gives out `id`, which came from a journal or another machine and is below [`OWN_END`].
    pub(crate) fn pass(&self, id: NodeId) {
        if self.0.load(Ordering::Relaxed) <= id.get() {
            let next = id.get() + 1;
            self.0.fetch_max(next, Ordering::Relaxed);
        }
    }

    /// Whether both are the same source.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Takes all ids that are left in the map leaf of the next id: at least one.
    pub(crate) fn take_leaf(&self) -> Range<u64> {
        let end = |next: u64| (next / LEAF + 1) * LEAF;
        let update = |next| Some(end(next));
        let first = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        let first = first.expect("the update always has a value");
        first..end(first)
    }

    /// Takes back the rest of a leaf, unless an id was taken since; then a hole stays.
    pub(crate) fn give_back(&self, rest: Range<u64>) {
        let (end, start) = (rest.end, rest.start);
        let _ = self
            .0
            .compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_taken_and_given_back_leaves_no_hole() {
        let ids = Ids::new();
        assert_eq!(ids.take().get(), 1);
        let block = ids.take_leaf();
        assert_eq!(block, 2..LEAF);
        ids.give_back(5..block.end);
        assert_eq!(ids.take().get(), 5);
    }

    #[test]
    fn what_others_took_meanwhile_is_not_given_out_again() {
        let ids = Ids::new();
        let block = ids.take_leaf();
        let other = ids.take();
        ids.give_back(2..block.end);
        assert!(ids.take() > other);
    }
}
