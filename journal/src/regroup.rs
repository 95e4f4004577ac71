//! How long a sync is put off for the writers that the last one woke: decisions only.
//!
//! A writer that waits until its commit is durable mostly commits again when it is woken. If the next sync began with
//! the first that comes, it would serve few of them, and the others would wait for the sync after that. So there would
//! be many syncs, and many wake-ups of threads around them.
//!
//! - Nobody is waited for longer than a sync takes, and never longer than [`LONGEST`].
//! - A single writer is not waited for: the first that comes is the one, and its batch is written at once.
//! - Only what nobody waits for at a lower level is put off, see `State::is_put_off` of `next_step.rs`.
//! - Where most writers do not come back, as where each one commits once, the next [`SKIPPED`] syncs wait for nobody.

use std::time::{Duration, Instant};

use weald_forest::journal::Position;

/// The longest wait.
const LONGEST: Duration = Duration::from_millis(1);

/// This many syncs wait for nobody after a wait in vain.
const SKIPPED: u32 = 32;

/// The writers that the last sync woke, and those that have come since. Part of the journal's state.
#[derive(Default)]
pub(crate) struct Regroup {
    /// The positions for which writers wait, and which no sync has reached.
    waited_for: Vec<Position>,
    /// When the present sync began.
    begun: Option<Instant>,
    /// How many of the writers that the last sync woke have not come back, and how many it woke.
    missing: usize,
    woken: usize,
    /// Until when they are waited for.
    until: Option<Instant>,
    skips: u32,
    /// A thread rests until then.
    pub(crate) is_watched: bool,
}

impl Regroup {
    /// A writer waits until a position is durable.
    pub(crate) fn has_come(&mut self, position: Position) {
        self.waited_for.push(position);
        self.missing = self.missing.saturating_sub(1);
    }

    pub(crate) fn begin_sync(&mut self, now: Instant) {
        // What was waited for in vain.
        if self.until.take().is_some() && self.missing > self.woken / 2 {
            self.skips = SKIPPED;
        }
        self.begun = Some(now);
    }

    /// The sync has ended, and those that wait for positions up to this one are about to be woken. Others have records
    /// that were not written yet when it began.
    pub(crate) fn end_sync(&mut self, now: Instant, upto: Position) {
        let took = self
            .begun
            .take()
            .map_or(Duration::ZERO, |begun| now - begun);
        let before = self.waited_for.len();
        self.waited_for.retain(|position| *position > upto);
        self.woken = before - self.waited_for.len();
        self.missing = self.woken;
        self.skips = self.skips.saturating_sub(1);
        let waits = self.skips == 0 && self.missing > 1;
        self.until = waits.then(|| now + took.min(LONGEST));
    }

    /// No sync comes any more.
    pub(crate) fn end(&mut self) {
        self.waited_for = Vec::new();
    }

    /// For how long somebody is still to be waited for.
    pub(crate) fn left(&self) -> Option<Duration> {
        if self.missing == 0 {
            return None;
        }
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weald_forest::CommitId;
    use weald_forest::journal::{AppendError, Journal, Level};

    use super::*;
    use crate::body::Share;
    use crate::disk_journal::DiskJournal;
    use crate::open::open;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    /// They would be kept for ever.
    #[test]
    fn writers_that_no_sync_will_wake_are_not_counted() {
        let settings = Settings::new().segment(2048).by_hand();
        let journal = DiskJournal::of(open(Arc::new(SimulatedDisk::new()), settings).unwrap());
        let core = journal.core();
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 300]);
        let taken = core
            .state()
            .log
            .put_short((300, Share::Most), CommitId(1), put);
        let taken = taken.unwrap();
        let counted = |positions: [Position; 2]| {
            let waits = positions.map(|position| journal.when_reached(position, Level::Durable));
            drop(waits);
            core.state().regroup.waited_for.clone()
        };
        assert_eq!(counted([taken, Position(u128::MAX)]), [taken]);
        core.end(AppendError::Poisoned);
        assert_eq!(counted([taken, taken]), []);
    }

    /// After a sync that has served this many writers, with so much of the wait left that no test takes longer.
    fn after_a_sync_of(served: usize) -> Regroup {
        let mut regroup = Regroup::default();
        (0..served).for_each(|_| regroup.has_come(Position(1)));
        let begun = Instant::now() + Duration::from_secs(3600);
        regroup.begin_sync(begun);
        regroup.end_sync(begun + LONGEST, Position(1));
        regroup
    }

    #[test]
    fn those_that_a_sync_has_woken_are_waited_for_until_they_have_come() {
        let mut regroup = after_a_sync_of(3);
        for _ in 0..3 {
            assert!(regroup.left().is_some());
            regroup.has_come(Position(1));
        }
        assert_eq!(regroup.left(), None);
        for served in [0, 1] {
            assert_eq!(
                after_a_sync_of(served).left(),
                None,
                "it has served {served}"
            );
        }
    }

    /// The next sync wakes them.
    #[test]
    fn writers_whose_records_a_sync_does_not_reach_are_not_waited_for() {
        let mut regroup = Regroup::default();
        let [reached, behind] = [1, 2].map(Position);
        for position in [reached, behind, reached, behind, behind] {
            regroup.has_come(position);
        }
        let begun = Instant::now() + Duration::from_secs(3600);
        for (upto, woken) in [(reached, 2), (behind, 3)] {
            regroup.begin_sync(begun);
            regroup.end_sync(begun + LONGEST, upto);
            for _ in 0..woken {
                assert!(regroup.left().is_some());
                regroup.has_come(Position(3));
            }
            assert_eq!(regroup.left(), None);
        }
    }

    #[test]
    fn nobody_is_waited_for_longer_than_a_sync_takes() {
        let mut regroup = Regroup::default();
        let now = Instant::now();
        let long_ago = now.checked_sub(Duration::from_secs(1)).unwrap();
        (0..2).for_each(|_| regroup.has_come(Position(1)));
        regroup.begin_sync(long_ago);
        regroup.end_sync(now.checked_sub(LONGEST).unwrap(), Position(1));
        assert_eq!(regroup.left(), None, "that sync took a second");
    }

    #[test]
    fn after_a_wait_in_vain_the_next_syncs_wait_for_nobody() {
        let mut regroup = after_a_sync_of(4);
        let now = Instant::now();
        // One comes back, and three that wait for nothing else do not.
        regroup.has_come(Position(1));
        regroup.begin_sync(now);
        for sync in 1..SKIPPED {
            regroup.end_sync(now + Duration::from_secs(3600), Position(1));
            assert_eq!(regroup.left(), None, "sync {sync}");
            (0..2).for_each(|_| regroup.has_come(Position(1)));
            regroup.begin_sync(now);
        }
        regroup.end_sync(now + Duration::from_secs(3600), Position(1));
        assert!(regroup.left().is_some());
    }
}
