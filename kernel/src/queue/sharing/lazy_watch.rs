//! For how long the oldest lazy job of a worker has been that: a small one is taken back by its joiner before another
//! worker could begin it, so others take only those that have waited for a while.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::sys::{AtomicUsize, Ordering};

/// How many lazy jobs a worker has, and the number of times that another one has become the oldest. Written under the
/// lock; read by any thread, a moment old.
pub(crate) struct LazyCounts {
    /// The count in the lower half, the number in the upper one.
    word: AtomicUsize,
}

/// The difference that one more lazy job makes, and that another oldest one makes.
pub(crate) const ONE: usize = 1;
pub(crate) const OLDEST: usize = 1 << 32;

impl LazyCounts {
    pub(crate) fn new() -> LazyCounts {
        LazyCounts {
            word: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn word(&self) -> usize {
        // Relaxed, as all accesses: the locks order it.
        self.word.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.word() % OLDEST
    }

    /// The number of the oldest.
    pub(crate) fn oldest(&self) -> usize {
        self.word() / OLDEST
    }

    /// Under the lock.
    #[inline(always)]
    pub(crate) fn add(&self, difference: usize) {
        self.word
            .store(self.word().wrapping_add(difference), Ordering::Relaxed);
    }
}

/// The oldest lazy job that a thread saw last, and since when.
#[derive(Default)]
pub(crate) struct SeenLazy(Cell<Option<((usize, usize), Instant)>>);

impl SeenLazy {
    /// Whether `oldest`, the number of a worker and that of its oldest, has been seen for so long.
    pub(crate) fn has_been_for(
        &self,
        long: Duration,
        oldest: (usize, usize),
        now: Instant,
    ) -> bool {
        match self.0.get() {
            Some((seen, since)) if seen == oldest => now.saturating_duration_since(since) >= long,
            _ => {
                self.0.set(Some((oldest, now)));
                false
            }
        }
    }

    /// What was seen last: the number of a worker and that of its oldest.
    pub(crate) fn seen(&self) -> Option<(usize, usize)> {
        self.0.get().map(|(oldest, _)| oldest)
    }
}

/// When the owner next asks whether its oldest lazy job has waited for long: behind the lock.
pub(crate) struct LazyWatch {
    /// After so many more are added.
    left: u32,
    /// After so many in all.
    every: u32,
    /// When it asked last.
    last: Option<Instant>,
    pub(crate) seen: SeenLazy,
}

/// The owner asks at each lazy job that it adds, and half as often each time while that was less than [`FINE`] ago,
/// down to once in [`MOST_RARELY`]: the clock takes half as long as a short thread.
const MOST_RARELY: u32 = 32;
const FINE: Duration = Duration::from_micros(2);

impl LazyWatch {
    pub(crate) fn new() -> LazyWatch {
        LazyWatch {
            left: 1,
            every: 1,
            last: None,
            seen: SeenLazy::default(),
        }
    }

    /// One was added. True if it is time to ask.
    #[inline(always)]
    pub(crate) fn counts(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Nobody needs to know now.
    pub(crate) fn asks_as_before(&mut self) {
        self.left = self.every;
    }

    /// It has asked `now`.
    pub(crate) fn asks_next_after(&mut self, now: Instant) {
        let last = self.last.replace(now);
        let passed = last.map(|last| now.saturating_duration_since(last));
        self.every = match passed {
            Some(passed) if passed < FINE => (self.every * 2).min(MOST_RARELY),
            _ => 1,
        };
        self.left = self.every;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn another_oldest_one_has_to_be_there_for_as_long_again() {
        const LONG: Duration = Duration::from_micros(10);
        let (counts, begin) = (LazyCounts::new(), Instant::now());
        let seen = SeenLazy::default();
        let has_been = |at| seen.has_been_for(LONG, (3, counts.oldest()), begin + at);
        counts.add(ONE + OLDEST);
        assert!(!has_been(Duration::ZERO));
        counts.add(ONE);
        assert!(!has_been(LONG / 2));
        assert!(has_been(LONG));
        counts.add(OLDEST.wrapping_sub(ONE));
        assert_eq!(counts.count(), 1);
        assert!(!has_been(2 * LONG));
        assert!(has_been(3 * LONG));
    }

    #[test]
    fn the_clock_is_asked_more_rarely_while_lazy_jobs_come_fast() {
        let mut watch = LazyWatch::new();
        let mut now = Instant::now();
        let mut added_until_asked = |pause| {
            let added = 1 + (0..).take_while(|_| !watch.counts()).count();
            now += pause;
            watch.asks_next_after(now);
            added
        };
        let fast = [1, 1, 2, 4, 8, 16, 32, 32];
        assert_eq!(fast.map(|_| added_until_asked(FINE / 2)), fast);
        assert_eq!([0; 3].map(|_| added_until_asked(FINE)), [32, 1, 1]);
    }
}
