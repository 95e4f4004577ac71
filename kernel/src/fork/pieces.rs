//! Divides work into pieces, runs them through `join`, and combines the results in order.
//!
//! Only the number of items and the grain decide how the work is divided. So results are combined in the same
//! way whichever workers take part, and floating-point sums come out the same to the last bit.
//!
//! Neighbouring pieces that are cheap run one after the other without a fork ([`Batches`]), in the same division.
//! Everything behind such a batch has been forked.
//!
//! Of several failures, that of the first item wins, whenever it happens: a piece is skipped only if an earlier
//! one has failed. A panic is a failure like an error.

pub(in crate::fork) mod batches;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use self::batches::{Batches, Pieces};
use crate::{
    fork::{join, parts::Parts},
    report::payload::{self, Payload},
    sys::{Mutex, lock},
};

/// How a piece ended.
enum PieceEnd<R, E> {
    Done(R),
    Failed(E),
    Panicked(Payload),
    /// Not run, because an earlier piece has failed.
    Skipped,
}

impl<R, E> PieceEnd<R, E> {
    fn map<S>(self, f: impl FnOnce(R) -> S) -> PieceEnd<S, E> {
        match self {
            PieceEnd::Done(result) => PieceEnd::Done(f(result)),
            PieceEnd::Failed(error) => PieceEnd::Failed(error),
            PieceEnd::Panicked(payload) => PieceEnd::Panicked(payload),
            PieceEnd::Skipped => PieceEnd::Skipped,
        }
    }

    /// How the whole ended.
    fn into_result(self) -> Result<R, E> {
        match self {
            PieceEnd::Done(result) => Ok(result),
            PieceEnd::Failed(error) => Err(error),
            PieceEnd::Panicked(payload) => resume_unwind(payload),
            PieceEnd::Skipped => unreachable!("the first piece that fails is not skipped"),
        }
    }
}

/// How one call divides its work, and what it does with the pieces.
struct Division<'a, L, C> {
    batches: Batches,
    leaf: &'a L,
    combine: &'a C,
    /// The first item of the first piece that is known to have failed.
    failed: AtomicUsize,
}

/// Runs `leaf` on pieces, and combines their results in order.
///
/// The error, or the panic, is that of the first piece that fails.
pub(super) fn run<P, R, E, L, C>(parts: P, pieces: Pieces, leaf: &L, combine: &C) -> Result<R, E>
where
    P: Parts,
    R: Send,
    E: Send,
    L: Fn(P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    Division::new(pieces, leaf, combine)
        .run(parts, 0)
        .into_result()
}

/// Runs `leaf` on pieces, each with the vector to which it appends what it makes of its items, in order.
///
/// Pieces that run one after the other append to one vector. `start` makes the first one, and those of stolen parts,
/// for so many items.
///
/// The error, or the panic, is that of the first piece that fails.
pub(super) fn gather<P, T, E, L, C>(
    parts: P,
    pieces: Pieces,
    leaf: &L,
    start: &C,
) -> Result<Vec<T>, E>
where
    P: Parts,
    T: Send,
    E: Send,
    L: Fn(P, Vec<T>) -> Result<Vec<T>, E> + Sync,
    C: Fn(usize) -> Vec<T> + Sync,
{
    let all = start(parts.len());
    Division::new(pieces, leaf, start)
        .gather(parts, 0, all)
        .into_result()
}

impl<'a, L, C> Division<'a, L, C> {
    fn new(pieces: Pieces, leaf: &'a L, combine: &'a C) -> Self {
        Self {
            batches: Batches::new(pieces),
            leaf,
            combine,
            failed: AtomicUsize::new(usize::MAX),
        }
    }

    /// `first` is the index of the first item of `parts`.
    fn run<P, R, E>(&self, parts: P, first: usize) -> PieceEnd<R, E>
    where
        P: Parts,
        R: Send,
        E: Send,
        L: Fn(P) -> Result<R, E> + Sync,
        C: Fn(R, R) -> R + Sync,
    {
        if self.is_in_vain(first) {
            return PieceEnd::Skipped;
        }
        let len = parts.len();
        if len <= self.batches.items() {
            return self
                .batches
                .measure(first, || self.guard(first, || self.run_in_sequence(parts)));
        }
        let (left, right) = parts.divide(len / 2);
        let (left, right) = join(
            || self.run(left, first),
            || self.run(right, first + len / 2),
        );
        match (left, right) {
            (PieceEnd::Done(left), PieceEnd::Done(right)) => {
                self.guard(first, || Ok((self.combine)(left, right)))
            }
            (PieceEnd::Done(_), failed) => failed,
            (failed, PieceEnd::Panicked(loser)) => {
                payload::discard(loser);
                failed
            }
            (failed, _) => failed,
        }
    }

    /// As [`run`](Division::run), without forks. The first piece that fails is the last that begins.
    fn run_in_sequence<P, R, E>(&self, parts: P) -> Result<R, E>
    where
        P: Parts,
        L: Fn(P) -> Result<R, E>,
        C: Fn(R, R) -> R,
    {
        let len = parts.len();
        if len <= self.batches.undivided() {
            return (self.leaf)(parts);
        }
        let (left, right) = parts.divide(len / 2);
        let left = self.run_in_sequence(left)?;
        let right = self.run_in_sequence(right)?;
        Ok((self.combine)(left, right))
    }

    /// Appends to `into` what `parts` make. `first` is the index of their first item.
    fn gather<P, T, E>(&self, parts: P, first: usize, into: Vec<T>) -> PieceEnd<Vec<T>, E>
    where
        P: Parts,
        T: Send,
        E: Send,
        L: Fn(P, Vec<T>) -> Result<Vec<T>, E> + Sync,
        C: Fn(usize) -> Vec<T> + Sync,
    {
        if self.is_in_vain(first) {
            return PieceEnd::Skipped;
        }
        let len = parts.len();
        if len <= self.batches.items() {
            return self
                .batches
                .measure(first, || self.guard(first, || (self.leaf)(parts, into)));
        }
        let (left, right) = parts.divide(len / 2);
        // What the left half has gathered, until the right half appends to it: if that begins later, as it does
        // unless a thief has it.
        let gathered = Mutex::new(None);
        let (left, right) = join(
            || {
                self.gather(left, first, into)
                    .map(|all| *lock(&gathered) = Some(all))
            },
            || {
                let before = lock(&gathered).take();
                let into = before.unwrap_or_else(|| (self.combine)(right.len()));
                self.gather(right, first + len / 2, into)
            },
        );
        match (left, right) {
            (PieceEnd::Done(()), right) => right.map(|right| append(lock(&gathered).take(), right)),
            (failed, right) => {
                if let PieceEnd::Panicked(loser) = right {
                    payload::discard(loser);
                }
                failed.map(|()| Vec::new())
            }
        }
    }

    /// Whether an earlier piece has failed. Relaxed: at worst a piece runs in vain.
    fn is_in_vain(&self, first: usize) -> bool {
        self.failed.load(Ordering::Relaxed) < first
    }

    /// Runs `act`, and records a failure.
    fn guard<R, E>(&self, first: usize, act: impl FnOnce() -> Result<R, E>) -> PieceEnd<R, E> {
        let ended = match catch_unwind(AssertUnwindSafe(act)) {
            Ok(Ok(result)) => return PieceEnd::Done(result),
            Ok(Err(error)) => PieceEnd::Failed(error),
            Err(payload) => PieceEnd::Panicked(payload),
        };
        self.failed.fetch_min(first, Ordering::Relaxed);
        ended
    }
}

fn append<T>(left: Option<Vec<T>>, mut right: Vec<T>) -> Vec<T> {
    match left {
        None => right,
        Some(mut all) => {
            all.append(&mut right);
            all
        }
    }
}
