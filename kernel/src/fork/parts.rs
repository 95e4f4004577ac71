//! What can be divided into parts that are processed at the same time: slices and ranges.

use std::ops::{Range, RangeInclusive};

/// Ordered items that can be divided at any index.
///
/// Implemented for `&[T]`, `&mut [T]`, `Vec<T>` and ranges of integers; see [`IntoParts`] for what converts into
/// these.
pub trait Parts: Send + Sized {
    /// The type of an item: a reference, or a number.
    type Item;

    /// The number of items.
    fn len(&self) -> usize;

    /// Whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first `index` items, and the others.
    ///
    /// # Panics
    /// If there are fewer items than `index`.
    fn divide(self, index: usize) -> (Self, Self);

    /// All items, in order.
    fn items(self) -> impl Iterator<Item = Self::Item>;
}

/// What converts into [`Parts`]: every `Parts` itself, references to vectors and arrays, maps and sets.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be divided into parts",
    label = "this has no parts that could be processed at the same time",
    note = "pass what an iterator goes through: a slice, `&vector`, `&mut vector`, a vector, a range, a map or a set",
    note = "or collect the iterator into a vector first: `fork::items(iterator.collect::<Vec<_>>())`"
)]
pub trait IntoParts {
    /// What it converts into.
    type Parts: Parts<Item = Self::Item>;
    /// The type of an item.
    type Item;

    /// Converts it.
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
                assert!(index <= Parts::len(&self), "a range is divided within its bounds");
                // The cast wraps only where the signed type is too small for the distance, and the addition
                // wraps back then.
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_possible_wrap,
                    reason = "the index is at most the distance between the bounds"
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

macro_rules! inclusive_ranges {
    ($($number:ty)*) => { $(
        /// As the range that ends one later.
        ///
        /// # Panics
        /// If there is no later number of the type.
        impl IntoParts for RangeInclusive<$number> {
            type Parts = Range<$number>;
            type Item = $number;

            fn into_parts(self) -> Range<$number> {
                match self.is_empty() {
                    true => 0..0,
                    false => *self.start()..self.end().checked_add(1).expect(
                        "a range that ends with the largest number of its type is of a larger type",
                    ),
                }
            }
        }
    )* };
}

inclusive_ranges! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }
ranges! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

#[diagnostic::do_not_recommend]
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
