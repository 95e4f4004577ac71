//! Numbered pages of a list that does not change, because it is of one version.

use std::ops::Range;

/// One page among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Which one, from 1 on.
    pub number: usize,
    /// How many there are, at least one.
    pub count: usize,
    size: usize,
    items: usize,
}

impl Pages {
    /// The page with a number; `None` if there is none.
    pub(crate) fn new(number: usize, size: usize, items: usize) -> Option<Self> {
        let count = items.div_ceil(size).max(1);
        let page = Self {
            number,
            count,
            size,
            items,
        };
        (1..=count).contains(&number).then_some(page)
    }

    /// The positions on this page.
    pub(crate) fn range(&self) -> Range<usize> {
        let from = (self.number - 1) * self.size;
        from..(from + self.size).min(self.items)
    }

    /// The positions on this page, if the last item is on the first page.
    pub(crate) fn range_from_end(&self) -> Range<usize> {
        let Range { start, end } = self.range();
        self.items - end..self.items - start
    }

    /// How many items are on all of them.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The page after, if there is one.
    pub fn next(&self) -> Option<usize> {
        (self.number < self.count).then(|| self.number + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_on_one_page() {
        for items in 0..30 {
            let count = Pages::new(1, 7, items).unwrap().count;
            let pages = (1..=count).map(|number| Pages::new(number, 7, items).unwrap());
            let forward: Vec<_> = pages.clone().flat_map(|page| page.range()).collect();
            assert_eq!(forward, (0..items).collect::<Vec<_>>());
            let backward: Vec<_> = pages.flat_map(|page| page.range_from_end().rev()).collect();
            assert_eq!(backward, (0..items).rev().collect::<Vec<_>>());
            assert_eq!(Pages::new(count + 1, 7, items), None);
        }
        assert_eq!(Pages::new(0, 7, 3), None);
    }
}
