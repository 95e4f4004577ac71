//! `for_each`, `map` and `reduce`, and how finely they divide.

use std::{convert::Infallible, panic::Location};

use crate::fork::{
    parts::{IntoParts, Parts},
    pieces::{
        self,
        batches::{Grouping, Pieces},
    },
    root_fork,
};

/// Into how many pieces work is divided by default: enough for many workers and uneven items, and few enough
/// that dividing costs microseconds.
const PIECES: usize = 1024;
/// The same for a fold, which makes a value of each piece, perhaps a large one, and combines it with the next.
const FOLDED_PIECES: usize = 128;

/// How finely [`for_each`], [`map`] and [`reduce`] divide their items.
///
/// ```
/// use weald::fork::Grain;
///
/// let lengths = Grain::of(1).map(&["a", "bc"], |text| text.len());
/// assert_eq!(lengths, [1, 2]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grain {
    items: Option<usize>,
}

impl Grain {
    /// About a thousand pieces. Of more than 1024 items, up to 16 neighbouring pieces run without forks between them as
    /// long as the clock says that they take a few microseconds.
    pub fn auto() -> Grain {
        Grain::default()
    }

    /// Pieces of at most `items` items, and of more than half as many. 0 means the same as 1.
    ///
    /// Use 1 for a few items that take very long; [`Grain::auto`] does so, too, for up to 1024 items.
    pub fn of(items: usize) -> Grain {
        Grain { items: Some(items) }
    }

    /// The same for a fold of `len` items.
    pub(super) fn for_fold(self, len: usize) -> Grain {
        match self.items {
            None if len > PIECES => Grain::of(len.div_ceil(FOLDED_PIECES)),
            _ => self,
        }
    }

    /// Up to [`PIECES`] items are each a piece of its own, which may wait for the others.
    fn pieces(self, len: usize, grouping: Grouping) -> Pieces {
        match self.items {
            Some(grain) => Pieces::forked(grain),
            None if len <= PIECES => Pieces::forked(1),
            None => Pieces::in_batches(len.div_ceil(PIECES), grouping),
        }
    }

    /// As [`for_each`].
    #[track_caller]
    pub fn for_each<S: IntoParts>(self, items: S, f: impl Fn(S::Item) + Sync) {
        let leaf = |piece: S::Parts| {
            piece.items().for_each(&f);
            Ok(())
        };
        never(self.run_in_any_groups(items, &leaf, &|(), ()| ()));
    }

    /// As [`try_for_each`].
    ///
    /// # Errors
    /// The error of the first item that fails.
    #[track_caller]
    pub fn try_for_each<S: IntoParts, E: Send>(
        self,
        items: S,
        f: impl Fn(S::Item) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let leaf = |piece: S::Parts| piece.items().try_for_each(&f);
        self.run_in_any_groups(items, &leaf, &|(), ()| ())
    }

    /// As [`map`].
    #[track_caller]
    pub fn map<S: IntoParts, R: Send>(self, items: S, f: impl Fn(S::Item) -> R + Sync) -> Vec<R> {
        never(self.try_map(items, |item| Ok(f(item))))
    }

    /// As [`try_map`].
    ///
    /// # Errors
    /// The error of the first item that fails.
    #[track_caller]
    pub fn try_map<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        f: impl Fn(S::Item) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let leaf = |piece: S::Parts, mut all: Vec<R>| {
            for result in piece.items().map(&f) {
                all.push(result?);
            }
            Ok(all)
        };
        self.gather(items, &leaf, &Vec::with_capacity)
    }

    /// As [`reduce`].
    #[track_caller]
    pub fn reduce<S: IntoParts, R: Send>(
        self,
        items: S,
        map: impl Fn(S::Item) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Option<R> {
        never(self.try_reduce(items, |item| Ok(map(item)), combine))
    }

    /// As [`try_reduce`].
    ///
    /// # Errors
    /// The error of the first item that fails.
    #[track_caller]
    pub fn try_reduce<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        map: impl Fn(S::Item) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Result<Option<R>, E> {
        let both = |left: Option<R>, right: Option<R>| match (left, right) {
            (Some(left), Some(right)) => Some(combine(left, right)),
            (left, right) => left.or(right),
        };
        let leaf = |piece: S::Parts| {
            let mut items = piece.items();
            let first = items.next().map(&map).transpose()?;
            items.try_fold(first, |sum, item| Ok(both(sum, Some(map(item)?))))
        };
        self.run(items, &leaf, &both)
    }

    /// Runs `leaf` on pieces, and combines the results of neighbours, in the same groups each time.
    #[track_caller]
    pub(super) fn run<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        leaf: &(impl Fn(S::Parts) -> Result<R, E> + Sync),
        combine: &(impl Fn(R, R) -> R + Sync),
    ) -> Result<R, E> {
        let parts = items.into_parts();
        let pieces = self.pieces(parts.len(), Grouping::Fixed);
        let run = |parts| pieces::run(parts, pieces, leaf, combine);
        in_root_fork(parts, pieces, Location::caller(), run)
    }

    /// As [`run`](Grain::run), for results that are the same in any groups.
    #[track_caller]
    pub(super) fn run_in_any_groups<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        leaf: &(impl Fn(S::Parts) -> Result<R, E> + Sync),
        combine: &(impl Fn(R, R) -> R + Sync),
    ) -> Result<R, E> {
        let parts = items.into_parts();
        let pieces = self.pieces(parts.len(), Grouping::Free);
        let run = |parts| pieces::run(parts, pieces, leaf, combine);
        in_root_fork(parts, pieces, Location::caller(), run)
    }

    /// Runs `leaf` on pieces, each with the vector that it appends to; `start` makes one for so many items.
    #[track_caller]
    pub(super) fn gather<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        leaf: &(impl Fn(S::Parts, Vec<R>) -> Result<Vec<R>, E> + Sync),
        start: &(impl Fn(usize) -> Vec<R> + Sync),
    ) -> Result<Vec<R>, E> {
        let parts = items.into_parts();
        let pieces = self.pieces(parts.len(), Grouping::Free);
        let gather = |parts| pieces::gather(parts, pieces, leaf, start);
        in_root_fork(parts, pieces, Location::caller(), gather)
    }
}

/// Runs `act` in a root fork that begins here, so that it knows its caller, unless the parts are a single piece.
fn in_root_fork<P: Parts, R>(
    parts: P,
    pieces: Pieces,
    site: &'static Location<'static>,
    act: impl FnOnce(P) -> R,
) -> R {
    match pieces.divide(parts.len()) {
        true => root_fork::with_fork_deque(site, |_| act(parts)),
        false => act(parts),
    }
}

pub(super) fn never<R>(result: Result<R, Infallible>) -> R {
    match result {
        Ok(result) => result,
        Err(never) => match never {},
    }
}

/// Runs `f` on every item, on several workers if some are idle.
///
/// # Panics
/// With the panic of the first item that panics. Items before it have run; later ones may have.
///
/// ```
/// let mut numbers = vec![1, 2, 3];
/// weald::fork::for_each(&mut numbers, |number| *number *= 10);
/// assert_eq!(numbers, [10, 20, 30]);
/// ```
#[track_caller]
pub fn for_each<S: IntoParts>(items: S, f: impl Fn(S::Item) + Sync) {
    Grain::auto().for_each(items, f);
}

/// Runs `f` on every item until one fails, on several workers if some are idle.
///
/// # Errors
/// The error of the first item that fails, whichever worker is faster. Items before it have run; later ones
/// may have.
///
/// # Panics
/// With the panic of the first item that panics, if no earlier one fails.
///
/// ```
/// let odd = weald::fork::try_for_each(0..100, |number| match number % 7 {
///     6 => Err(number),
///     _ => Ok(()),
/// });
/// assert_eq!(odd, Err(6));
/// ```
#[track_caller]
pub fn try_for_each<S: IntoParts, E: Send>(
    items: S,
    f: impl Fn(S::Item) -> Result<(), E> + Sync,
) -> Result<(), E> {
    Grain::auto().try_for_each(items, f)
}

/// Returns what `f` makes of every item, in the order of the items.
///
/// # Panics
/// As [`for_each`].
///
/// ```
/// let squares = weald::fork::map(0..5_u64, |number| number * number);
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
#[track_caller]
pub fn map<S: IntoParts, R: Send>(items: S, f: impl Fn(S::Item) -> R + Sync) -> Vec<R> {
    Grain::auto().map(items, f)
}

/// As [`map`], until an item fails.
///
/// # Errors
/// As [`try_for_each`].
///
/// # Panics
/// As [`try_for_each`].
///
/// ```
/// let numbers = weald::fork::try_map(&["1", "x", "y"], |text| text.parse::<u8>().map_err(|_| *text));
/// assert_eq!(numbers, Err("x"));
/// ```
#[track_caller]
pub fn try_map<S: IntoParts, R: Send, E: Send>(
    items: S,
    f: impl Fn(S::Item) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    Grain::auto().try_map(items, f)
}

/// Combines what `map` makes of every item. None if there are no items.
///
/// `combine` gets neighbours, always in the order of the items, and should be associative. Only the number of
/// items decides which pairs are combined. So the result is the same each time even if `combine` is not quite
/// associative, as with floating-point sums.
///
/// # Panics
/// As [`for_each`].
///
/// ```
/// let longest = weald::fork::reduce(&["a", "ccc", "bb"], |text| text.len(), usize::max);
/// assert_eq!(longest, Some(3));
/// ```
#[track_caller]
pub fn reduce<S: IntoParts, R: Send>(
    items: S,
    map: impl Fn(S::Item) -> R + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> Option<R> {
    Grain::auto().reduce(items, map, combine)
}

/// As [`reduce`], until an item fails.
///
/// # Errors
/// As [`try_for_each`].
///
/// # Panics
/// As [`try_for_each`].
///
/// ```
/// let sum = weald::fork::try_reduce(
///     &["1", "2"],
///     |text| text.parse::<u32>(),
///     |a, b| a + b,
/// );
/// assert_eq!(sum, Ok(Some(3)));
/// ```
#[track_caller]
pub fn try_reduce<S: IntoParts, R: Send, E: Send>(
    items: S,
    map: impl Fn(S::Item) -> Result<R, E> + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> Result<Option<R>, E> {
    Grain::auto().try_reduce(items, map, combine)
}
