//! The map from ids to records behind every version: a radix tree of leaves with sixteen slots, under branches
//! with eight parts. Wider leaves and branches would make look-ups shorter and copies longer.
//!
//! - A clone shares everything. A block with one owner is changed in place; a shared block is copied first.
//! - A leaf without records and a branch without leaves do not exist.
//! - The last leaf, where new ids go, is beside the tree and not in it: adding nodes one after another, each in
//!   a version of its own, copies no path to it. (Clojure's vectors have such a tail.)
//! - One word per leaf holds what a walk needs to know of every record (see `shape`), so a walk looks at few
//!   records. [`Radix::change`] keeps that word up to date.
//! - The map is at most twenty levels high, so recursion over it is safe however deep a document is.

use triomphe::{Arc, UniqueArc};

use crate::id::{LEAF_BITS, NodeId};
use crate::shape::{Family, Shape};

/// Slots in one leaf: one for each of its ids.
pub(crate) const SLOTS: usize = 1 << LEAF_BITS;
/// Parts of one branch.
pub(crate) const WIDTH: usize = 1 << BITS;
pub(crate) const BITS: u32 = 3;

/// What the map holds.
pub(crate) trait Entry: Clone {
    /// What is below it, if this is its id.
    fn family(&self, id: NodeId) -> Family;
}

/// A persistent map from ids to `T`.
#[derive(Clone)]
pub(crate) struct Radix<T> {
    top: Branch<T>,
    /// Branches between the top and a leaf.
    height: u32,
    tail: Tail<T>,
}

/// The leaf of the highest number, or its empty place; all leaves in the tree have lower numbers.
#[derive(Clone)]
pub(crate) struct Tail<T> {
    pub(crate) number: u64,
    pub(crate) leaf: Branch<T>,
}

/// One place in the map, and everything below it.
#[derive(Clone)]
pub(crate) enum Branch<T> {
    Empty,
    Inner(Arc<[Self; WIDTH]>),
    Leaf(Leaf<T>),
}

/// The slots of sixteen consecutive ids.
pub(crate) type Slots<T> = [Option<T>; SLOTS];

/// The records of sixteen ids, and what is below each.
#[derive(Clone)]
pub(crate) struct Leaf<T> {
    pub(crate) slots: Arc<Slots<T>>,
    pub(crate) shape: Shape,
}

impl<T> Radix<T> {
    pub(crate) const fn new() -> Self {
        Self {
            top: Branch::Empty,
            height: 0,
            tail: Tail {
                number: 0,
                leaf: Branch::Empty,
            },
        }
    }

    /// A map of leaves, given in the order of their numbers.
    pub(crate) fn of_leaves(leaves: impl Iterator<Item = (u64, Leaf<T>)>) -> Self {
        let mut level: Vec<_> = leaves
            .map(|(number, leaf)| (number, Branch::Leaf(leaf)))
            .collect();
        let tail = level.pop().unwrap_or((0, Branch::Empty));
        let mut height = 0;
        while level.last().is_some_and(|(number, _)| *number > 0) {
            level = gather(level);
            height += 1;
        }
        let top = level.pop().map_or(Branch::Empty, |(_, branch)| branch);
        let (number, leaf) = tail;
        let tail = Tail { number, leaf };
        Self { top, height, tail }
    }

    pub(crate) fn top(&self) -> (&Branch<T>, u32) {
        (&self.top, self.height)
    }

    pub(crate) fn tail(&self) -> &Tail<T> {
        &self.tail
    }

    /// All leaves with their numbers, in rising order.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u64, &Leaf<T>)> {
        // Branches that were not descended into yet, the next one last.
        let mut above = vec![(0, &self.top)];
        let in_tree = std::iter::from_fn(move || {
            loop {
                match above.pop()? {
                    (_, Branch::Empty) => {}
                    (number, Branch::Leaf(leaf)) => return Some((number, leaf)),
                    (number, Branch::Inner(below)) => {
                        let first = number << BITS;
                        let parts = (0..WIDTH).rev();
                        above.extend(parts.map(|part| (first | part as u64, &below[part])));
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
    pub(crate) fn branch(&self, id: NodeId, height: u32) -> Option<&Branch<T>> {
        let number = id.get() >> LEAF_BITS;
        if !fits(number, self.height) {
            return None;
        }
        let mut branch = &self.top;
        for height in (height..self.height).rev() {
            match branch {
                Branch::Inner(below) => branch = &below[digit(number, height)],
                _ => return None,
            }
        }
        Some(branch)
    }

    /// The leaves in the same lowest branch as the leaf of `id`, and the number of the first of them.
    #[inline]
    pub(crate) fn beside(&self, id: NodeId) -> (u64, &[Branch<T>]) {
        let number = id.get() >> LEAF_BITS;
        if number == self.tail.number {
            return (number, std::slice::from_ref(&self.tail.leaf));
        }
        // A tree of one leaf has no branch, and its only number is zero.
        let first = number & !(WIDTH as u64 - 1);
        match self.branch(id, 1) {
            Some(Branch::Inner(leaves)) => (first, &leaves[..]),
            Some(only) => (first, std::slice::from_ref(only)),
            None => (first, &[]),
        }
    }

    /// The leaf that has the slot of `id`.
    #[inline]
    pub(crate) fn leaf(&self, id: NodeId) -> Option<&Leaf<T>> {
        let number = id.get() >> LEAF_BITS;
        if !fits(number, self.height) || number == self.tail.number {
            return self.tail.leaf(number);
        }
        let mut branch = &self.top;
        let mut height = self.height;
        loop {
            match branch {
                Branch::Leaf(leaf) => return Some(leaf),
                Branch::Empty => return None,
                Branch::Inner(below) => {
                    height -= 1;
                    branch = &below[digit(number, height)];
                }
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: NodeId) -> Option<&T> {
        self.leaf(id)?.slots[slot_of(id)].as_ref()
    }
}

impl<T: Entry> Radix<T> {
    /// Changes the record of an id, which must exist; copies shared blocks first.
    #[inline]
    pub(crate) fn change<R>(&mut self, id: NodeId, change: impl FnOnce(&mut T) -> R) -> R {
        let leaf = self.own_leaf(id);
        let slot = Arc::make_mut(&mut leaf.slots)[slot_of(id)].as_mut();
        let value = slot.expect("the caller has looked the id up");
        let result = change(value);
        leaf.shape.set(slot_of(id), value.family(id));
        result
    }

    #[inline]
    pub(crate) fn insert(&mut self, id: NodeId, value: T) {
        let leaf = self.own_leaf(id);
        leaf.shape.set(slot_of(id), value.family(id));
        Arc::make_mut(&mut leaf.slots)[slot_of(id)] = Some(value);
    }

    /// Removes the record from the map, and the leaf and branches that become empty.
    pub(crate) fn remove(&mut self, id: NodeId) -> Option<T> {
        self.get(id)?;
        if id.get() >> LEAF_BITS == self.tail.number {
            return take_out(&mut self.tail.leaf, id, 0);
        }
        take_out(&mut self.top, id, self.height)
    }

    /// Puts a whole leaf at the place `number`, over what may be there.
    pub(crate) fn insert_leaf(&mut self, number: u64, leaf: Leaf<T>) {
        *self.place(number) = Branch::Leaf(leaf);
    }

    /// The leaf of an id, created if there is none. The branches on the path to it become owned.
    #[inline]
    fn own_leaf(&mut self, id: NodeId) -> &mut Leaf<T> {
        let place = self.place(id.get() >> LEAF_BITS);
        if let Branch::Empty = place {
            *place = Branch::Leaf(Leaf {
                slots: Arc::new([const { None }; SLOTS]),
                shape: Shape::EMPTY,
            });
        }
        match place {
            Branch::Leaf(leaf) => leaf,
            _ => unreachable!("leaves are at height zero"),
        }
    }

    /// The place of a leaf. The path to it is created and owned.
    #[inline]
    fn place(&mut self, number: u64) -> &mut Branch<T> {
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
        let leaf = Branch::Empty;
        let full = std::mem::replace(&mut self.tail, Tail { number, leaf });
        if !full.leaf.is_empty() {
            *self.place_in_tree(full.number) = full.leaf;
        }
    }

    #[inline]
    fn place_in_tree(&mut self, number: u64) -> &mut Branch<T> {
        while !fits(number, self.height) {
            let top = std::mem::replace(&mut self.top, Branch::Empty);
            if !matches!(top, Branch::Empty) {
                self.top = Branch::over(top);
            }
            self.height += 1;
        }
        let mut place = &mut self.top;
        for height in (0..self.height).rev() {
            if let Branch::Empty = place {
                *place = Branch::over(Branch::Empty);
            }
            place = match place {
                Branch::Inner(below) => &mut Arc::make_mut(below)[digit(number, height)],
                _ => unreachable!("only branches are above height zero"),
            };
        }
        place
    }
}

impl<T> Tail<T> {
    /// The leaf, if it has this number.
    #[inline]
    pub(crate) fn leaf(&self, number: u64) -> Option<&Leaf<T>> {
        match &self.leaf {
            Branch::Leaf(leaf) if self.number == number => Some(leaf),
            _ => None,
        }
    }
}

impl<T> Branch<T> {
    const NONE: [Self; WIDTH] = [const { Branch::Empty }; WIDTH];

    /// A branch whose first part is `first`.
    fn over(first: Self) -> Self {
        let mut below = Self::NONE;
        below[0] = first;
        Self::Inner(Arc::new(below))
    }

    fn is_empty(&self) -> bool {
        matches!(self, Branch::Empty)
    }
}

/// The branches above these parts, which are in the order of their numbers.
fn gather<T>(level: Vec<(u64, Branch<T>)>) -> Vec<(u64, Branch<T>)> {
    let mut above: Vec<(u64, UniqueArc<[Branch<T>; WIDTH]>)> =
        Vec::with_capacity(level.len() / WIDTH + 2);
    for (number, part) in level {
        if above.last().is_none_or(|(last, _)| *last != number >> BITS) {
            above.push((number >> BITS, UniqueArc::new(Branch::NONE)));
        }
        let (_, branch) = above.last_mut().expect("one was pushed if there was none");
        branch[digit(number, 0)] = part;
    }
    let shared = |(number, branch): (u64, UniqueArc<[Branch<T>; WIDTH]>)| {
        (number, Branch::Inner(branch.shareable()))
    };
    above.into_iter().map(shared).collect()
}

fn take_out<T: Entry>(branch: &mut Branch<T>, id: NodeId, height: u32) -> Option<T> {
    let (value, is_empty) = match branch {
        Branch::Empty => return None,
        Branch::Leaf(leaf) => {
            leaf.shape.set(slot_of(id), Family::None);
            let slots = Arc::make_mut(&mut leaf.slots);
            let value = slots[slot_of(id)].take();
            (value, slots.iter().all(Option::is_none))
        }
        Branch::Inner(below) => {
            let below = Arc::make_mut(below);
            let next = &mut below[digit(id.get() >> LEAF_BITS, height - 1)];
            let value = take_out(next, id, height - 1);
            (value, next.is_empty() && below.iter().all(Branch::is_empty))
        }
    };
    if is_empty {
        *branch = Branch::Empty;
    }
    value
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

/// The slot of an id in its leaf.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked to four bits")]
pub(crate) fn slot_of(id: NodeId) -> usize {
    id.get() as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn id(number: u64) -> NodeId {
        NodeId::new(number).expect("not zero")
    }

    impl Entry for u8 {
        fn family(&self, _: NodeId) -> Family {
            Family::None
        }
    }

    impl Entry for () {
        fn family(&self, _: NodeId) -> Family {
            Family::None
        }
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec((1..5000_u64, any::<Option<u8>>()), 1..300)) {
            let (mut map, mut model) = (Radix::new(), BTreeMap::new());
            for (number, value) in steps {
                let before = map.clone();
                let old = model.get(&number).copied();
                match value {
                    Some(value) => {
                        map.insert(id(number), value);
                        model.insert(number, value);
                    }
                    None => prop_assert_eq!(map.remove(id(number)), model.remove(&number)),
                }
                prop_assert_eq!(map.get(id(number)), model.get(&number));
                prop_assert_eq!(before.get(id(number)).copied(), old);
            }
            for number in 1..5000 {
                prop_assert_eq!(map.get(id(number)), model.get(&number));
            }
        }
    }

    #[test]
    fn an_emptied_map_holds_nothing() {
        let mut map = Radix::new();
        for number in [1, 17, 70_000, u64::MAX] {
            map.insert(id(number), ());
        }
        for number in [1, 17, 70_000, u64::MAX] {
            assert_eq!(map.remove(id(number)), Some(()));
            assert_eq!(map.remove(id(number)), None);
        }
        assert!(map.top.is_empty() && map.tail.leaf.is_empty());
    }
}
