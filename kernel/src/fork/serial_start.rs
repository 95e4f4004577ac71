//! The first items of a chain, which run without a fork until the clock has told what an item takes.
//!
//! A fork costs a few nanoseconds, but it wakes a worker, which costs its caller some ten microseconds and begins later
//! still. And each piece has a price of its own: its call, and often a value that is allocated and combined. A chain of
//! 10,000 additions takes two microseconds in all. So nothing is forked, and pieces double, until what is left
//! is worth a fork ([`WORTH`]). Of a chain of few items each may take long, so it begins in this way only if the last
//! one at the same place of the program was short.
//!
//! What is left is then divided as it would have been at first, or more coarsely if its order allows.
//! No piece has more than a part of all items ([`SHARE`]), because the next item may take a thousand times as long as
//! all before it.

use std::{
    mem,
    panic::Location,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{
    fork::{
        join,
        parts::Parts,
        pieces::{Division, PieceEnd},
    },
    scheduler::workers::current,
};

/// With at most this number of items for each worker, a chain has few.
const FEW: usize = 8;
/// What is left is worth a fork if it takes longer than this by itself: a worker that is woken takes its first half
/// after some 30 µs.
const WORTH: Duration = Duration::from_micros(60);
/// How long items run before what they take means something: the first ones miss the caches.
const LEAST: Duration = Duration::from_micros(10);
/// A piece without a fork has at most this part of all items, but up to [`SMALL_PIECE`] in any case.
const SHARE: usize = 16;
const SMALL_PIECE: usize = 4;
/// How many times as many items as are done the next piece may have.
const GROWTH: usize = 3;
/// About what a forked piece takes, if it may have any size.
const PIECE: Duration = Duration::from_micros(4);
/// Pieces of any size are at least and at most this many, if there are as many items.
const PIECES: (usize, usize) = (128, 1024);

/// How deep most divisions are, so that what is noted of them need not grow.
const DEPTH: usize = 32;

/// Whether a chain has few items.
pub(super) fn are_few(len: usize) -> bool {
    len <= FEW || len <= FEW * current::with_current(|shared| shared.workers.len())
}

/// For some places of the program, by their addresses, whether the last chain of few items there was short: then the
/// address of its location, else zero. All accesses are relaxed: at worst a chain begins as another one should.
static SHORT: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

fn entry(site: &'static Location<'static>) -> (&'static AtomicUsize, usize) {
    let address = ptr::from_ref(site).addr();
    (&SHORT[address / align_of_val(site) % SHORT.len()], address)
}

/// Whether the last chain of few items at this place was short.
pub(super) fn was_short(site: &'static Location<'static>) -> bool {
    let (entry, address) = entry(site);
    entry.load(Ordering::Relaxed) == address
}

/// Notes how long a chain of few items took at this place.
pub(super) fn note(site: &'static Location<'static>, begin: Instant) {
    let (entry, address) = entry(site);
    let is_short = begin.elapsed() <= WORTH;
    if is_short != (entry.load(Ordering::Relaxed) == address) {
        entry.store(if is_short { address } else { 0 }, Ordering::Relaxed);
    }
}

/// What the items of a chain take.
struct Meter {
    begin: Instant,
    len: usize,
    done: usize,
    /// The number of items that were done at the last look at the clock.
    seen: usize,
    /// How long they had taken.
    taken: Duration,
    /// The items between the last two looks, and how long these took.
    latest: (usize, Duration),
}

impl Meter {
    fn new(len: usize) -> Meter {
        Meter {
            begin: Instant::now(),
            len,
            done: 0,
            seen: 0,
            taken: Duration::ZERO,
            latest: (1, Duration::ZERO),
        }
    }

    /// How many items may run before the next look at the clock.
    fn piece(&self) -> usize {
        let most = (self.len / SHARE).max(SMALL_PIECE);
        (GROWTH * self.done).clamp(1, most)
    }

    /// After `count` more items: whether what is left is worth a fork.
    fn says_fork_after(&mut self, count: usize) -> bool {
        self.done += count;
        let is_due = self.done - self.seen >= self.piece().min(self.seen);
        is_due && self.is_worth_a_fork_at(self.begin.elapsed())
    }

    /// The same at a look, so long after the begin.
    fn is_worth_a_fork_at(&mut self, now: Duration) -> bool {
        self.latest = (self.done - self.seen, now.saturating_sub(self.taken));
        (self.seen, self.taken) = (self.done, now);
        now >= LEAST && self.time_of(self.len - self.done) > WORTH.as_nanos()
    }

    /// What `count` items take, in nanoseconds, if they take as long as the latest.
    fn time_of(&self, count: usize) -> u128 {
        let (items, taken) = self.latest;
        taken.as_nanos() * count as u128 / items as u128
    }

    /// The items of a forked piece that may have any size.
    fn grain(&self) -> usize {
        let (least, most) = PIECES;
        let pieces = self.time_of(self.len) / PIECE.as_nanos();
        let pieces = usize::try_from(pieces).unwrap_or(most);
        self.len.div_ceil(pieces.clamp(least, most))
    }
}

/// Items that have not run, and the index of the first.
type Unrun<P> = (P, usize);

/// Adds the items to what `start` returns, one after the other, and combines what was forked. Where it divides depends
/// on time, so `add` and `combine` must give the same whatever is divided. `fork` begins the root fork.
pub(super) fn gather<P, R, E, S, A, C>(
    parts: P,
    (start, add, combine): (&S, &A, &C),
    fork: impl FnOnce(&mut dyn FnMut()),
) -> Result<R, E>
where
    P: Parts,
    R: Send,
    E: Send,
    S: Fn() -> R + Sync,
    A: Fn(R, P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    let leaf = |piece: P| add(start(), piece);
    let mut division = Division::new(1, &leaf, combine);
    let mut meter = Meter::new(parts.len());
    let mut sum = start();
    let mut left = Vec::with_capacity(DEPTH);
    left.push((parts, 0));
    while let Some((parts, first)) = left.pop() {
        let len = parts.len();
        if len > meter.piece() {
            let (one, other) = parts.divide(len / 2);
            left.push((other, first + len / 2));
            left.push((one, first));
            continue;
        }
        match division.guard(first, || add(sum, parts)) {
            PieceEnd::Done(added) => sum = added,
            failed => {
                drop(left);
                return failed.result();
            }
        }
        if !left.is_empty() && meter.says_fork_after(len) {
            division.grain = meter.grain();
            let mut ends = Vec::new();
            fork(&mut || ends = run_all(&division, mem::take(&mut left)));
            let all = ends.into_iter().rev();
            let sum = PieceEnd::Done(sum);
            return all
                .fold(sum, |sum, end| division.both(sum, end, 0))
                .result();
        }
    }
    Ok(sum)
}

/// What is left to do in a tree of pieces, the next step last.
enum Step<P, R, E> {
    Run(Unrun<P>),
    /// The two results before it become one.
    Combine(usize),
    /// What was forked.
    Ended(PieceEnd<R, E>),
}

/// As [`run`](super::pieces::run): the pieces are the same, and so is the order in which they are combined. `fork`
/// begins the root fork.
pub(super) fn run<P, R, E, L, C>(
    parts: P,
    grain: usize,
    (leaf, combine): (&L, &C),
    fork: impl FnOnce(&mut dyn FnMut()),
) -> Result<R, E>
where
    P: Parts,
    R: Send,
    E: Send,
    L: Fn(P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    let division = Division::new(grain, leaf, combine);
    let mut meter = Meter::new(parts.len());
    let mut fork = Some(fork);
    let mut ended: Vec<PieceEnd<R, E>> = Vec::with_capacity(DEPTH);
    let mut steps = Vec::with_capacity(2 * DEPTH);
    steps.push(Step::Run((parts, 0)));
    while let Some(step) = steps.pop() {
        match step {
            Step::Run((_, first)) if division.is_in_vain(first) => ended.push(PieceEnd::Skipped),
            Step::Run((parts, first)) if parts.len() > division.grain => {
                let half = parts.len() / 2;
                let (left, right) = parts.divide(half);
                steps.push(Step::Combine(first));
                steps.push(Step::Run((right, first + half)));
                steps.push(Step::Run((left, first)));
            }
            Step::Run((parts, first)) => {
                let len = parts.len();
                ended.push(division.run_piece(parts, first));
                if fork.is_some()
                    && meter.says_fork_after(len)
                    && let Some(fork) = fork.take()
                {
                    steps = forked(&division, steps, fork);
                }
            }
            Step::Combine(first) => {
                let right = ended.pop().expect("both were pushed");
                let left = ended.pop().expect("both were pushed");
                ended.push(division.both(left, right, first));
            }
            Step::Ended(end) => ended.push(end),
        }
    }
    ended.pop().expect("the whole tree has ended").result()
}

/// The same steps, after all that was to run has run on any workers.
fn forked<P, R, E, L, C>(
    division: &Division<'_, L, C>,
    steps: Vec<Step<P, R, E>>,
    fork: impl FnOnce(&mut dyn FnMut()),
) -> Vec<Step<P, R, E>>
where
    P: Parts,
    R: Send,
    E: Send,
    L: Fn(P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    let (mut left, mut places) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Run(rest) => {
                places.push(None);
                left.push(rest);
            }
            other => places.push(Some(other)),
        }
    }
    let mut ends = Vec::new();
    fork(&mut || ends = run_all(division, mem::take(&mut left)));
    let mut ends = ends.into_iter();
    let mut ended = || Step::Ended(ends.next().expect("each has run"));
    places
        .into_iter()
        .map(|place| place.unwrap_or_else(&mut ended))
        .collect()
}

/// Runs all of these, of which the first ones are the longest, on any workers.
fn run_all<P, R, E, L, C>(
    division: &Division<'_, L, C>,
    mut left: Vec<Unrun<P>>,
) -> Vec<PieceEnd<R, E>>
where
    P: Parts,
    R: Send,
    E: Send,
    L: Fn(P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    if left.is_empty() {
        return Vec::new();
    }
    let (parts, first) = left.remove(0);
    let (shorter, longest) = join(|| run_all(division, left), || division.run(parts, first));
    let mut ends = Vec::from([longest]);
    ends.extend(shorter);
    ends
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Runs the pieces of a chain whose item with this index takes so long. Returns how many items ran without a fork,
    /// and the length of the longest piece.
    fn unforked(len: usize, time_of: impl Fn(usize) -> Duration) -> (usize, usize) {
        let (mut meter, mut now, mut longest) = (Meter::new(len), Duration::ZERO, 0);
        while meter.done < len {
            let piece = meter.piece().min(len - meter.done);
            longest = longest.max(piece);
            now += (meter.done..meter.done + piece).map(&time_of).sum();
            meter.done += piece;
            if meter.is_worth_a_fork_at(now) {
                break;
            }
        }
        (meter.done, longest)
    }

    #[test]
    fn a_short_chain_is_not_forked() {
        assert_eq!(unforked(10_000, |_| Duration::from_nanos(2)), (10_000, 625));
        assert_eq!(unforked(100, |_| Duration::from_nanos(300)).0, 100);
        // The first items miss the caches.
        let cold = |index| Duration::from_nanos(if index < 10 { 800 } else { 1 });
        assert_eq!(unforked(10_000, cold).0, 10_000);
    }

    #[test]
    fn a_costly_item_is_followed_by_a_fork() {
        assert_eq!(unforked(100, |_| Duration::from_millis(1)).0, 1);
        assert!(unforked(1_000_000, |_| Duration::from_nanos(2)).0 < 20_000);
        let late = |index| Duration::from_millis(u64::from(index >= 500));
        let (done, longest) = unforked(1_000, late);
        assert!(done > 500 && done <= 500 + longest, "{done}");
        assert_eq!(longest, 1_000 / SHARE);
    }

    #[test]
    fn a_place_of_the_program_is_remembered_as_short_until_a_long_chain() {
        let site = Location::caller();
        assert!(!was_short(site));
        note(site, Instant::now());
        assert!(was_short(site));
        note(site, Instant::now() - 2 * WORTH);
        assert!(!was_short(site));
    }
}
