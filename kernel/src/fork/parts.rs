//! What can be divided into parts that are worked on at the same time: slices and ranges.

use std::ops::Range;

/// Items with an order, which can be divided at any index.
///
/// For `&[T]`, `&mut [T]` and ranges of integers; see [`IntoParts`] for what turns into these.
pub trait Parts: Send + Sized {
    /// What one item is: a reference, or a number.
    type Item;

    /// How many items there are.
    fn len(&self) -> usize;

    /// Whether there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `index` items, and the others.
    ///
    /// # Panics
    /// If there are fewer items than `index`.
    fn divide(self, index: usize) -> (Self, Self);

    /// All items in their order.
    fn items(self) -> impl Iterator<Item = Self::Item>;
}

/// What turns into [`Parts`]: all of these themselves, and references to vectors and arrays.
pub trait IntoParts {
    /// What it turns into.
    type Parts: Parts<Item = Self::Item>;
    /// What one item is.
    type Item;

    /// Its parts.
    fn into_parts(self) -> Self::Parts;
}

impl<'a, T: Sync> Parts for &'a [T] {
    type Item = &'a T;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn divide(self, index: usize) -> (Self, Self) {
        self.split_at(index)
    }

    fn items(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, T: Send> Parts for &'a mut [T] {
    type Item = &'a mut T;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn divide(self, index: usize) -> (Self, Self) {
        self.split_at_mut(index)
    }

    fn items(self) -> impl Iterator<Item = &'a mut T> {
        self.iter_mut()
    }
}

macro_rules! ranges {
    ($($number:ty)*) => { $(
        impl Parts for Range<$number> {
            type Item = $number;

            fn len(&self) -> usize {
                match self.start < self.end {
                    true => usize::try_from(self.start.abs_diff(self.end))
                        .expect("a range has at most as many items as there are addresses"),
                    false => 0,
                }
            }

            fn divide(self, index: usize) -> (Self, Self) {
                assert!(index <= Parts::len(&self), "a range is divided inside of its bounds");
                // It wraps only where the signed type is too small for the distance, and then back.
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_possible_wrap,
                    reason = "the index is not above the distance of the bounds"
                )]
                let middle = self.start.wrapping_add(index as $number);
                (self.start..middle, middle..self.end)
            }

            fn items(self) -> impl Iterator<Item = $number> {
                self
            }
        }
    )* };
}

ranges! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

impl<P: Parts> IntoParts for P {
    type Parts = P;
    type Item = P::Item;

    fn into_parts(self) -> P {
        self
    }
}

impl<'a, T: Sync> IntoParts for &'a Vec<T> {
    type Parts = &'a [T];
    type Item = &'a T;

    fn into_parts(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> IntoParts for &'a mut Vec<T> {
    type Parts = &'a mut [T];
    type Item = &'a mut T;

    fn into_parts(self) -> &'a mut [T] {
        self
    }
}

impl<'a, T: Sync, const N: usize> IntoParts for &'a [T; N] {
    type Parts = &'a [T];
    type Item = &'a T;

    fn into_parts(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send, const N: usize> IntoParts for &'a mut [T; N] {
    type Parts = &'a mut [T];
    type Item = &'a mut T;

    fn into_parts(self) -> &'a mut [T] {
        self
    }
}
