//! `items(...)`: chains of adapters over items that are processed at the same time, in the shape of iterators.
//!
//! A chain has two parts: what can be divided ([`Parts`]: a slice, its chunks, pairs, numbered items), and the steps
//! that each item then takes ([`Steps`]). The end of a chain runs the steps on pieces, by [`run`](super::pieces::run),
//! so panics, errors and cancels in a chain do what they do in [`for_each`](crate::fork::for_each).

use std::{
    convert::Infallible,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::fork::{
    grain::{Grain, never},
    indexed::{Enumerate, IntoChunks, Zip},
    parts::{IntoParts, Parts},
    steps::{AsIs, Filter, FlatMap, Map, Steps, StillIndexed},
};

/// Items that will be processed on several workers if some are idle: what [`items`] returns.
///
/// It does nothing until one of `for_each`, `collect`, `fold`, `reduce`, `sum`, `count` or `find_any` ends the chain.
#[derive(Clone, Copy, Debug)]
#[must_use = "items do nothing until the chain ends, as with `for_each` or `collect`"]
pub struct Items<P, S = AsIs> {
    parts: P,
    steps: S,
    grain: Grain,
}

/// Begins a chain of adapters over a slice, a vector, a range, a map or a set.
///
/// The order of the items is kept. The work is divided by the number of items alone, as with
/// [`for_each`](crate::fork::for_each); [`Items::grain`] sets how finely.
///
/// ```
/// use weald::fork;
///
/// let words = ["fir", "oak", "elm", "birch"];
/// let long: Vec<(usize, String)> = fork::items(&words)
///     .enumerate()
///     .filter(|(_, word)| word.len() > 3)
///     .map(|(index, word)| (index, word.to_uppercase()))
///     .collect();
/// assert_eq!(long, [(3, "BIRCH".to_owned())]);
/// ```
///
/// An iterator cannot be divided, and what is left of a filter has no index; the compiler says what to write instead:
///
/// ```compile_fail,E0277
/// weald::fork::items((0..9).rev()).count();
/// ```
/// ```compile_fail,E0277
/// weald::fork::items(&[1, 2, 3]).filter(|n| **n > 1).enumerate().count();
/// ```
/// ```compile_fail,E0277
/// weald::fork::items(0..9).chunks(2).count();
/// ```
pub fn items<I: IntoParts>(items: I) -> Items<I::Parts> {
    Items {
        parts: items.into_parts(),
        steps: AsIs,
        grain: Grain::auto(),
    }
}

/// A chain without steps may be zipped with another one, which decides how finely both are divided.
impl<P: Parts> IntoParts for Items<P> {
    type Parts = P;
    type Item = P::Item;

    fn into_parts(self) -> P {
        self.parts
    }
}

// What needs the index of each item. Each method has the bound, so an error names the method, and says what to write.
impl<P: Parts, S> Items<P, S> {
    /// Pieces of a slice of `size` items each; the last may be shorter.
    ///
    /// # Panics
    /// If `size` is 0.
    ///
    /// ```
    /// let sums: Vec<u32> = weald::fork::items(&[1, 2, 3, 4, 5]).chunks(2).map(|two| two.iter().sum()).collect();
    /// assert_eq!(sums, [3, 7, 5]);
    /// ```
    pub fn chunks(self, size: usize) -> Items<P::Chunks>
    where
        P: IntoChunks,
        S: StillIndexed,
    {
        self.with(|parts| parts.into_chunks(size))
    }

    /// The same under the name that it has for `&mut`: pieces of a slice that may be changed.
    ///
    /// # Panics
    /// If `size` is 0.
    ///
    /// ```
    /// let mut image = vec![0; 6];
    /// let rows = weald::fork::items(&mut image).chunks_mut(3).enumerate();
    /// rows.for_each(|(row, pixels)| pixels.fill(row));
    /// assert_eq!(image, [0, 0, 0, 1, 1, 1]);
    /// ```
    pub fn chunks_mut(self, size: usize) -> Items<P::Chunks>
    where
        P: IntoChunks,
        S: StillIndexed,
    {
        self.chunks(size)
    }

    /// Pairs with the items of `other`, as many as the shorter one has. `other` is what [`items`] takes, or itself a
    /// chain, as of `chunks`, whose items still have an index.
    ///
    /// ```
    /// let mut totals = [1, 2];
    /// weald::fork::items(&mut totals).zip(&[10, 20, 30]).for_each(|(total, more)| *total += more);
    /// assert_eq!(totals, [11, 22]);
    ///
    /// let (mut image, light) = ([1, 2, 3, 4], [10, 20]);
    /// let rows = weald::fork::items(&mut image).chunks_mut(2);
    /// rows.zip(weald::fork::items(&light).chunks(1)).for_each(|(row, light)| row.fill(light[0]));
    /// assert_eq!(image, [10, 10, 20, 20]);
    /// ```
    pub fn zip<I: IntoParts>(self, other: I) -> Items<Zip<P, I::Parts>>
    where
        S: StillIndexed,
    {
        self.with(|parts| Zip::new(parts, other.into_parts()))
    }

    /// Each item with its index.
    ///
    /// ```
    /// let last = weald::fork::items(&["a", "b"]).enumerate().reduce(|_, later| later);
    /// assert_eq!(last, Some((1, &"b")));
    /// ```
    pub fn enumerate(self) -> Items<Enumerate<P>>
    where
        S: StillIndexed,
    {
        self.with(Enumerate::new)
    }

    fn with<Q>(self, change: impl FnOnce(P) -> Q) -> Items<Q> {
        Items {
            parts: change(self.parts),
            steps: AsIs,
            grain: self.grain,
        }
    }
}

// The steps.
impl<P: Parts, S: Steps<P::Item>> Items<P, S> {
    /// How finely the items are divided, in place of about a thousand pieces.
    ///
    /// ```
    /// use weald::fork::{self, Grain};
    ///
    /// let lengths: Vec<usize> = fork::items(&["slow", "slower"]).grain(Grain::of(1)).map(|s| s.len()).collect();
    /// assert_eq!(lengths, [4, 6]);
    /// ```
    pub fn grain(mut self, grain: Grain) -> Self {
        self.grain = grain;
        self
    }

    /// What `f` makes of each item.
    ///
    /// ```
    /// assert_eq!(weald::fork::items(0..10_u32).map(|n| n * n).sum::<u32>(), 285);
    /// ```
    pub fn map<R, F: Fn(S::Out) -> R + Sync>(self, f: F) -> Items<P, Map<S, F>> {
        self.then(|before| Map { before, f })
    }

    /// The items for which `f` returns true.
    ///
    /// ```
    /// assert_eq!(weald::fork::items(0..100).filter(|n| n % 7 == 0).count(), 15);
    /// ```
    pub fn filter<F: Fn(&S::Out) -> bool + Sync>(self, f: F) -> Items<P, Filter<S, F>> {
        self.then(|before| Filter { before, f })
    }

    /// All items of what `f` makes of each.
    ///
    /// ```
    /// let words: Vec<&str> = weald::fork::items(&["a b", "c"]).flat_map(|line| line.split(' ')).collect();
    /// assert_eq!(words, ["a", "b", "c"]);
    /// ```
    pub fn flat_map<I: IntoIterator, F: Fn(S::Out) -> I + Sync>(
        self,
        f: F,
    ) -> Items<P, FlatMap<S, F>> {
        self.then(|before| FlatMap { before, f })
    }

    fn then<R>(self, step: impl FnOnce(S) -> R) -> Items<P, R> {
        Items {
            parts: self.parts,
            steps: step(self.steps),
            grain: self.grain,
        }
    }
}

// The ends of a chain.
impl<P: Parts, S: Steps<P::Item>> Items<P, S> {
    /// Runs `f` on each item.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each): with the panic of the first item that panics.
    ///
    /// ```
    /// let mut names = vec![String::from("ash")];
    /// weald::fork::items(&mut names).for_each(|name| name.push('!'));
    /// assert_eq!(names, ["ash!"]);
    /// ```
    #[track_caller]
    pub fn for_each(self, f: impl Fn(S::Out) + Sync) {
        let steps = &self.steps;
        let leaf = |piece: P| {
            steps.apply(piece.items()).for_each(&f);
            Ok::<(), Infallible>(())
        };
        never(
            self.grain
                .run_in_any_groups(self.parts, &leaf, &|(), ()| ()),
        );
    }

    /// Folds the items of each piece into a value that begins as `start()`, and combines the values of neighbouring
    /// pieces, of which there are about a hundred if the items are more than 1024. `start()` should change nothing, as
    /// 0 does in a sum.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each).
    ///
    /// ```
    /// let letters = weald::fork::items(&["ash", "elm"]).fold(
    ///     || [0; 26],
    ///     |mut counts, word| {
    ///         word.bytes().for_each(|letter| counts[usize::from(letter - b'a')] += 1);
    ///         counts
    ///     },
    ///     |mut left, right| {
    ///         left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    ///         left
    ///     },
    /// );
    /// assert_eq!(letters[0], 1);
    /// ```
    #[track_caller]
    pub fn fold<R: Send>(
        self,
        start: impl Fn() -> R + Sync,
        fold: impl Fn(R, S::Out) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> R {
        let steps = &self.steps;
        let leaf = |piece: P| Ok::<R, Infallible>(steps.apply(piece.items()).fold(start(), &fold));
        let grain = self.grain.for_fold(self.parts.len());
        never(grain.run(self.parts, &leaf, &combine))
    }

    /// Combines neighbours, in order; none if there are no items.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each).
    ///
    /// ```
    /// assert_eq!(weald::fork::items(&[3, 9, 4]).map(|n| *n).reduce(i32::max), Some(9));
    /// ```
    #[track_caller]
    pub fn reduce(self, combine: impl Fn(S::Out, S::Out) -> S::Out + Sync) -> Option<S::Out>
    where
        S::Out: Send,
    {
        let steps = &self.steps;
        let both = |left: Option<S::Out>, right: Option<S::Out>| match (left, right) {
            (Some(left), Some(right)) => Some(combine(left, right)),
            (left, right) => left.or(right),
        };
        let leaf = |piece: P| Ok::<_, Infallible>(steps.apply(piece.items()).reduce(&combine));
        never(self.grain.run(self.parts, &leaf, &both))
    }

    /// The sum of the items, whose type also adds up sums.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each).
    ///
    /// ```
    /// assert_eq!(weald::fork::items(1..=100_u64).sum::<u64>(), 5050);
    /// ```
    #[track_caller]
    pub fn sum<R>(self) -> R
    where
        R: std::iter::Sum<S::Out> + std::iter::Sum<R> + Send,
    {
        let steps = &self.steps;
        let leaf = |piece: P| Ok::<R, Infallible>(steps.apply(piece.items()).sum());
        let add = |left: R, right: R| [left, right].into_iter().sum();
        never(self.grain.run(self.parts, &leaf, &add))
    }

    /// The number of items that are left after all steps.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each).
    ///
    /// ```
    /// assert_eq!(weald::fork::items(&[1, 2, 3]).filter(|n| **n > 1).count(), 2);
    /// ```
    #[track_caller]
    pub fn count(self) -> usize {
        let steps = &self.steps;
        let leaf = |piece: P| Ok::<usize, Infallible>(steps.apply(piece.items()).count());
        let add = |left, right| left + right;
        never(self.grain.run_in_any_groups(self.parts, &leaf, &add))
    }

    /// All items in their order, in any collection.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each).
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// let lengths: BTreeMap<&str, usize> =
    ///     weald::fork::items(&["oak", "birch"]).map(|word| (*word, word.len())).collect();
    /// assert_eq!(lengths["birch"], 5);
    /// ```
    #[track_caller]
    pub fn collect<C: FromIterator<S::Out>>(self) -> C
    where
        S::Out: Send,
    {
        let steps = &self.steps;
        let leaf = |piece: P, mut all: Vec<S::Out>| {
            all.extend(steps.apply(piece.items()));
            Ok::<_, Infallible>(all)
        };
        // What is left of a filter may need much less room than the items.
        let start = |items| match S::KEEPS_COUNT {
            true => Vec::with_capacity(items),
            false => Vec::new(),
        };
        let all = never(self.grain.gather(self.parts, &leaf, &start));
        all.into_iter().collect()
    }

    /// An item for which `f` returns true, if there is one: of several, any one. The other workers stop soon: none
    /// begins with a further item.
    ///
    /// # Panics
    /// As [`for_each`](crate::fork::for_each), unless an earlier item was found.
    ///
    /// ```
    /// let found = weald::fork::items(0..1_000_000).find_any(|n| n % 4_321 == 4_320);
    /// assert_eq!(found.map(|n| n % 4_321), Some(4_320));
    /// ```
    #[track_caller]
    pub fn find_any(self, f: impl Fn(&S::Out) -> bool + Sync) -> Option<S::Out>
    where
        S::Out: Send,
    {
        let steps = &self.steps;
        // Relaxed: at worst some more items are looked at. The item itself travels through the join.
        let is_found = AtomicBool::new(false);
        let leaf = |piece: P| {
            // Looked at before the steps, which may be long and leave nothing; and after them, if one item may become
            // many.
            let wanted = |_: &_| !is_found.load(Ordering::Relaxed);
            let mut items = steps.apply(piece.items().take_while(wanted));
            let ended = items.try_for_each(|item| {
                if S::MULTIPLY && is_found.load(Ordering::Relaxed) {
                    return ControlFlow::Break(None);
                }
                match f(&item) {
                    true => ControlFlow::Break(Some(item)),
                    false => ControlFlow::Continue(()),
                }
            });
            match ended {
                ControlFlow::Break(Some(item)) => {
                    is_found.store(true, Ordering::Relaxed);
                    Err(item)
                }
                ControlFlow::Break(None) | ControlFlow::Continue(()) => Ok(()),
            }
        };
        let ended = self
            .grain
            .run_in_any_groups(self.parts, &leaf, &|(), ()| ());
        ended.err()
    }
}
