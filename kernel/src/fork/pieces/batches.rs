//! How many neighbouring pieces run one after the other without a fork between them: a *batch*.
//!
//! Of many items a piece may be a few nanoseconds of work, less than its fork. A batch begins as one piece. It doubles
//! each time the clock says that it was short, and is one piece again when it was long. So the first pieces are forked
//! one by one, and long ones, too. A look at the clock takes as long as a fork, so not every batch is measured.
//!
//! Invariants:
//! - A batch has at most 16 pieces ([`MOST_DOUBLINGS`]): so many stand behind an item that is unexpectedly long. What
//!   is behind the batch has been forked.
//! - Where the user chose the grain, and of up to 1024 items, each batch is a piece. Such pieces may wait for each
//!   other.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// A batch of about a sixty-fourth of the items is large enough: 64 forks take some two microseconds.
const MOST_DOUBLINGS: u32 = 4;
/// A batch that takes less is too short: a fork takes a fortieth of this.
const SHORT: Duration = Duration::from_micros(1);
/// A batch that takes longer is not worth the wait of those behind it.
const LONG: Duration = Duration::from_micros(4);
/// About one in so many batches is measured while they are as small, or as large, as they get.
const MEASURED: usize = 8;

/// How the items are divided.
#[derive(Clone, Copy, Debug)]
pub(in crate::fork) struct Pieces {
    /// A piece has at most so many items.
    grain: usize,
    /// A batch has at most two to the power of this times as many.
    most_doublings: u32,
    grouping: Grouping,
}

/// Whether the results depend on how the items are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fork) enum Grouping {
    /// They may, as floating-point sums do: the pieces of a batch are combined as if each were forked.
    Fixed,
    /// They do not: a batch is processed as if it were a piece.
    Free,
}

impl Pieces {
    /// Each piece is forked.
    pub(in crate::fork) fn forked(grain: usize) -> Self {
        Self {
            grain: grain.max(1),
            most_doublings: 0,
            grouping: Grouping::Fixed,
        }
    }

    /// Pieces run in batches while they are cheap.
    pub(in crate::fork) fn in_batches(grain: usize, grouping: Grouping) -> Self {
        Self {
            grain,
            most_doublings: MOST_DOUBLINGS,
            grouping,
        }
    }

    /// Whether so many items are more than a piece.
    pub(in crate::fork) fn divide(self, len: usize) -> bool {
        len > self.grain
    }
}

/// See the head of this file.
pub(in crate::fork) struct Batches {
    pieces: Pieces,
    /// How often the batch has been doubled. Relaxed: any thread may change it, and a lost change is made up for by the
    /// next batch.
    doublings: AtomicU32,
}

impl Batches {
    pub(in crate::fork) fn new(pieces: Pieces) -> Self {
        Self {
            pieces,
            doublings: AtomicU32::new(0),
        }
    }

    /// So many items, or fewer, are a batch now.
    pub(in crate::fork) fn items(&self) -> usize {
        self.pieces.grain << self.doublings.load(Ordering::Relaxed)
    }

    /// So many items, or fewer, of a batch are not divided further.
    pub(in crate::fork) fn undivided(&self) -> usize {
        match self.pieces.grouping {
            Grouping::Fixed => self.pieces.grain,
            Grouping::Free => usize::MAX,
        }
    }

    /// Runs the batch that begins with the item of this index, and decides how large the next ones are.
    pub(in crate::fork) fn measure<R>(&self, first: usize, batch: impl FnOnce() -> R) -> R {
        let Pieces {
            grain,
            most_doublings,
            ..
        } = self.pieces;
        let doublings = self.doublings.load(Ordering::Relaxed);
        let is_extreme = doublings == 0 || doublings == most_doublings;
        let is_chosen = ((first / grain) >> doublings).is_multiple_of(MEASURED);
        if most_doublings == 0 || is_extreme && !is_chosen {
            return batch();
        }
        let begin = Instant::now();
        let result = batch();
        let next = self.next(doublings, begin.elapsed());
        if next != doublings {
            self.doublings.store(next, Ordering::Relaxed);
        }
        result
    }

    fn next(&self, doublings: u32, took: Duration) -> u32 {
        match took {
            _ if took < SHORT => self.pieces.most_doublings.min(doublings + 1),
            _ if took > LONG => 0,
            _ => doublings,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_batch_doubles_while_it_is_short_up_to_sixteen_pieces() {
        let batches = Batches::new(Pieces::in_batches(10, Grouping::Free));
        let next = |doublings| batches.next(doublings, Duration::ZERO);
        assert_eq!([0, 1, 2, 3, 4].map(next), [1, 2, 3, 4, 4]);
        assert_eq!(batches.next(2, 2 * SHORT), 2);
    }

    #[test]
    fn behind_a_long_batch_each_piece_is_forked() {
        let batches = Batches::new(Pieces::in_batches(10, Grouping::Free));
        assert_eq!(batches.next(3, 2 * LONG), 0);
    }

    #[test]
    fn forked_pieces_stay_as_they_are() {
        let batches = Batches::new(Pieces::forked(3));
        for first in 0..100 {
            batches.measure(first, || ());
        }
        assert_eq!(batches.items(), 3);
    }
}
