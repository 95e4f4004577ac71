//! Parallel merge sort: pieces and merges are forked; stable.
//!
//! Items move between the slice and a buffer as bytes. For each stretch of items, one value records where they
//! are and where they must end up: a [`Stretch`] or a [`Merge`]. Whatever happens to that value, its destructor
//! moves the items there: even after a panic of the comparison, or when a cancel drops a stack job. So the slice
//! always ends up with every item once.
//!
//! The safety argument, by situation:
//! - *stretch*: the items are in the slice. Only this value may touch them, and the same places of the buffer,
//!   which is as long as the slice.
//! - *merge*: the items of the two runs are outside `to`, which has room for all of them. Only this value may
//!   touch all three.

#![allow(unsafe_code)]

use std::{cmp::Ordering, mem, ptr, slice};

use crate::fork::join;

/// Where the items of a stretch must end up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Slice,
    Buffer,
}

impl Target {
    fn other(self) -> Target {
        match self {
            Target::Slice => Target::Buffer,
            Target::Buffer => Target::Slice,
        }
    }
}

/// Sorts `items`. There are more than `grain` of them, and their type is not zero-sized.
pub(super) fn sort<T, C>(items: &mut [T], compare: &C, grain: usize)
where
    T: Send,
    C: Fn(&T, &T) -> Ordering + Sync,
{
    let mut buffer: Vec<T> = Vec::with_capacity(items.len());
    let stretch = Stretch {
        slice: items.as_mut_ptr(),
        buffer: buffer.as_mut_ptr(),
        len: items.len(),
        target: Target::Slice,
    };
    stretch.sort(compare, grain);
}

/// Items that are in the slice, and must end up in `target`.
struct Stretch<T> {
    slice: *mut T,
    buffer: *mut T,
    len: usize,
    target: Target,
}

// SAFETY: stretch: it owns its items.
unsafe impl<T: Send> Send for Stretch<T> {}

impl<T: Send> Stretch<T> {
    fn sort<C: Fn(&T, &T) -> Ordering + Sync>(self, compare: &C, grain: usize) {
        if self.len <= grain {
            // SAFETY: stretch.
            let items = unsafe { slice::from_raw_parts_mut(self.slice, self.len) };
            return items.sort_by(compare);
        }
        let middle = self.len / 2;
        let merge = self.merge_later(middle);
        let (left, right) = self.divide(middle);
        join(|| left.sort(compare, grain), || right.sort(compare, grain));
        merge.run(compare, grain);
    }

    /// The merge that remains once both halves of this stretch are sorted, in the other place.
    fn merge_later(&self, middle: usize) -> Merge<T> {
        let (from, to) = match self.target {
            Target::Slice => (self.buffer, self.slice),
            Target::Buffer => (self.slice, self.buffer),
        };
        Merge {
            left: Run {
                first: from,
                len: middle,
            },
            right: Run {
                // SAFETY: stretch: the middle is within the stretch.
                first: unsafe { from.add(middle) },
                len: self.len - middle,
            },
            to,
        }
    }

    /// Divides the stretch in two. The halves must end up in the other place.
    fn divide(self, middle: usize) -> (Stretch<T>, Stretch<T>) {
        let target = self.target.other();
        let left = Stretch {
            len: middle,
            target,
            ..self
        };
        let right = Stretch {
            // SAFETY: stretch: the middle is within the stretch.
            slice: unsafe { self.slice.add(middle) },
            // SAFETY: as above.
            buffer: unsafe { self.buffer.add(middle) },
            len: self.len - middle,
            target,
        };
        mem::forget(self);
        (left, right)
    }
}

impl<T> Drop for Stretch<T> {
    fn drop(&mut self) {
        if self.target == Target::Buffer {
            // SAFETY: stretch.
            unsafe { ptr::copy_nonoverlapping(self.slice, self.buffer, self.len) };
        }
    }
}

/// Contiguous sorted items.
struct Run<T> {
    first: *mut T,
    len: usize,
}

impl<T> Run<T> {
    fn items(&self) -> &[T] {
        // SAFETY: merge: the items belong to the run's merge, which is borrowed.
        unsafe { slice::from_raw_parts(self.first, self.len) }
    }

    fn divide(&self, index: usize) -> (Run<T>, Run<T>) {
        let right = Run {
            // SAFETY: merge: the callers' index is within the run.
            first: unsafe { self.first.add(index) },
            len: self.len - index,
        };
        let left = Run {
            first: self.first,
            len: index,
        };
        (left, right)
    }
}

/// Two runs whose items must end up in `to`; of equal items, those of the left run come first.
struct Merge<T> {
    left: Run<T>,
    right: Run<T>,
    to: *mut T,
}

// SAFETY: merge: it owns its items.
unsafe impl<T: Send> Send for Merge<T> {}

impl<T: Send> Merge<T> {
    fn run<C: Fn(&T, &T) -> Ordering + Sync>(self, compare: &C, grain: usize) {
        if self.left.len + self.right.len <= grain || self.left.len == 0 || self.right.len == 0 {
            return self.run_here(compare);
        }
        let (first, second) = self.divide(compare);
        join(|| first.run(compare, grain), || second.run(compare, grain));
    }

    /// Divides the merge in two. No item of the second belongs before an item of the first.
    fn divide<C: Fn(&T, &T) -> Ordering>(self, compare: &C) -> (Merge<T>, Merge<T>) {
        let (left, right) = (self.left.items(), self.right.items());
        let (left_at, right_at) = if left.len() >= right.len() {
            let at = left.len() / 2;
            let before = |item: &T| compare(item, &left[at]).is_lt();
            (at, right.partition_point(before))
        } else {
            let at = right.len() / 2;
            let before = |item: &T| compare(item, &right[at]).is_le();
            (left.partition_point(before), at)
        };
        let (left, right) = (self.left.divide(left_at), self.right.divide(right_at));
        let first = Merge {
            left: left.0,
            right: right.0,
            to: self.to,
        };
        let second = Merge {
            left: left.1,
            right: right.1,
            // SAFETY: merge: there is room for all items.
            to: unsafe { self.to.add(left_at + right_at) },
        };
        mem::forget(self);
        (first, second)
    }

    /// Moves one item after the other, and the destructor what is left of either run. The first and the last are moved
    /// in turn, because to find the one need not wait for the other; neither has a branch that depends on an item.
    fn run_here<C: Fn(&T, &T) -> Ordering>(mut self, compare: &C) {
        loop {
            // Each step may take both of its items from the shorter run.
            let steps = self.left.len.min(self.right.len) / 2;
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                // SAFETY: merge: of either run two items are left for each step to come.
                unsafe { self.move_first(compare) };
                // SAFETY: as above, and this step has taken one.
                unsafe { self.move_last(compare) };
            }
        }
        while self.left.len > 0 && self.right.len > 0 {
            // SAFETY: merge: either run has an item.
            unsafe { self.move_first(compare) };
        }
    }

    /// Moves the item that comes first.
    ///
    /// # Safety
    /// Either run has an item.
    #[inline(always)]
    unsafe fn move_first<C: Fn(&T, &T) -> Ordering>(&mut self, compare: &C) {
        let (left, right) = (self.left.first, self.right.first);
        // SAFETY: merge: the caller's promise.
        let is_right = compare(unsafe { &*right }, unsafe { &*left }).is_lt();
        let item = if is_right { right } else { left };
        // SAFETY: merge: there is room for all items.
        unsafe { ptr::copy_nonoverlapping(item, self.to, 1) };
        // SAFETY: as above.
        self.to = unsafe { self.to.add(1) };
        // SAFETY: merge: the run has an item, or stays as it is.
        self.right.first = unsafe { right.add(usize::from(is_right)) };
        self.right.len -= usize::from(is_right);
        // SAFETY: as above.
        self.left.first = unsafe { left.add(usize::from(!is_right)) };
        self.left.len -= usize::from(!is_right);
    }

    /// Moves the item that comes last.
    ///
    /// # Safety
    /// Either run has an item.
    #[inline(always)]
    unsafe fn move_last<C: Fn(&T, &T) -> Ordering>(&mut self, compare: &C) {
        // SAFETY: merge: the caller's promise.
        let left = unsafe { self.left.first.add(self.left.len - 1) };
        // SAFETY: as above.
        let right = unsafe { self.right.first.add(self.right.len - 1) };
        // SAFETY: as above.
        let is_left = compare(unsafe { &*right }, unsafe { &*left }).is_lt();
        let item = if is_left { left } else { right };
        // SAFETY: merge: there is room for all items that are left, and this is the last one.
        let to = unsafe { self.to.add(self.left.len + self.right.len - 1) };
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(item, to, 1) };
        self.left.len -= usize::from(is_left);
        self.right.len -= usize::from(!is_left);
    }
}

impl<T> Drop for Merge<T> {
    fn drop(&mut self) {
        // SAFETY: merge: there is room for all items.
        unsafe { ptr::copy_nonoverlapping(self.left.first, self.to, self.left.len) };
        // SAFETY: as above.
        let to = unsafe { self.to.add(self.left.len) };
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(self.right.first, to, self.right.len) };
    }
}
