//! The branches of the map: places with everything below them, in one word each. See `radix`.

use weald_memory::{Either, Shared, SharedEither};

use crate::leaf::Leaf;

/// Parts of one branch.
pub(crate) const WIDTH: usize = 1 << BITS;
pub(crate) const BITS: u32 = 3;

/// One place in the map, and everything below it, in one word.
#[derive(Clone)]
pub(crate) struct Branch(pub(crate) SharedEither<Inner, Leaf>);

/// The parts below a branch.
pub(crate) struct Inner(pub(crate) [Branch; WIDTH]);

/// What is at a place of the map.
pub(crate) enum Content<'a> {
    Empty,
    Inner(&'a Inner),
    Leaf(&'a Leaf),
}

impl Branch {
    pub(crate) const EMPTY: Self = Self(SharedEither::EMPTY);
    const NONE: [Self; WIDTH] = [Self::EMPTY; WIDTH];

    pub(crate) fn of(leaf: Shared<Leaf>) -> Self {
        Self(SharedEither::second(leaf))
    }

    fn inner(below: [Self; WIDTH]) -> Self {
        Self(SharedEither::first(Shared::new(Inner(below))))
    }

    /// A branch whose first part is `first`.
    pub(crate) fn over(first: Self) -> Self {
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
pub(crate) fn gather(level: Vec<(u64, Branch)>) -> Vec<(u64, Branch)> {
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

/// Whether a map of this height has a place for a leaf of this number.
#[inline]
pub(crate) fn fits(number: u64, height: u32) -> bool {
    number.checked_shr(BITS * height).unwrap_or(0) == 0
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked to three bits")]
pub(crate) fn digit(number: u64, height: u32) -> usize {
    (number >> (BITS * height)) as usize & (WIDTH - 1)
}
