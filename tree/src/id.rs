//! Node ids, and the source that gives them out.
//!
//! - A source never gives out an id twice, so concurrent edits never collide.
//! - Ids are dense: the map of a version packs neighbours together (see `radix`).
//! - An id that a tree gives out has a mark, by which an edit of another tree recognizes it. The mark is no part of its
//!   number: ids are equal if their numbers are. What is stored inside a version has none.

use std::cmp::Ordering as Order;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use weald_memory::Shared;

/// How many ids share one leaf of the map. The first leaf has those from 1 on: 0 is no id, so it has no slot.
pub(crate) const LEAF: u64 = 1 << LEAF_BITS;
pub(crate) const LEAF_BITS: u32 = 4;

/// The address of a node: the same in every version, until the node is deleted.
///
/// While a program runs, an id also remembers the tree that gave it out, and an edit of another tree refuses it. An id
/// that is made of a number alone is taken for one of any tree, and so is one of a subtree that is not yet in a tree.
/// What it remembers has 14 bits, so an id of another tree is not always recognized; and trees of two forests are told
/// apart only if they have different numbers.
///
/// It is printed as `#2`, and read from that or from the number:
///
/// ```
/// use weald::tree::NodeId;
///
/// let id: NodeId = "#2".parse()?;
/// assert_eq!(Some(id), NodeId::new(2));
/// assert_eq!(id.to_string(), "#2");
/// assert_eq!("2".parse(), Ok(id));
/// assert!("#0".parse::<NodeId>().is_err());
/// # Ok::<(), weald::tree::NotANodeId>(())
/// ```
///
/// The word holds the number. If the highest bit is set, the next is the kind of the mark, 14 bits are the mark, and 48
/// are the number.
#[derive(Clone, Copy)]
pub struct NodeId(NonZeroU64);

const IS_MARKED: u64 = 1 << 63;
const KIND: u64 = 1 << 62;
const NUMBER: u64 = (1 << 48) - 1;

/// What tells the ids of one tree from those of others: the upper bits of an id, or nothing. Two trees may have the
/// same mark; then an id of the other one is not recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    pub(crate) const NONE: Self = Self(0);

    /// That of the source with this number among those of the program.
    fn of_source(number: u64) -> Self {
        Self(IS_MARKED | (number << 48 & !KIND & !IS_MARKED))
    }

    /// That of a tree with this number, which is the same wherever it was read from.
    pub(crate) fn of_tree(number: u64) -> Self {
        Self(KIND | Self::of_source(number).0)
    }
}

impl NodeId {
    /// The id with this number, unless it is zero, or 2⁶³ or more, which no source gives out.
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(word) if number < IS_MARKED => Some(Self(word)),
            _ => None,
        }
    }

    /// The number, as it may be stored or sent.
    #[inline]
    pub const fn get(self) -> u64 {
        let word = self.0.get();
        if word < IS_MARKED {
            word
        } else {
            word & NUMBER
        }
    }

    /// The id that is `more` after this one.
    pub(crate) const fn plus(self, more: u64) -> Self {
        Self(self.0.saturating_add(more))
    }

    /// The id with this number, which is at or after a first id and so is not zero.
    pub(crate) fn at(number: u64) -> Self {
        Self::new(number).expect("a source begins at 1")
    }

    /// The number of the leaf of the map in which the id has its record.
    #[inline]
    pub(crate) const fn leaf(self) -> u64 {
        (self.get() - 1) >> LEAF_BITS
    }

    /// The slot of that leaf.
    #[inline]
    pub(crate) const fn slot(self) -> usize {
        ((self.get() - 1) & (LEAF - 1)) as usize
    }

    /// The id with a slot in a leaf.
    #[inline]
    pub(crate) fn in_leaf(number: u64, slot: usize) -> Self {
        Self::at(number * LEAF + 1 + slot as u64)
    }

    /// The same id without a mark, as versions and operations hold it.
    #[inline]
    pub(crate) fn plain(self) -> Self {
        // The number of a marked id is that of an id without a mark, so it is not zero.
        NonZeroU64::new(self.get()).map_or(self, Self)
    }

    /// The same id with this mark, if its number leaves room for one.
    #[inline]
    pub(crate) fn marked(self, mark: Mark) -> Self {
        let number = self.get();
        match NonZeroU64::new(number | mark.0) {
            Some(word) if number <= NUMBER => Self(word),
            _ => self,
        }
    }

    #[inline]
    pub(crate) fn mark(self) -> Mark {
        match self.0.get() {
            word if word < IS_MARKED => Mark::NONE,
            word => Mark(word & !NUMBER),
        }
    }

    /// Whether the marks show that two ids are of different trees. Marks of two kinds may be of one tree, which was
    /// read from a journal while it is also open.
    #[inline]
    pub(crate) fn is_of_another_tree(self, other: Self) -> bool {
        let (one, two) = (self.0.get(), other.0.get());
        one & two & IS_MARKED != 0 && (one ^ two) & KIND == 0 && (one ^ two) & !NUMBER != 0
    }
}

impl PartialEq for NodeId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for NodeId {}

impl PartialOrd for NodeId {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeId {
    #[inline]
    fn cmp(&self, other: &Self) -> Order {
        self.get().cmp(&other.get())
    }
}

impl Hash for NodeId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.get())
    }
}

/// Why a text does not name a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of a node; an id is a number from 1 on, with or without a `#` before it")]
pub struct NotANodeId(String);

impl FromStr for NodeId {
    type Err = NotANodeId;

    /// Reads what [`Display`](fmt::Display) prints, with the sign or without it, and nothing else.
    fn from_str(text: &str) -> Result<Self, NotANodeId> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let id = digits.parse().ok().and_then(Self::new);
        id.filter(|id| id.get().to_string() == digits)
            .ok_or_else(|| NotANodeId(text.to_owned()))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The end of the ids that an operation or a list of records from elsewhere may bring. A source that has passed them
/// all still has more ids below [`OWN_END`] than any program lives to take.
pub(crate) const FOREIGN_END: u64 = 1 << 61;

/// The end of the ids that a source gives out, and so of those that a record may hold. A source that has come so far
/// gives out no more: an id that a record may not hold is in no commit.
pub(crate) const OWN_END: u64 = 1 << 62;

/// The id source of one tree, shared by all its versions, edits and builders.
///
/// Any thread may take from it. Relaxed ordering is enough: the counter alone guarantees that a number is
/// given out once, and what is stored under an id is published with the version.
#[derive(Clone)]
pub struct Ids(Shared<Source>);

struct Source {
    next: AtomicU64,
    mark: Mark,
}

/// Nobody lives to take them all; somebody has said that the last ones were taken.
const NONE_LEFT: &str = "all ids of the tree were given out";

/// How many sources for new trees there were.
static SOURCES: AtomicU64 = AtomicU64::new(0);

impl Ids {
    /// A source for a new tree.
    pub fn new() -> Self {
        Self::of(0, Mark::of_source(SOURCES.fetch_add(1, Ordering::Relaxed)))
    }

    /// A source that continues after `last`, for a tree whose ids up to `last` are taken. It is not known which tree
    /// that was, so edits take ids of it for those of any tree.
    ///
    /// # Panics
    /// If `last` is 2⁶² or more, which no source has given out.
    pub fn above(last: u64) -> Self {
        assert!(last < OWN_END, "no source has given out 2⁶² ids");
        Self::of(last, Mark::NONE)
    }

    fn of(last: u64, mark: Mark) -> Self {
        let next = AtomicU64::new(last + 1);
        Self(Shared::new(Source { next, mark }))
    }

    /// The mark of the ids that it gives out.
    pub(crate) fn mark(&self) -> Mark {
        self.0.mark
    }

    /// The number of the last id that was taken or passed; 0, if none was. A source [`above`](Self::above) it gives out
    /// no id again. Other threads may have taken more when this returns.
    pub fn last(&self) -> u64 {
        self.0.next.load(Ordering::Relaxed).min(OWN_END) - 1
    }

    /// Gives out none of the next `more` ids, because an earlier source may have given them out already. If fewer are
    /// left, it gives out none at all.
    pub fn skip(&self, more: u64) {
        let after = |next: u64| Some(next.saturating_add(more).min(OWN_END));
        let skipped = self
            .0
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        debug_assert!(skipped.is_ok(), "the update always has a value");
    }

    /// Takes an id, which no other call returns.
    ///
    /// # Panics
    /// If 2⁶² were given out, passed or skipped.
    pub fn take(&self) -> NodeId {
        self.try_take().expect(NONE_LEFT)
    }

    /// The same; `None`, if none is left.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<NodeId> {
        let taken = self.0.next.fetch_add(1, Ordering::Relaxed);
        if taken < OWN_END {
            return Some(NodeId::at(taken));
        }
        // Other threads may find it beyond the end for a moment; they get none either.
        self.0.next.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Never gives out `id`, which came from a journal or another machine and is below [`OWN_END`].
    pub(crate) fn pass(&self, id: NodeId) {
        if self.0.next.load(Ordering::Relaxed) <= id.get() {
            let next = id.get() + 1;
            self.0.next.fetch_max(next, Ordering::Relaxed);
        }
    }

    /// Whether both are the same source.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Shared::is(&self.0, &other.0)
    }

    /// Takes all ids that are left in the map leaf of the next id: at least one.
    pub(crate) fn take_leaf(&self) -> Range<u64> {
        // The last leaf may reach beyond the end.
        let end = |next: u64| (((next - 1) / LEAF + 1) * LEAF + 1).min(OWN_END);
        let update = |next| (next < OWN_END).then(|| end(next));
        let first = self
            .0
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        let first = first.expect(NONE_LEFT);
        first..end(first)
    }

    /// Takes back the rest of a leaf, unless an id was taken since; then a hole stays.
    pub(crate) fn give_back(&self, rest: Range<u64>) {
        let (end, start) = (rest.end, rest.start);
        let _ = self
            .0
            .next
            .compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ids {{ last: {} }}", self.last())
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
        assert_eq!(block, 2..LEAF + 1);
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
