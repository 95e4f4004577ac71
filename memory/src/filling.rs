//! Two blocks of cells that their only owner fills side by side. The safety argument is that of `cells`.

#![allow(unsafe_code)]

use crate::cells::{CELLS, Cells, Item};

/// Two blocks of [`CELLS`] cells that their only owner fills one pair of cells after the other, before anybody shares
/// them. Filling a cell of [`Cells`] asks whether the block is shared, and notes that the cell is filled; here neither
/// is needed.
///
/// ```
/// use weald_memory::{Filling, Item};
///
/// let mut filling = Filling::<u64, (), (), String>::new(5);
/// filling.push(6, Item::Counted("text".into()));
/// filling.push(7, Item::Plain(()));
/// *filling.plain_mut(6).unwrap() += 1;
/// let (one, two) = filling.finish();
/// assert_eq!(one.get(6), Some(&Item::Plain(8)));
/// assert_eq!(two.get(5), Some(&Item::Counted("text".into())));
/// ```
#[derive(Debug)]
pub struct Filling<P, C, Q, D> {
    one: Cells<P, C>,
    two: Cells<Q, D>,
    first: usize,
    /// The cells before this one, from the first one on, are filled.
    next: usize,
}

impl<P: Copy, C: Clone, Q: Copy, D: Clone> Filling<P, C, Q, D> {
    /// No items; the first ones go into the cells of this number.
    ///
    /// # Panics
    /// If there are no such cells.
    #[inline]
    pub fn new(first: usize) -> Self {
        assert!(first < CELLS, "a block has sixteen cells");
        Self {
            one: Cells::new(CELLS),
            two: Cells::new(CELLS),
            first,
            next: first,
        }
    }

    /// How many cells of each block are filled.
    #[inline]
    pub fn filled(&self) -> usize {
        self.next - self.first
    }

    /// Fills the next cell of each block; that of the first one with plain data.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub fn push(&mut self, one: P, two: Item<Q, D>) {
        let at = self.next;
        assert!(at < CELLS, "a block has sixteen cells");
        if matches!(two, Item::Counted(_)) {
            self.two.note_counted(at, true);
        }
        // SAFETY: the block has this cell, nothing is in it, and nobody else has the block.
        unsafe { self.one.cell(at).write(Item::Plain(one)) };
        // SAFETY: as above.
        unsafe { self.two.cell(at).write(two) };
        self.next = at + 1;
    }

    #[inline]
    fn first_mut(&mut self, at: usize) -> Option<&mut Item<P, C>> {
        if !(self.first..self.next).contains(&at) {
            return None;
        }
        // SAFETY: the cell is filled, and nobody else has the block.
        Some(unsafe { &mut *self.one.cell(at) })
    }

    /// The plain data in a cell of the first block, to be changed in place.
    #[inline]
    pub fn plain_mut(&mut self, at: usize) -> Option<&mut P> {
        match self.first_mut(at)? {
            Item::Plain(plain) => Some(plain),
            Item::Counted(_) => None,
        }
    }

    /// Puts an item into a cell of the first block that is filled, and returns what it held.
    #[inline]
    pub fn replace(&mut self, at: usize, item: Item<P, C>) -> Option<Item<P, C>> {
        let is_counted = matches!(item, Item::Counted(_));
        let old = std::mem::replace(self.first_mut(at)?, item);
        if is_counted {
            self.one.note_counted(at, true);
        } else if matches!(old, Item::Counted(_)) {
            self.one.note_counted(at, false);
        }
        Some(old)
    }

    /// The cells, which can be shared from now on.
    #[inline]
    pub fn finish(self) -> (Cells<P, C>, Cells<Q, D>) {
        #[expect(clippy::cast_possible_truncation, reason = "sixteen at most")]
        let below = |at: usize| u16::MAX.checked_shr((CELLS - at) as u32).unwrap_or(0);
        let filled = below(self.next) & !below(self.first);
        (self.one.with_filled(filled), self.two.with_filled(filled))
    }
}
