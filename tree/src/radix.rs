//! The map from ids to records behind every version: a radix tree of leaves with sixteen slots, under branches
//! with eight parts. Wider leaves and branches would make look-ups shorter and copies longer.
//!
//! - A clone shares everything. A block with one owner is changed in place; a shared block is copied first.
//! - A leaf without records and a branch without leaves do not exist.
//! - The last leaf, where new ids go, is beside the tree and not in it: adding nodes one after another, each in
//!   a version of its own, copies no path to it. (Clojure's vectors have such a tail.)
//! - The map is at most twenty levels high, so recursion over it is safe however deep a document is.

use weald_memory::{Either, Shared, SharedEither};

use crate::attributes::Attributes;
use crate::children::Children;
use crate::id::{LEAF_BITS, NodeId};
use crate::leaf::{Leaf, slot_of};
use crate::record::{Links, Place, Record};

/// Parts of one branch.
pub(crate) const WIDTH: usize = 1 << BITS;
pub(crate) const BITS: u32 = 3;

/// A persistent map from ids to records.
#[derive(Clone)]
pub(crate) struct Radix {
    top: Branch,
    /// Branches between the top and a leaf.
    height: u32,
    tail: Tail,
}

/// The leaf of the highest number, or its empty place; all leaves in the tree have lower numbers.
#[derive(Clone)]
pub(crate) struct Tail {
    pub(crate) number: u64,
    pub(crate) leaf: Branch,
}

/// One place in the map, and everything below it, in one word.
#[derive(Clone)]
pub(crate) struct Branch(SharedEither<Inner, Leaf>);

/// The parts below a branch.
pub(crate) struct Inner(pub(crate) [Branch; WIDTH]);

/// What is at a place of the map.
pub(crate) enum Content<'a> {
    Empty,
    Inner(&'a Inner),
    Leaf(&'a Leaf),
}

impl Radix {
    pub(crate) const fn new() -> Self {
        Self {
            top: Branch::EMPTY,
            height: 0,
            tail: Tail {
                number: 0,
                leaf: Branch::EMPTY,
            },
        }
    }

    /// A map of leaves, given in the order of their numbers.
    pub(crate) fn of_leaves(leaves: impl Iterator<Item = (u64, Shared<Leaf>)>) -> Self {
        let mut level: Vec<_> = leaves
            .map(|(number, leaf)| (number, Branch::of(leaf)))
            .collect();
        let (number, leaf) = level.pop().unwrap_or((0, Branch::EMPTY));
        let mut height = 0;
        while level.last().is_some_and(|(number, _)| *number > 0) {
            level = gather(level);
            height += 1;
        }
        let top = level.pop().map_or(Branch::EMPTY, |(_, branch)| branch);
        let tail = Tail { number, leaf };
        Self { top, height, tail }
    }

    pub(crate) fn top(&self) -> (&Branch, u32) {
        (&self.top, self.height)
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// All leaves with their numbers, in rising order.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u64, &Leaf)> {
        // Branches that were not descended into yet, the next one last.
        let mut above = vec![(0, &self.top)];
        let in_tree = std::iter::from_fn(move || {
            loop {
                let (number, branch) = above.pop()?;
                match branch.content() {
                    Content::Empty => {}
                    Content::Leaf(leaf) => return Some((number, leaf)),
                    Content::Inner(below) => {
                        let first = number << BITS;
                        let parts = (0..WIDTH).rev();
                        above.extend(parts.map(|part| (first | part as u64, &below.0[part])));
                    }
                }
            }
        });
        let tail = self.tail.leaf(self.tail.number);
        in_tree.chain(tail.map(|leaf| (self.tail.number, leaf)))
    }

    /// The part of this height that holds the leaf of `id`, unless that leaf is the tail; the whole tree, if
    /// the tree is lower.
    #[inline]
    pub(crate) fn branch(&self, id: NodeId, height: u32) -> Option<&Branch> {
        let number = id.get() >> LEAF_BITS;
        if !fits(number, self.height) {
            return None;
        }
        let mut branch = &self.top;
        for height in (height..self.height).rev() {
            match branch.content() {
                Content::Inner(below) => branch = &below.0[digit(number, height)],
                _ => return None,
            }
        }
        Some(branch)
    }

    /// The leaves in the same lowest branch as the leaf of `id`, and the number of the first of them.
    #[inline]
    pub(crate) fn beside(&self, id: NodeId) -> (u64, &[Branch]) {
        let number = id.get() >> LEAF_BITS;
        if number == self.tail.number {
            return (number, std::slice::from_ref(&self.tail.leaf));
        }
        // A tree of one leaf has no branch, and its only number is zero.
        let first = number & !(WIDTH as u64 - 1);
        let Some(branch) = self.branch(id, 1) else {
            return (first, &[]);
        };
        match branch.content() {
            Content::Inner(leaves) => (first, &leaves.0[..]),
            _ => (first, std::slice::from_ref(branch)),
        }
    }

    /// The leaf that has the slot of `id`.
    #[inline]
    pub(crate) fn leaf(&self, id: NodeId) -> Option<&Leaf> {
        let number = id.get() >> LEAF_BITS;
        if !fits(number, self.height) || number == self.tail.number {
            return self.tail.leaf(number);
        }
        let mut branch = &self.top;
        let mut height = self.height;
        loop {
            match branch.content() {
                Content::Leaf(leaf) => return Some(leaf),
                Content::Empty => return None,
                Content::Inner(below) => {
                    height -= 1;
                    branch = &below.0[digit(number, height)];
                }
            }
        }
    }

    #[inline]
    pub(crate) fn links(&self, id: NodeId) -> Option<&Links> {
        self.leaf(id)?.links(slot_of(id))
    }

    /// Changes the place and the children of an id, which must exist; copies shared blocks first.
    #[inline]
    pub(crate) fn change_links<R>(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut Place, &mut Children) -> R,
    ) -> R {
        self.own_leaf(id).change_links(id, change)
    }

    /// Adds children with consecutive ids to an id, which must exist; copies shared blocks first.
    #[inline]
    pub(crate) fn adopt(&mut self, parent: NodeId, at: usize, run: (NodeId, u32)) {
        self.own_leaf(parent).adopt(parent, at, run);
    }

    /// Changes the attributes of an id, which must exist; copies shared blocks first.
    #[inline]
    pub(crate) fn change_attributes<R>(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut Attributes) -> R,
    ) -> R {
        self.own_leaf(id).change_attributes(id, change)
    }

    /// Adds a record, or replaces the one that is there.
    #[inline]
    pub(crate) fn insert(&mut self, id: NodeId, record: Record) {
        self.own_leaf(id).insert(id, record);
    }

    /// Removes the record from the map, and the leaf and branches that become empty. Returns the links.
    pub(crate) fn remove(&mut self, id: NodeId) -> Option<Links> {
        self.links(id)?;
        if id.get() >> LEAF_BITS == self.tail.number {
            return take_out(&mut self.tail.leaf, id, 0);
        }
        take_out(&mut self.top, id, self.height)
    }

    /// Puts a whole leaf at the place `number`, over what may be there.
    pub(crate) fn insert_leaf(&mut self, number: u64, leaf: Shared<Leaf>) {
        *self.place(number) = Branch::of(leaf);
    }

    /// The leaf of an id, created if there is none. The leaf and the branches on the path to it become owned.
    #[inline]
    fn own_leaf(&mut self, id: NodeId) -> &mut Leaf {
        let number = id.get() >> LEAF_BITS;
        // Most records are added where the last one was.
        let place = match number == self.tail.number && !self.tail.leaf.is_empty() {
            true => &mut self.tail.leaf,
            false => self.place_with_leaf(number),
        };
        match place.0.own() {
            Some(Either::Second(leaf)) => leaf,
            _ => unreachable!("leaves are at height zero"),
        }
    }

    /// The place of a leaf, which is created if there is none.
    #[inline(never)]
    fn place_with_leaf(&mut self, number: u64) -> &mut Branch {
        let place = self.place(number);
        if place.is_empty() {
            *place = Branch::of(Shared::new(Leaf::new(number)));
        }
        place
    }

    /// The place of a leaf. The path to it is created and owned.
    #[inline]
    fn place(&mut self, number: u64) -> &mut Branch {
        if number < self.tail.number {
            return self.place_in_tree(number);
        }
        if number > self.tail.number {
            self.begin_tail(number);
        }
        &mut self.tail.leaf
    }

    /// Moves the tail into the tree and starts a new one.
    #[cold]
    fn begin_tail(&mut self, number: u64) {
        let leaf = Branch::EMPTY;
        let full = std::mem::replace(&mut self.tail, Tail { number, leaf });
        if !full.leaf.is_empty() {
            *self.place_in_tree(full.number) = full.leaf;
        }
    }

    #[inline]
    fn place_in_tree(&mut self, number: u64) -> &mut Branch {
        while !fits(number, self.height) {
            let top = std::mem::replace(&mut self.top, Branch::EMPTY);
            if !top.is_empty() {
                self.top = Branch::over(top);
            }
            self.height += 1;
        }
        let mut place = &mut self.top;
        for height in (0..self.height).rev() {
            if place.is_empty() {
                *place = Branch::over(Branch::EMPTY);
            }
            place = match place.0.own() {
                Some(Either::First(below)) => &mut below.0[digit(number, height)],
                _ => unreachable!("only branches are above height zero"),
            };
        }
        place
    }
}

impl Tail {
    /// The leaf, if it has this number.
    #[inline]
    pub(crate) fn leaf(&self, number: u64) -> Option<&Leaf> {
        match self.leaf.content() {
            Content::Leaf(leaf) if self.number == number => Some(leaf),
            _ => None,
        }
    }
}

impl Branch {
    pub(crate) const EMPTY: Self = Self(SharedEither::EMPTY);
    const NONE: [Self; WIDTH] = [Self::EMPTY; WIDTH];

    fn of(leaf: Shared<Leaf>) -> Self {
        Self(SharedEither::second(leaf))
    }

    fn inner(below: [Self; WIDTH]) -> Self {
        Self(SharedEither::first(Shared::new(Inner(below))))
    }

    /// A branch whose first part is `first`.
    fn over(first: Self) -> Self {
        let mut below = Self::NONE;
        below[0] = first;
        Self::inner(below)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both are the same part in memory, or both are empty.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }

    #[inline]
    pub(crate) fn content(&self) -> Content<'_> {
        match self.0.get() {
            None => Content::Empty,
            Some(Either::First(below)) => Content::Inner(below),
            Some(Either::Second(leaf)) => Content::Leaf(leaf),
        }
    }
}

impl Clone for Inner {
    #[inline]
    fn clone(&self) -> Self {
        Self(std::array::from_fn(|part| self.0[part].clone()))
    }
}

/// The branches above these parts, which are in the order of their numbers.
fn gather(level: Vec<(u64, Branch)>) -> Vec<(u64, Branch)> {
    let mut above: Vec<(u64, [Branch; WIDTH])> = Vec::with_capacity(level.len() / WIDTH + 2);
    for (number, part) in level {
        if above.last().is_none_or(|(last, _)| *last != number >> BITS) {
            above.push((number >> BITS, Branch::NONE));
        }
        let (_, branch) = above.last_mut().expect("one was pushed if there was none");
        branch[digit(number, 0)] = part;
    }
    let shared = |(number, below)| (number, Branch::inner(below));
    above.into_iter().map(shared).collect()
}

fn take_out(branch: &mut Branch, id: NodeId, height: u32) -> Option<Links> {
    let (links, is_empty) = match branch.0.own()? {
        Either::Second(leaf) => leaf.take_out(slot_of(id)),
        Either::First(Inner(below)) => {
            let next = &mut below[digit(id.get() >> LEAF_BITS, height - 1)];
            let links = take_out(next, id, height - 1);
            (links, next.is_empty() && below.iter().all(Branch::is_empty))
        }
    };
    if is_empty {
        *branch = Branch::EMPTY;
    }
    links
}

/// Whether a map of this height has a place for a leaf of this number.
#[inline]
pub(crate) fn fits(number: u64, height: u32) -> bool {
    number.checked_shr(BITS * height).unwrap_or(0) == 0
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked to three bits")]
fn digit(number: u64, height: u32) -> usize {
    (number >> (BITS * height)) as usize & (WIDTH - 1)
}

#[cfg(test)]
mod tests;
