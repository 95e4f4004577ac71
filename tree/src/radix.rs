//! The map from ids to records behind every version: a radix tree of leaves with sixteen slots, under branches
//! with eight parts. Wider leaves and branches would make look-ups shorter and copies longer.
//!
//! - A clone shares everything. A block with one owner is changed in place; a shared block is copied first.
//! - The last leaf, where new ids go, is beside the tree and not in it: adding nodes one after another, each in
//!   a version of its own, copies no path to it. (Clojure's vectors have such a tail.)
//! - So is a leaf that was changed in two versions in a row, until another one is changed: the focus. Nodes that are
//!   appended to one parent in turn, each in a version of its own, copy a path twice. (RRB vectors have one for the
//!   same reason.) Changes within one version own their path already, so that they need no focus.
//! - A leaf without records does not exist, nor a branch without leaves, unless the focus was its only one.
//! - The map is at most twenty levels high, so recursion over it is safe however deep a document is.

use weald_memory::{Either, Shared};

use crate::attributes::Attributes;
use crate::branch::{BITS, Branch, Content, Inner, WIDTH, digit, fits, gather};
use crate::children::Children;
use crate::id::NodeId;
use crate::leaf::Leaf;
use crate::loose::Loose;
use crate::record::{Links, Place, Record};

/// A persistent map from ids to records.
#[derive(Clone)]
pub(crate) struct Radix {
    top: Branch,
    /// Branches between the top and a leaf.
    height: u32,
    /// The number of the leaf before the tail that `place` was asked for last, if it is small enough; with `FRESH`, if
    /// it is in the tree and this version was the first that asked for it.
    focus_number: u32,
    /// That leaf, if it was changed in two versions in a row; otherwise it is in the tree.
    focus: Branch,
    /// The leaf of the highest number, or its empty place; all others have lower numbers.
    tail: Branch,
    tail_number: u64,
}

/// A number that no leaf in focus has.
const NO_FOCUS: u32 = !FRESH;
/// Tells that a leaf was changed by this version and not by the one before it.
const FRESH: u32 = 1 << 31;

impl Radix {
    pub(crate) const fn new() -> Self {
        Self {
            top: Branch::EMPTY,
            height: 0,
            focus_number: NO_FOCUS,
            focus: Branch::EMPTY,
            tail: Branch::EMPTY,
            tail_number: 0,
        }
    }

    /// A map of leaves, given in the order of their numbers.
    pub(crate) fn of_leaves(leaves: impl Iterator<Item = (u64, Shared<Leaf>)>) -> Self {
        let mut level: Vec<_> = leaves
            .map(|(number, leaf)| (number, Branch::of(leaf)))
            .collect();
        let (tail_number, tail) = level.pop().unwrap_or((0, Branch::EMPTY));
        let mut height = 0;
        while level.last().is_some_and(|(number, _)| *number > 0) {
            level = gather(level);
            height += 1;
        }
        let top = level.pop().map_or(Branch::EMPTY, |(_, branch)| branch);
        Self {
            top,
            height,
            tail,
            tail_number,
            ..Self::new()
        }
    }

    /// All changes from now on are for another version than those before.
    #[inline]
    pub(crate) fn begin_version(&mut self) {
        self.focus_number &= !FRESH;
    }

    pub(crate) fn top(&self) -> (&Branch, u32) {
        (&self.top, self.height)
    }

    /// The leaves that are not in the tree, or their empty places.
    pub(crate) fn loose_leaves(&self) -> [Loose<'_>; 2] {
        [self.tail(), self.focus()]
    }

    #[inline]
    fn tail(&self) -> Loose<'_> {
        Loose {
            number: self.tail_number,
            leaf: &self.tail,
        }
    }

    #[inline]
    fn focus(&self) -> Loose<'_> {
        Loose {
            number: u64::from(self.focus_number),
            leaf: &self.focus,
        }
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
        let [tail, mut focus] = self.loose_leaves().map(|loose| {
            let leaf = loose.leaf(loose.number)?;
            Some((loose.number, leaf))
        });
        let mut in_tree = in_tree.peekable();
        let before_tail = std::iter::from_fn(move || match (in_tree.peek(), &focus) {
            (Some((next, _)), Some((number, _))) if next < number => in_tree.next(),
            (_, Some(_)) => focus.take(),
            (_, None) => in_tree.next(),
        });
        before_tail.chain(tail)
    }

    /// The part of this height that holds the leaf of `id`, unless that leaf is beside the tree; the whole tree, if
    /// the tree is lower.
    #[inline]
    pub(crate) fn branch(&self, id: NodeId, height: u32) -> Option<&Branch> {
        let number = id.leaf();
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
        let number = id.leaf();
        if number == self.tail_number {
            return (number, std::slice::from_ref(&self.tail));
        }
        if self.is_in_focus(number) {
            return (number, std::slice::from_ref(&self.focus));
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
        let number = id.leaf();
        if !fits(number, self.height) || number == self.tail_number {
            return self.tail().leaf(number);
        }
        if let Some(leaf) = self.focus().leaf(number) {
            return Some(leaf);
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
        self.leaf(id)?.links(id.slot())
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
        if id.leaf() == self.tail_number {
            return take_out(&mut self.tail, id, 0);
        }
        if self.is_in_focus(id.leaf()) {
            self.leave_focus();
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
        let number = id.leaf();
        // Most records are added where the last one was.
        let place = match number == self.tail_number && !self.tail.is_empty() {
            true => &mut self.tail,
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
        if number >= self.tail_number {
            if number > self.tail_number {
                self.begin_tail(number);
            }
            return &mut self.tail;
        }
        let short = u32::try_from(number.min(u64::from(NO_FOCUS))).unwrap_or(NO_FOCUS);
        if short != self.focus_number || short == NO_FOCUS || self.height == 0 {
            self.leave_focus();
            self.focus_number = short | FRESH;
            return self.place_in_tree(number);
        }
        if self.focus.is_empty() {
            let place = self.place_in_tree(number);
            self.focus = std::mem::replace(place, Branch::EMPTY);
        }
        &mut self.focus
    }

    #[inline]
    fn is_in_focus(&self, number: u64) -> bool {
        number == u64::from(self.focus_number) && !self.focus.is_empty()
    }

    /// Puts the leaf that was changed again and again into the tree.
    #[inline]
    fn leave_focus(&mut self) {
        let leaf = std::mem::replace(&mut self.focus, Branch::EMPTY);
        if !leaf.is_empty() {
            *self.place_in_tree(u64::from(self.focus_number)) = leaf;
        }
    }

    /// Moves the tail into the tree and starts a new one.
    #[cold]
    fn begin_tail(&mut self, number: u64) {
        let full = std::mem::replace(&mut self.tail, Branch::EMPTY);
        let before = std::mem::replace(&mut self.tail_number, number);
        if !full.is_empty() {
            *self.place_in_tree(before) = full;
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

fn take_out(branch: &mut Branch, id: NodeId, height: u32) -> Option<Links> {
    let (links, is_empty) = match branch.0.own()? {
        Either::Second(leaf) => leaf.take_out(id.slot()),
        Either::First(Inner(below)) => {
            let next = &mut below[digit(id.leaf(), height - 1)];
            let links = take_out(next, id, height - 1);
            (links, next.is_empty() && below.iter().all(Branch::is_empty))
        }
    };
    if is_empty {
        *branch = Branch::EMPTY;
    }
    links
}

#[cfg(test)]
mod tests;
