//! Parallel sorting with idle workers: stable by merging, unstable by partitioning.
//!
//! The standard library sorts the pieces; this file divides and combines them.

mod partition;

use std::{cmp::Ordering, panic::Location};

use crate::{
    fork::{join, merge, root_fork},
    scheduler::workers::current,
};
use partition::move_to_front;

/// The standard library sorts slices up to this length as a whole.
const SMALL: usize = 4096;
/// Into about how many pieces a long slice is divided. Pivots divide it unevenly, and no result depends on how many
/// workers there are.
const PIECES: usize = 128;
/// For each worker, the pieces that the stable sort merges: to merge two pieces costs more than to sort one of twice
/// the length.
const MERGED_PIECES: usize = 8;

fn grain(len: usize, pieces: usize) -> usize {
    SMALL.max(len.div_ceil(pieces))
}

/// Sorts `items`; equal items keep their order. See [`sort_by`].
///
/// ```
/// let mut numbers = vec![3, 1, 2];
/// weald::fork::sort(&mut numbers);
/// assert_eq!(numbers, [1, 2, 3]);
/// ```
#[track_caller]
pub fn sort<T: Ord + Send>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts `items` by the key that `key` returns for each; items with equal keys keep their order. See
/// [`sort_by`].
///
/// ```
/// let mut words = ["ccc", "a", "bb", "d"];
/// weald::fork::sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["a", "d", "bb", "ccc"]);
/// ```
#[track_caller]
pub fn sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts `items` in the order of `compare`; equal items keep their order. O(n log n) comparisons, and memory
/// for n further items.
///
/// # Panics
/// If `compare` does, and perhaps if it is not a total order. The items are then in some order, each once.
///
/// ```
/// let mut numbers = vec![3, 1, 2];
/// weald::fork::sort_by(&mut numbers, |a, b| b.cmp(a));
/// assert_eq!(numbers, [3, 2, 1]);
/// ```
#[track_caller]
pub fn sort_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    if items.len() <= SMALL || size_of::<T>() == 0 {
        return items.sort_by(compare);
    }
    let workers = current::with_current(|shared| shared.workers.len());
    let grain = grain(items.len(), MERGED_PIECES * workers);
    // The root fork begins here, so that it knows its caller.
    root_fork::with_fork_deque(Location::caller(), |_| merge::sort(items, &compare, grain));
}

/// Sorts `items`; equal items may change places. See [`sort_unstable_by`].
///
/// ```
/// let mut numbers = vec![3, 1, 2];
/// weald::fork::sort_unstable(&mut numbers);
/// assert_eq!(numbers, [1, 2, 3]);
/// ```
#[track_caller]
pub fn sort_unstable<T: Ord + Send>(items: &mut [T]) {
    sort_unstable_by(items, T::cmp);
}

/// Sorts `items` by the key that `key` returns for each; items with equal keys may change places. See
/// [`sort_unstable_by`].
///
/// ```
/// let mut numbers = [-3, 1, 2_i32];
/// weald::fork::sort_unstable_by_key(&mut numbers, |number| number.abs());
/// assert_eq!(numbers, [1, 2, -3]);
/// ```
#[track_caller]
pub fn sort_unstable_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_unstable_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts `items` in the order of `compare`; equal items may change places, in the same way each time.
/// O(n log n) comparisons; allocates nothing.
///
/// # Panics
/// As [`sort_by`].
///
/// ```
/// let mut numbers = vec![3, 1, 2];
/// weald::fork::sort_unstable_by(&mut numbers, |a, b| b.cmp(a));
/// assert_eq!(numbers, [3, 2, 1]);
/// ```
#[track_caller]
pub fn sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    let levels = 2 * items.len().max(1).ilog2();
    let grain = grain(items.len(), PIECES);
    if items.len() <= grain {
        return items.sort_unstable_by(compare);
    }
    // As in `sort_by`.
    root_fork::with_fork_deque(Location::caller(), |_| {
        partition_and_sort(items, &compare, grain, levels);
    });
}

/// Quicksort down to pieces of `grain` items. At a depth of `levels`, which only bad pivots reach, the standard
/// library does the rest: its bound does not depend on pivots.
fn partition_and_sort<T, C>(items: &mut [T], compare: &C, grain: usize, levels: u32)
where
    T: Send,
    C: Fn(&T, &T) -> Ordering + Sync,
{
    if items.len() <= grain || levels == 0 {
        return items.sort_unstable_by(compare);
    }
    let Divided { lesser, greater } = divide(items, compare);
    let (left, right) = items.split_at_mut(greater);
    let left = &mut left[..lesser];
    join(
        || partition_and_sort(left, compare, grain, levels - 1),
        || partition_and_sort(right, compare, grain, levels - 1),
    );
}

/// Items that are divided: those before `lesser` may be less than the pivot, those from `greater` on may be greater.
/// Those between equal the pivot, and are where they belong.
struct Divided {
    lesser: usize,
    greater: usize,
}

/// Up to this size, to move an item costs less than a wrong guess of its part.
const MOVED_UP_TO: usize = 96;
/// If fewer items than one in this many are less than the pivot, those that equal it are probably many.
const FEW: usize = 8;

/// Divides the items at a pivot. There are more than a few.
fn divide<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> Divided {
    let pivot = median_of_medians(items, compare);
    items.swap(0, pivot);
    let Some((pivot, rest)) = items.split_first_mut() else {
        return Divided {
            lesser: 0,
            greater: 0,
        };
    };
    if size_of::<T>() > MOVED_UP_TO {
        let lesser = move_to_both_ends(rest, pivot, compare);
        items.swap(0, lesser);
        return Divided {
            lesser,
            greater: lesser + 1,
        };
    }
    let lesser = move_to_front(rest, |item| compare(item, pivot).is_lt());
    // All items that equal the pivot are behind the lesser ones, so a slice with many of them may divide badly.
    let equal = match lesser < rest.len() / FEW {
        true => move_to_front(&mut rest[lesser..], |item| !compare(pivot, item).is_lt()),
        false => 0,
    };
    items.swap(0, lesser);
    Divided {
        lesser,
        greater: lesser + 1 + equal,
    }
}

/// Moves items so that none that is greater than the pivot is before one that is less, and returns how many may be
/// less. Equal items change places too, so that a slice with many of them divides evenly.
fn move_to_both_ends<T>(
    items: &mut [T],
    pivot: &T,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> usize {
    let (mut left, mut right) = (0, items.len());
    loop {
        while left < right && compare(&items[left], pivot).is_lt() {
            left += 1;
        }
        while left < right && compare(&items[right - 1], pivot).is_gt() {
            right -= 1;
        }
        if left >= right {
            return left;
        }
        items.swap(left, right - 1);
        left += 1;
        right -= 1;
    }
}

/// The index of the median of three medians of three, spread over `items`.
fn median_of_medians<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let median = |indices: [usize; 3]| {
        let [a, b, c] = indices;
        let lt = |a: usize, b: usize| compare(&items[a], &items[b]).is_lt();
        match (lt(a, b), lt(b, c), lt(a, c)) {
            (true, true, _) | (false, false, _) => b,
            (true, false, true) | (false, true, false) => c,
            (true, false, false) | (false, true, true) => a,
        }
    };
    let step = items.len() / 10;
    median([1, 4, 7].map(|first| median([0, 1, 2].map(|next| (first + next) * step))))
}
