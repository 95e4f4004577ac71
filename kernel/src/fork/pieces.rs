//! Divides work into pieces, runs them through `join`, and combines the results in order.
//!
//! Only the number of items and the grain decide how the work is divided. So results are combined in the same
//! way whichever workers take part, and floating-point sums come out the same to the last bit.
//!
//! Of several failures, that of the first item wins, whenever it happens: a piece is skipped only if an earlier
//! one has failed. A panic is a failure like an error.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    fork::{join, parts::Parts},
    report::payload::{self, Payload},
};

/// How a piece ended.
enum PieceEnd<R, E> {
    Done(R),
    Failed(E),
    Panicked(Payload),
    /// Not run, because an earlier piece has failed.
    Skipped,
}

/// How one call divides its work, and what it does with the pieces.
struct Division<'a, L, C> {
    grain: usize,
    leaf: &'a L,
    combine: &'a C,
    /// The first item of the first piece that is known to have failed.
    failed: AtomicUsize,
}

/// Runs `leaf` on pieces of at most `grain` items, and combines their results in order.
///
/// The error, or the panic, is that of the first piece that fails.
pub(super) fn run<P, R, E, L, C>(parts: P, grain: usize, leaf: &L, combine: &C) -> Result<R, E>
where
    P: Parts,
    R: Send,
    E: Send,
    L: Fn(P) -> Result<R, E> + Sync,
    C: Fn(R, R) -> R + Sync,
{
    let division = Division {
        grain: grain.max(1),
        leaf,
        combine,
        failed: AtomicUsize::new(usize::MAX),
    };
    match division.run(parts, 0) {
        PieceEnd::Done(result) => Ok(result),
        PieceEnd::Failed(error) => Err(error),
        PieceEnd::Panicked(payload) => resume_unwind(payload),
        PieceEnd::Skipped => unreachable!("the first piece that fails is not skipped"),
    }
}

impl<L, C> Division<'_, L, C> {
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
        if len <= self.grain {
            return self.run_piece(parts, first);
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

    /// Whether an earlier piece has failed. Relaxed: at worst a piece runs in vain.
    fn is_in_vain(&self, first: usize) -> bool {
        self.failed.load(Ordering::Relaxed) < first
    }

    fn run_piece<P, R, E>(&self, parts: P, first: usize) -> PieceEnd<R, E>
    where
        L: Fn(P) -> Result<R, E>,
    {
        self.guard(first, || (self.leaf)(parts))
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
