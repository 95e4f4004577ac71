//! A block of cells that its only owner fills before anybody shares it.
//!
//! Filling a cell of [`Cells`] asks whether the block is shared, and claims the cell. Here neither is needed: a
//! [`Filling`] cannot be cloned, and the claims are noted when it becomes [`Cells`].
//!
//! **Safety.** As in `cells`: the block has one clone, which is inside and is given out at the end only, so nobody else
//! reads, writes or claims a cell. `counted` is kept as cells are filled, so a filling that is dropped drops its items.

use crate::cells::{CELLS, Cells, Item};
use crate::sys::Ordering;

/// [`CELLS`] cells that are being filled. See [`Cells`].
///
/// ```
/// use weald_memory::{Filling, Item};
///
/// let mut filling = Filling::<u64, String>::new();
/// filling.put(5, Item::Counted("text".into()));
/// filling.put(2, Item::Plain(7));
/// *filling.plain_mut(2).unwrap() += 1;
/// assert_eq!(filling.finish().get(2), Some(&Item::Plain(8)));
/// ```
#[derive(Debug)]
pub struct Filling<P, C>(Cells<P, C>);

impl<P: Copy, C: Clone> Filling<P, C> {
    /// No items.
    #[inline]
    pub fn new() -> Self {
        Self(Cells::new(CELLS))
    }

    /// Fills a cell, which is empty.
    ///
    /// # Panics
    /// If it is not, or if there is no such cell: `at` is [`CELLS`] or more.
    #[inline(always)]
    pub fn put(&mut self, at: usize, item: Item<P, C>) {
        assert!(at < CELLS, "a block has sixteen cells");
        let bit = 1_u16 << at;
        assert!(self.0.present & bit == 0, "the cell is filled");
        if matches!(item, Item::Counted(_)) {
            self.note_counted(bit);
        }
        // SAFETY: the block has this cell, nothing is in it, and nobody else has the block.
        unsafe { self.0.cell(at).write(item) };
        self.0.present |= bit;
    }

    #[cold]
    fn note_counted(&self, bit: u16) {
        self.0.header().counted.fetch_or(bit, Ordering::Relaxed);
    }

    /// The plain data in a cell, to be changed in place.
    #[inline]
    pub fn plain_mut(&mut self, at: usize) -> Option<&mut P> {
        self.0.plain_mut(at)
    }

    /// Empties a cell, and returns what it held.
    #[inline]
    pub fn take(&mut self, at: usize) -> Option<Item<P, C>> {
        self.0.take(at)
    }

    /// The cells, which can be shared from now on.
    #[inline]
    pub fn finish(self) -> Cells<P, C> {
        let claimed = &self.0.header().claimed;
        claimed.store(self.0.present, Ordering::Relaxed);
        self.0
    }
}

impl<P: Copy, C: Clone> Default for Filling<P, C> {
    fn default() -> Self {
        Self::new()
    }
}
