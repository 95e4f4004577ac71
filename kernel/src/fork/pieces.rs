//! Divides work into pieces, runs them by `join`, and puts the results together in their order.
//!
//! How the work is divided follows from the number of items and the grain only. So results are put together
//! in the same way whoever takes part, and sums of fractions come out the same to the last bit.
//!
//! Of several failures that of the first item wins, whenever it comes: a piece is left out only if an earlier
//! one has failed. A panic is a failure like an error.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::fork::{join, parts::Parts};

/// How a piece ended.
enum PieceEnd<R, E> {
    Done(R),
    Failed(E),
    Panicked(Box<dyn Any + Send>),
    /// A piece before it has failed.
    LeftOut,
}

/// One division of work.
struct Division<'a, L, C> {
    grain: usize,
    leaf: &'a L,
    combine: &'a C,
    /// The first item of the first piece that is known to have failed.
    failed: AtomicUsize,
}

/// Runs `leaf` on pieces of at most `grain` items, and combines their results in order.
///
/// The error is that of the first piece that fails; the panic as well.
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
        PieceEnd::LeftOut => unreachable!("the first piece that fails is not left out"),
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
            (PieceEnd::Done(_), failed) | (failed, _) => failed,
        }
    }

    fn run_piece<P, R, E>(&self, parts: P, first: usize) -> PieceEnd<R, E>
    where
        L: Fn(P) -> Result<R, E>,
    {
        // Relaxed: at worst a piece is run in vain.
        if self.failed.load(Ordering::Relaxed) < first {
            return PieceEnd::LeftOut;
        }
        self.guard(first, || (self.leaf)(parts))
    }

    /// Runs `act`, and notes if it fails.
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
