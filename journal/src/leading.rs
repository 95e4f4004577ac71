//! The leader of a batch, which writes the batch: decisions only. `lead.rs` says what a leader is, and acts.

use std::time::{Duration, Instant};

use weald_forest::journal::Position;

/// How long a thread waits before it looks whether a leader has written.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// How long after a leader's write a thread goes on looking.
const RECENT: Duration = Duration::from_millis(20);

/// A leader writes no more bytes than this at once.
pub(crate) const SHORT: usize = 64 << 10;

/// A write that takes longer is slow.
const SLOW: Duration = Duration::from_millis(4);

/// How long after a slow write nobody leads.
const PAUSE: Duration = Duration::from_millis(200);

/// Which author writes the next batch, and which thread looks after that. Part of the journal's state.
#[derive(Default)]
pub(crate) struct Leading {
    /// The leader of the batch that is collected, by its number, and since when.
    leader: Option<(u64, Instant)>,
    numbers: u64,
    /// When a leader has written last.
    led: Option<Instant>,
    /// When a leader's write was slow last.
    slow: Option<Instant>,
    /// Somebody waits until everything up to here is buffered, and no leader will write it.
    asked: Position,
    /// Everything up to here is written, or being written.
    taken: Position,
    /// A thread rests, and looks soon.
    pub(crate) is_watched: bool,
    /// How many batches leaders have written.
    #[cfg(test)]
    writes: usize,
}

/// Whether something was less than this ago.
fn is_within(since: Option<Instant>, limit: Duration) -> bool {
    since.is_some_and(|since| since.elapsed() < limit)
}

impl Leading {
    /// For a journal that ends here.
    pub(crate) fn at(end: Position) -> Self {
        Self {
            taken: end,
            ..Self::default()
        }
    }

    /// A leader has written in this time.
    pub(crate) fn has_led(&mut self, begun: Instant, ended: Instant) {
        self.led = Some(ended);
        #[cfg(test)]
        {
            self.writes += 1;
        }
        if ended - begun > SLOW {
            self.slow = Some(ended);
        }
    }

    /// Leaves everything up to a position to the threads.
    pub(crate) fn ask_for(&mut self, position: Position) {
        self.asked = self.asked.max(position);
    }

    /// Everything up to a position is being written, by some thread.
    pub(crate) fn batch_taken(&mut self, upto: Position) {
        self.leader = None;
        self.taken = upto;
    }

    /// Whether a thread is to look soon, because there is a leader or will be one.
    pub(crate) fn wants_watch(&self) -> bool {
        !self.is_watched && (self.leader.is_some() || is_within(self.led, RECENT))
    }

    /// Whether the batch has a leader that is no longer expected to write.
    pub(crate) fn has_late_leader(&self) -> bool {
        self.leader.is_some() && !self.has_leader()
    }

    /// Whether the batch has a leader that is expected to write.
    pub(crate) fn has_leader(&self) -> bool {
        is_within(self.leader.map(|(_, since)| since), LOOK)
    }

    /// Whether somebody waits, up to this position, for what no leader will write, or for a sync.
    pub(crate) fn is_asked(&self, wanted: Position) -> bool {
        self.asked.max(wanted) > self.taken
    }

    /// Whether a write was slow a short time ago.
    pub(crate) fn was_slow(&self) -> bool {
        is_within(self.slow, PAUSE)
    }

    /// Makes the author of the record at a position the leader, if there is none; returns its number. Where nobody may
    /// lead, the threads are asked.
    pub(crate) fn choose(&mut self, position: Position, may_lead: bool) -> Option<u64> {
        if position <= self.taken {
            return None;
        }
        if !may_lead {
            self.ask_for(position);
            return None;
        }
        if self.leader.is_some() {
            return None;
        }
        self.numbers += 1;
        self.leader = Some((self.numbers, Instant::now()));
        Some(self.numbers)
    }

    /// Ends that leadership; returns whether it was the leader until now.
    pub(crate) fn step_down(&mut self, number: u64) -> bool {
        let is_leader = matches!(self.leader, Some((leader, _)) if leader == number);
        if is_leader {
            self.leader = None;
        }
        is_leader
    }

    /// Lets the leader be one for as long as a test takes, or shows it as one that does not come back.
    #[cfg(test)]
    pub(crate) fn set_since(&mut self, since: Instant) {
        self.leader = self.leader.map(|(number, _)| (number, since));
    }

    /// Lets authors lead even if a write was slow a short time ago.
    #[cfg(test)]
    pub(crate) fn forget_slow(&mut self) {
        self.slow = None;
    }

    /// How many batches leaders have written.
    #[cfg(test)]
    pub(crate) fn writes(&self) -> usize {
        self.writes
    }
}
