//! The map from ids to records that a version is: a radix tree of leaves with sixteen slots, under
//! branches with eight parts. Wider ones would make look-ups shorter and copies longer.
//!
//! - A clone shares everything; what only one owner has is changed in place, the rest is copied first.
//! - A leaf without records and a branch without leaves do not exist.
//! - It is at most twenty levels high, so recursion over it is safe however deep a document is.

use std::sync::Arc;

use crate::id::NodeId;

/// Ids in one leaf.
pub(crate) const LEAF: u64 = 1 << LEAF_BITS;
pub(crate) const SLOTS: usize = 1 << LEAF_BITS;
const LEAF_BITS: u32 = 4;
/// Parts of one branch.
pub(crate) const WIDTH: usize = 1 << BITS;
pub(crate) const BITS: u32 = 3;

/// The records of sixteen ids that follow each other.
pub(crate) type Leaf<T> = [Option<T>; SLOTS];

/// A persistent map from ids to `T`.
#[derive(Clone)]
pub(crate) struct Radix<T> {
    top: Branch<T>,
    /// Branches between the top and a leaf.
    height: u32,
}

/// One place in the map, and all that hangs there.
#[derive(Clone)]
pub(crate) enum Branch<T> {
    Empty,
    Inner(Arc<[Branch<T>; WIDTH]>),
    Leaf(Arc<Leaf<T>>),
}

impl<T> Radix<T> {
    pub(crate) const fn new() -> Self {
        Self {
            top: Branch::Empty,
            height: 0,
        }
    }

    pub(crate) fn top(&self) -> (&Branch<T>, u32) {
        (&self.top, self.height)
    }

    /// The leaf in which `id` has its slot.
    #[inline]
    pub(crate) fn leaf(&self, id: NodeId) -> Option<&Arc<Leaf<T>>> {
        let number = id.get() >> LEAF_BITS;
        if !fits(number, self.height) {
            return None;
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
        self.leaf(id)?[slot_of(id)].as_ref()
    }
}

impl<T: Clone> Radix<T> {
    /// The record of an id that is there; copies what others share.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: NodeId) -> &mut T {
        self.slot(id)
            .as_mut()
            .expect("the caller looked the id up before")
    }

    #[inline]
    pub(crate) fn insert(&mut self, id: NodeId, value: T) {
        *self.slot(id) = Some(value);
    }

    /// Takes the record out of the map, and what holds nothing after that.
    pub(crate) fn remove(&mut self, id: NodeId) -> Option<T> {
        self.get(id)?;
        take_out(&mut self.top, id, self.height)
    }

    /// Puts a whole leaf in the place of number `number`, which is empty or overwritten.
    pub(crate) fn insert_leaf(&mut self, number: u64, leaf: Arc<Leaf<T>>) {
        *self.place(number) = Branch::Leaf(leaf);
    }

    #[inline]
    fn slot(&mut self, id: NodeId) -> &mut Option<T> {
        let place = self.place(id.get() >> LEAF_BITS);
        if let Branch::Empty = place {
            *place = Branch::Leaf(Arc::new([const { None }; SLOTS]));
        }
        match place {
            Branch::Leaf(leaf) => &mut own(leaf)[slot_of(id)],
            _ => unreachable!("leaves lie at height zero"),
        }
    }

    /// The place of a leaf, made and owned up to there.
    #[inline]
    fn place(&mut self, number: u64) -> &mut Branch<T> {
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
                Branch::Inner(below) => &mut own(below)[digit(number, height)],
                _ => unreachable!("only branches lie above height zero"),
            };
        }
        place
    }
}

impl<T> Branch<T> {
    /// A branch whose first part is `first`.
    fn over(first: Self) -> Self {
        let mut below = [const { Branch::Empty }; WIDTH];
        below[0] = first;
        Self::Inner(Arc::new(below))
    }

    fn is_empty(&self) -> bool {
        matches!(self, Branch::Empty)
    }
}

/// What `Arc::make_mut` does, but each element is copied to where it stays and not by way of the stack.
#[inline]
fn own<T: Clone, const N: usize>(shared: &mut Arc<[T; N]>) -> &mut [T; N] {
    // There are no weak references, and nobody else can clone what only we have.
    if Arc::strong_count(shared) > 1 {
        let copy = Arc::<[T]>::from(&shared[..]);
        *shared = copy
            .try_into()
            .unwrap_or_else(|_| unreachable!("it has as many elements"));
    }
    Arc::get_mut(shared).expect("it was copied, or had one owner")
}

fn take_out<T: Clone>(branch: &mut Branch<T>, id: NodeId, height: u32) -> Option<T> {
    let (value, is_empty) = match branch {
        Branch::Empty => return None,
        Branch::Leaf(leaf) => {
            let leaf = own(leaf);
            let value = leaf[slot_of(id)].take();
            (value, leaf.iter().all(Option::is_none))
        }
        Branch::Inner(below) => {
            let below = own(below);
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
fn fits(number: u64, height: u32) -> bool {
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
        assert!(map.top.is_empty());
    }
}
