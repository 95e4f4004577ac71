//! Up to sixteen small values in one counted block, most of them plain data.
//!
//! - A clone shares the block. The cells that it has are in the clone, and not in the block: an empty cell of a
//!   shared block can be filled in place, and no other clone sees it.
//! - If the block must be copied, plain data is copied as memory; only counted values are cloned one by one.
//!
//! **Safety.** A cell of a block is written in two cases. Either the bit of the cell in `claimed` goes from zero to
//! one, which happens for one clone only, and before that clone has the bit in `present`. Or there is only one clone,
//! which writes. A clone reads and copies only the cells of its own `present`, and thus never one that is being
//! written. A clone passes from one thread to another in a way that also passes on what was written before. `counted`
//! has the bits of the cells that must be dropped; only the only clone fills a cell with such a value. The last clone
//! to go drops them (see `shared`). A `Filling` has the only clones of two blocks and gives them out at the end, so
//! it notes what is claimed then, and what must be dropped at once.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU16;

use crate::pool;
use crate::shared::{count_down, count_up};
use crate::sys::{AtomicUsize, Ordering};

/// The most cells in one block.
pub const CELLS: usize = 16;

/// The sizes of blocks, in cells.
const SIZES: [usize; 3] = [1, 5, CELLS];

/// What a cell holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<P, C> {
    /// Plain data, which is copied as memory.
    Plain(P),
    /// A value that must be cloned and dropped.
    Counted(C),
}

/// Up to [`CELLS`] items by number, which share their block with their clones.
///
/// ```
/// use weald_memory::{Cells, Item};
///
/// let mut one = Cells::<u64, String>::new(4);
/// one.set(3, Item::Plain(7));
/// let mut two = one.clone();
/// two.set(2, Item::Counted("text".into()));
/// assert!(one.get(2).is_none() && two.get(2) == Some(&Item::Counted("text".into())));
/// ```
pub struct Cells<P, C> {
    block: NonNull<Header>,
    /// The cells that are filled, a bit for each.
    present: u16,
    owned: PhantomData<Item<P, C>>,
}

/// The start of a block; the cells follow.
#[repr(C, align(8))]
struct Header {
    counter: AtomicUsize,
    /// The cells that are filled, or are being filled, for some clone.
    claimed: AtomicU16,
    /// Those of them that must be dropped.
    counted: AtomicU16,
    capacity: u16,
}

// SAFETY: clones in several threads give references to one value in all of them, and the last one drops it. A
// clone also sends a value into the block that others share, which they neither read nor drop before it is theirs.
unsafe impl<P: Send + Sync, C: Send + Sync> Send for Cells<P, C> {}
// SAFETY: as above, since a reference can be cloned.
unsafe impl<P: Send + Sync, C: Send + Sync> Sync for Cells<P, C> {}

impl<P, C> Cells<P, C> {
    const ALIGNED: () = assert!(align_of::<Item<P, C>>() <= align_of::<Header>());

    /// No cells, and room for this many in the beginning.
    ///
    /// # Panics
    /// If they are more than [`CELLS`].
    #[inline]
    pub fn new(room: usize) -> Self {
        let () = Self::ALIGNED;
        let capacity = SIZES.into_iter().find(|size| *size >= room);
        let capacity = capacity.expect("a block has sixteen cells at most");
        let block = pool::take(Self::layout(capacity)).cast::<Header>();
        #[expect(clippy::cast_possible_truncation, reason = "sixteen at most")]
        let header = Header {
            counter: AtomicUsize::new(1),
            claimed: AtomicU16::new(0),
            counted: AtomicU16::new(0),
            capacity: capacity as u16,
        };
        // SAFETY: the block is new, and the layout begins with a header.
        unsafe { block.write(header) };
        Self {
            block,
            present: 0,
            owned: PhantomData,
        }
    }

    /// The filled cells, a bit for each, that of cell 0 lowest.
    #[inline]
    pub fn present(&self) -> u16 {
        self.present
    }

    /// Whether both have the same items in one block.
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        self.block == other.block && self.present == other.present
    }

    /// The address of the block, which tells it from others while one of its clones lives.
    #[inline]
    pub fn address(&self) -> usize {
        self.block.addr().get()
    }

    /// How many bytes the block takes.
    pub fn bytes(&self) -> usize {
        Self::layout(self.capacity()).size()
    }

    /// The item in a cell.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Item<P, C>> {
        if !self.has(at) {
            return None;
        }
        // SAFETY: the cell is filled, and stays as it is while this clone lives and is not changed.
        Some(unsafe { &*self.cell(at) })
    }

    #[inline]
    fn has(&self, at: usize) -> bool {
        at < CELLS && self.present >> at & 1 == 1
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the block lives as long as this clone.
        unsafe { self.block.as_ref() }
    }

    #[inline]
    fn capacity(&self) -> usize {
        usize::from(self.header().capacity)
    }

    #[inline]
    fn is_alone(&self) -> bool {
        self.header().counter.load(Ordering::Acquire) == 1
    }

    /// The place of a cell, which is in the block if `at` is below the capacity.
    #[inline]
    pub(crate) fn cell(&self, at: usize) -> *mut Item<P, C> {
        let first = self.block.as_ptr().wrapping_add(1).cast::<Item<P, C>>();
        first.wrapping_add(at)
    }

    /// These cells, which nobody shares yet and which are filled.
    #[inline]
    pub(crate) fn with_filled(mut self, filled: u16) -> Self {
        self.header().claimed.store(filled, Ordering::Relaxed);
        self.present = filled;
        self
    }

    /// Notes whether a cell of a block, which nobody shares yet, must be dropped.
    #[cold]
    pub(crate) fn note_counted(&self, at: usize, is_counted: bool) {
        let counted = &self.header().counted;
        match is_counted {
            true => counted.fetch_or(1 << at, Ordering::Relaxed),
            false => counted.fetch_and(!(1 << at), Ordering::Relaxed),
        };
    }

    #[inline]
    fn layout(capacity: usize) -> Layout {
        let size = size_of::<Header>() + capacity * size_of::<Item<P, C>>();
        let layout = Layout::from_size_align(size, align_of::<Header>());
        layout.expect("a block is small")
    }
}

impl<P: Copy, C: Clone> Cells<P, C> {
    /// Fills a cell, in place of what it holds. The block is copied first if other clones need the old content, or if
    /// the cell is new and gets a counted value.
    ///
    /// # Panics
    /// If there is no such cell: `at` is [`CELLS`] or more.
    #[inline(always)]
    pub fn set(&mut self, at: usize, item: Item<P, C>) {
        assert!(at < CELLS, "a block has sixteen cells");
        let bit = 1_u16 << at;
        let is_plain = matches!(item, Item::Plain(_));
        let is_new = at < self.capacity() && self.present & bit == 0;
        if is_plain && is_new && self.is_alone() {
            let claimed = &self.header().claimed;
            claimed.store(self.present | bit, Ordering::Relaxed);
        } else {
            self.prepare(at, is_plain);
        }
        // SAFETY: the cell is in the block, what was there is dropped, and nobody else looks at it: either this is
        // the only clone, or the bit was claimed for it.
        unsafe { self.cell(at).write(item) };
        self.present |= bit;
    }

    /// Empties a cell for this clone, and notes that it is filled with plain data or a counted value. The caller
    /// fills it.
    #[inline(never)]
    fn prepare(&mut self, at: usize, is_plain: bool) {
        let bit = 1_u16 << at;
        if at >= self.capacity() {
            *self = self.copied(at + 1);
        } else if !self.is_alone() {
            if is_plain && !self.has(at) && self.claim(bit) {
                return;
            }
            *self = self.copied(self.capacity());
        }
        // This is the only clone. The old content may panic when it is dropped; then the cell is empty.
        drop(self.take(at));
        let header = self.header();
        header.claimed.store(self.present | bit, Ordering::Relaxed);
        if !is_plain {
            header.counted.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Empties a cell, and returns what it held. If other clones need it, the block is copied first.
    #[inline]
    pub fn take(&mut self, at: usize) -> Option<Item<P, C>> {
        if !self.has(at) {
            return None;
        }
        if !self.is_alone() {
            *self = self.copied(self.capacity());
        }
        // This is the only clone.
        let bit = 1_u16 << at;
        self.present &= !bit;
        let header = self.header();
        let counted = header.counted.load(Ordering::Relaxed);
        header.counted.store(counted & !bit, Ordering::Relaxed);
        header.claimed.store(self.present, Ordering::Relaxed);
        // SAFETY: the cell was filled, and is empty from now on.
        Some(unsafe { self.cell(at).read() })
    }

    /// Changes the item in a cell, which stays empty if `change` panics. `None`, if the cell is empty.
    #[inline]
    pub fn change<R>(
        &mut self,
        at: usize,
        change: impl FnOnce(Item<P, C>) -> (Item<P, C>, R),
    ) -> Option<R> {
        let (item, result) = change(self.take(at)?);
        self.set(at, item);
        Some(result)
    }

    /// The plain data in a cell, to be changed. If other clones share the block, it is copied first.
    #[inline]
    pub fn plain_mut(&mut self, at: usize) -> Option<&mut P> {
        let Item::Plain(_) = self.get(at)? else {
            return None;
        };
        if !self.is_alone() {
            *self = self.copied(self.capacity());
        }
        // SAFETY: the cell is filled, and this is the only clone, which is borrowed for as long as the reference lives.
        match unsafe { &mut *self.cell(at) } {
            Item::Plain(plain) => Some(plain),
            Item::Counted(_) => None,
        }
    }

    /// Moves the items to the smallest block that has room for them.
    pub fn fit(&mut self) {
        let room = CELLS - self.present.leading_zeros() as usize;
        if SIZES
            .into_iter()
            .any(|size| (room..self.capacity()).contains(&size))
        {
            *self = self.copied(room);
        }
    }

    /// Claims a cell of a shared block for this clone; false if another one had it.
    #[inline]
    fn claim(&self, bit: u16) -> bool {
        // Relaxed: only the claim itself must be seen by others; they never look at the cell.
        self.header().claimed.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// The same items in a block of their own, which has room for this many.
    #[inline(never)]
    fn copied(&self, room: usize) -> Self {
        let mut copy = Self::new(room);
        let counted = self.header().counted.load(Ordering::Relaxed) & self.present;
        let mut left = self.present & !counted;
        copy.present = left;
        copy.header().claimed.store(left, Ordering::Relaxed);
        while left != 0 {
            let from = left.trailing_zeros() as usize;
            let run = (left >> from).trailing_ones() as usize;
            // SAFETY: these cells are filled, they are in the new block too, and they are plain data.
            unsafe { self.cell(from).copy_to_nonoverlapping(copy.cell(from), run) };
            // The addition carries through the run, and beyond it if cells follow that are empty.
            left &= left.wrapping_add(1 << from);
        }
        for at in bits(counted) {
            let item = self.get(at).cloned();
            copy.set(at, item.expect("a counted item is in its cell"));
        }
        copy
    }
}

impl<P, C> Clone for Cells<P, C> {
    #[inline]
    fn clone(&self) -> Self {
        count_up(&self.header().counter, 1);
        Self { ..*self }
    }
}

impl<P, C> Drop for Cells<P, C> {
    #[inline]
    fn drop(&mut self) {
        if !count_down(&self.header().counter, 1) {
            return;
        }
        for at in bits(self.header().counted.load(Ordering::Relaxed)) {
            // SAFETY: the cell is filled, and nobody looks at it again.
            unsafe { self.cell(at).drop_in_place() };
        }
        let layout = Self::layout(self.capacity());
        // SAFETY: the block was taken with this layout, and this was its last clone.
        unsafe { pool::free(self.block.cast(), layout) };
    }
}

impl<P: fmt::Debug, C: fmt::Debug> fmt::Debug for Cells<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled = (0..CELLS).filter_map(|at| Some((at, self.get(at)?)));
        f.debug_map().entries(filled).finish()
    }
}

/// The numbers of the bits that are set.
#[inline]
fn bits(mut left: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (bit < CELLS).then_some(bit)
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
