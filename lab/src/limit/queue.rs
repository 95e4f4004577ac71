//! A queue of indices that is linked through the items themselves.

/// No item.
pub(super) const NONE: u32 = u32::MAX;

/// Something that can be in one queue at a time.
pub(super) trait Linked {
    /// The item behind this one.
    fn next(&mut self) -> &mut u32;
}

/// First in, first out.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub(super) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };

    /// Puts an item at the end.
    #[inline]
    pub(super) fn push<T: Linked>(&mut self, items: &mut [T], item: u32) {
        *items[item as usize].next() = NONE;
        if self.first == NONE {
            self.first = item;
        } else {
            *items[self.last as usize].next() = item;
        }
        self.last = item;
    }

    /// Puts an item at the beginning.
    #[inline]
    pub(super) fn push_first<T: Linked>(&mut self, items: &mut [T], item: u32) {
        *items[item as usize].next() = self.first;
        if self.first == NONE {
            self.last = item;
        }
        self.first = item;
    }

    /// Takes the first item.
    #[inline]
    pub(super) fn pop<T: Linked>(&mut self, items: &mut [T]) -> Option<u32> {
        let item = self.first;
        if item == NONE {
            return None;
        }
        self.first = *items[item as usize].next();
        Some(item)
    }
}

/// The number of an item: there are fewer than four thousand million.
pub(super) fn index(item: usize) -> u32 {
    u32::try_from(item).expect("an array of a limit program has fewer items than a u32")
}
