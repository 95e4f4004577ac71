//! `for_each`, `map` and `reduce`, and how finely they divide.

use std::{convert::Infallible, panic::Location, time::Instant};

use crate::fork::{
    parts::{IntoParts, Parts},
    pieces, root_fork, serial_start,
};

/// Into how many pieces work is divided whose order of combining is always the same. Only the number of items decides,
/// so pieces of many items take some time even if an item takes none, and many items make pieces for many workers.
struct Shape {
    /// So many pieces at first, or a piece for each item.
    few: usize,
    /// Until a piece has so many items,
    large: usize,
    /// and until there are so many pieces.
    many: usize,
}

const REDUCED: Shape = Shape {
    few: 32,
    large: 512,
    many: 512,
};
/// A fold makes a value of each piece, perhaps a large one, and combines it with the next.
const FOLDED: Shape = Shape {
    few: 16,
    large: 1024,
    many: 128,
};

impl Shape {
    fn grain(&self, len: usize) -> usize {
        let few = len.div_ceil(self.few);
        few.min(self.large).max(len.div_ceil(self.many))
    }
}

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
    /// Few items begin on several workers at once. Of more, the first ones run on the calling thread alone, until it is
    /// known what an item takes; then the others are divided into up to about a thousand pieces, but not into so many
    /// that a piece takes less than some microseconds. A [`reduce`] or a fold makes at most 512 pieces or 128, whose
    /// number depends on that of the items alone.
    pub fn auto() -> Grain {
        Grain::default()
    }

    /// Pieces of at most `items` items, and of more than half as many. 0 means the same as 1.
    ///
    /// The work is divided in this way from the beginning, whatever an item takes. Use 1 for items that take very long,
    /// if there are not many more of them than workers.
    pub fn of(items: usize) -> Grain {
        Grain { items: Some(items) }
    }

    /// As [`for_each`].
    #[track_caller]
    pub fn for_each<S: IntoParts>(self, items: S, f: impl Fn(S::Item) + Sync) {
        let add = |(), piece: S::Parts| {
            piece.items().for_each(&f);
            Ok(())
        };
        never(self.gather(items, &|| (), (&add, &|(), ()| ())));
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
        let add = |(), piece: S::Parts| piece.items().try_for_each(&f);
        self.gather(items, &|| (), (&add, &|(), ()| ()))
    }

    /// As [`map`].
    #[track_caller]
    pub fn map<S: IntoParts, R: Send>(self, items: S, f: impl Fn(S::Item) -> R + Sync) -> Vec<R> {
        let add = |mut pieces: Vec<Vec<R>>, piece: S::Parts| {
            last_of(&mut pieces).extend(piece.items().map(&f));
            Ok(pieces)
        };
        joined(never(self.gather(items, &Vec::new, (&add, &appended))))
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
        let add = |mut pieces: Vec<Vec<R>>, piece: S::Parts| {
            let results = last_of(&mut pieces);
            results.reserve(piece.len());
            for item in piece.items() {
                results.push(f(item)?);
            }
            Ok(pieces)
        };
        Ok(joined(self.gather(items, &Vec::new, (&add, &appended))?))
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

    /// What `leaf` makes of pieces, combined in an order that depends on the number of items alone.
    #[track_caller]
    pub(super) fn run<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        leaf: &(impl Fn(S::Parts) -> Result<R, E> + Sync),
        combine: &(impl Fn(R, R) -> R + Sync),
    ) -> Result<R, E> {
        self.run_as(&REDUCED, items, (leaf, combine))
    }

    /// The same of a fold.
    #[track_caller]
    pub(super) fn fold<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        leaf: &(impl Fn(S::Parts) -> Result<R, E> + Sync),
        combine: &(impl Fn(R, R) -> R + Sync),
    ) -> Result<R, E> {
        self.run_as(&FOLDED, items, (leaf, combine))
    }

    #[track_caller]
    fn run_as<S: IntoParts, R: Send, E: Send>(
        self,
        shape: &Shape,
        items: S,
        (leaf, combine): (
            &(impl Fn(S::Parts) -> Result<R, E> + Sync),
            &(impl Fn(R, R) -> R + Sync),
        ),
    ) -> Result<R, E> {
        let site = Location::caller();
        let parts = items.into_parts();
        let len = parts.len();
        let grain = self.items.unwrap_or_else(|| shape.grain(len));
        let serially =
            |parts| serial_start::run(parts, grain, (leaf, combine), |act| fork(site, act));
        match self.begins(len, site) {
            Begin::Serial => serially(parts),
            Begin::Few { serially: true } => noted(site, || serially(parts)),
            Begin::Few { serially: false } => {
                noted(site, || forked(site, parts, grain, (leaf, combine)))
            }
            Begin::Forked => forked(site, parts, grain, (leaf, combine)),
            Begin::Alone => pieces::run(parts, len, leaf, combine),
        }
    }

    /// Adds the items of pieces to what `start` returns, and combines neighbours. Unless the grain is set, time decides
    /// where the work is divided.
    #[track_caller]
    pub(super) fn gather<S: IntoParts, R: Send, E: Send>(
        self,
        items: S,
        start: &(impl Fn() -> R + Sync),
        (add, combine): (
            &(impl Fn(R, S::Parts) -> Result<R, E> + Sync),
            &(impl Fn(R, R) -> R + Sync),
        ),
    ) -> Result<R, E> {
        let site = Location::caller();
        let parts = items.into_parts();
        let len = parts.len();
        let grain = self.items.unwrap_or(1);
        let leaf = |piece: S::Parts| add(start(), piece);
        let serially =
            |parts| serial_start::gather(parts, (start, add, combine), |act| fork(site, act));
        match self.begins(len, site) {
            Begin::Serial => serially(parts),
            Begin::Few { serially: true } => noted(site, || serially(parts)),
            Begin::Few { serially: false } => {
                noted(site, || forked(site, parts, grain, (&leaf, combine)))
            }
            Begin::Forked => forked(site, parts, grain, (&leaf, combine)),
            Begin::Alone => leaf(parts),
        }
    }

    fn begins(self, len: usize, site: &'static Location<'static>) -> Begin {
        match self.items {
            _ if len <= self.items.unwrap_or(1) => Begin::Alone,
            Some(_) => Begin::Forked,
            None if serial_start::are_few(len) => Begin::Few {
                serially: serial_start::was_short(site),
            },
            None => Begin::Serial,
        }
    }
}

/// How a chain begins.
enum Begin {
    /// Without a fork, until that is worth it.
    Serial,
    /// In one of the two ways, and notes how long it took.
    Few { serially: bool },
    /// With a fork.
    Forked,
    /// As the only piece.
    Alone,
}

/// Notes how long the chain at `site` took.
fn noted<R>(site: &'static Location<'static>, run: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = run();
    serial_start::note(site, begin);
    result
}

/// [`pieces::run`] in the root fork of the call at `site`.
fn forked<P: Parts, R: Send, E: Send>(
    site: &'static Location<'static>,
    parts: P,
    grain: usize,
    (leaf, combine): (
        &(impl Fn(P) -> Result<R, E> + Sync),
        &(impl Fn(R, R) -> R + Sync),
    ),
) -> Result<R, E> {
    fork(site, || pieces::run(parts, grain, leaf, combine))
}

/// Begins a root fork for the call at `site`, so that it knows its caller.
fn fork<R>(site: &'static Location<'static>, act: impl FnOnce() -> R) -> R {
    root_fork::with_fork_deque(site, |_| act())
}

/// The vector to which the next items are added.
pub(super) fn last_of<R>(pieces: &mut Vec<Vec<R>>) -> &mut Vec<R> {
    if pieces.is_empty() {
        pieces.push(Vec::new());
    }
    pieces.last_mut().expect("there is one")
}

/// The vectors of neighbours.
pub(super) fn appended<R>(mut left: Vec<Vec<R>>, mut right: Vec<Vec<R>>) -> Vec<Vec<R>> {
    left.append(&mut right);
    left
}

/// All items in one vector.
pub(super) fn joined<R>(mut pieces: Vec<Vec<R>>) -> Vec<R> {
    if pieces.len() <= 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = Vec::with_capacity(pieces.iter().map(Vec::len).sum());
    pieces.into_iter().for_each(|piece| all.extend(piece));
    all
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
