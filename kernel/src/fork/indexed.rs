//! Parts that are made of other parts and still know the index of each item: chunks, pairs and numbered items.

use crate::fork::parts::Parts;

/// Pieces of a slice of equal length; the last one may be shorter.
///
/// [`Items::chunks`](crate::fork::Items::chunks) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Chunks<'a, T> {
    slice: &'a [T],
    size: usize,
}

/// The same of a slice that may be changed. [`Items::chunks_mut`](crate::fork::Items::chunks_mut) makes it.
#[derive(Debug)]
pub struct ChunksMut<'a, T> {
    slice: &'a mut [T],
    size: usize,
}

/// Pairs of the items of two parts with the same index; what the longer one has beyond the shorter one is left out.
///
/// [`Items::zip`](crate::fork::Items::zip) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B> {
    first: A,
    second: B,
}

/// Items with their indices, from 0. [`Items::enumerate`](crate::fork::Items::enumerate) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Enumerate<P> {
    parts: P,
    from: usize,
}

/// A slice, which can be divided into chunks.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no chunks",
    label = "this has no chunks",
    note = "`chunks` takes `fork::items(&slice)`, and `chunks_mut` takes `fork::items(&mut slice)`",
    note = "of a range, take the range of the chunks' numbers and compute the bounds of each"
)]
pub trait IntoChunks: Sized {
    /// The chunks.
    type Chunks: Parts;

    /// Divides it into pieces of `size` items; the last one may be shorter.
    ///
    /// # Panics
    /// If `size` is 0.
    fn into_chunks(self, size: usize) -> Self::Chunks;
}

impl<'a, T: Sync> IntoChunks for &'a [T] {
    type Chunks = Chunks<'a, T>;

    fn into_chunks(self, size: usize) -> Chunks<'a, T> {
        assert!(size > 0, "a chunk has at least one item");
        Chunks { slice: self, size }
    }
}

impl<'a, T: Send> IntoChunks for &'a mut [T] {
    type Chunks = ChunksMut<'a, T>;

    fn into_chunks(self, size: usize) -> ChunksMut<'a, T> {
        assert!(size > 0, "a chunk has at least one item");
        ChunksMut { slice: self, size }
    }
}

/// The index of the first item of the chunk with this index, or the end of the slice.
fn start(chunk: usize, size: usize, len: usize) -> usize {
    assert!(
        chunk <= len.div_ceil(size),
        "chunks are divided within their bounds"
    );
    chunk.saturating_mul(size).min(len)
}

impl<'a, T: Sync> Parts for Chunks<'a, T> {
    type Item = &'a [T];

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn divide(self, index: usize) -> (Self, Self) {
        let size = self.size;
        let (left, right) = self.slice.split_at(start(index, size, self.slice.len()));
        (left.into_chunks(size), right.into_chunks(size))
    }

    fn items(self) -> impl Iterator<Item = &'a [T]> {
        self.slice.chunks(self.size)
    }
}

impl<'a, T: Send> Parts for ChunksMut<'a, T> {
    type Item = &'a mut [T];

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn divide(self, index: usize) -> (Self, Self) {
        let size = self.size;
        let middle = start(index, size, self.slice.len());
        let (left, right) = self.slice.split_at_mut(middle);
        (left.into_chunks(size), right.into_chunks(size))
    }

    fn items(self) -> impl Iterator<Item = &'a mut [T]> {
        self.slice.chunks_mut(self.size)
    }
}

impl<A: Parts, B: Parts> Zip<A, B> {
    /// Drops what the longer one has beyond the shorter one. A vector would carry it through each division.
    pub(super) fn new(mut first: A, mut second: B) -> Self {
        let len = first.len().min(second.len());
        if len < first.len() {
            first = first.divide(len).0;
        }
        if len < second.len() {
            second = second.divide(len).0;
        }
        Self { first, second }
    }
}

impl<A: Parts, B: Parts> Parts for Zip<A, B> {
    type Item = (A::Item, B::Item);

    fn len(&self) -> usize {
        self.first.len().min(self.second.len())
    }

    fn divide(self, index: usize) -> (Self, Self) {
        let (first, first_rest) = self.first.divide(index);
        let (second, second_rest) = self.second.divide(index);
        (Self::new(first, second), Self::new(first_rest, second_rest))
    }

    fn items(self) -> impl Iterator<Item = Self::Item> {
        self.first.items().zip(self.second.items())
    }
}

impl<P> Enumerate<P> {
    pub(super) fn new(parts: P) -> Self {
        Self { parts, from: 0 }
    }
}

impl<P: Parts> Parts for Enumerate<P> {
    type Item = (usize, P::Item);

    fn len(&self) -> usize {
        self.parts.len()
    }

    fn divide(self, index: usize) -> (Self, Self) {
        let (left, right) = self.parts.divide(index);
        let part = |parts, from| Self { parts, from };
        (part(left, self.from), part(right, self.from + index))
    }

    fn items(self) -> impl Iterator<Item = Self::Item> {
        (self.from..).zip(self.parts.items())
    }
}
