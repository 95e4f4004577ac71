//! Which kinds are cleared before their time, while no thread is free for the quarantine.
//!
//! A kind one of whose jobs was late once would stand still until its time is over, although nothing is known against
//! it by then: its jobs wait for threads that the jobs of another kind hold. So once none of its jobs holds a thread,
//! it is cleared. Its next offender costs the others the bound again. Therefore so many offences are pardoned in a
//! second that they cost the others less than a tenth of their time; a kind that exceeds this stays suspect.

use std::time::{Duration, Instant};

use crate::scheduler::threads::suspect_records::record::{MEMORY, Record};

/// How many offences are pardoned within [`MEMORY`], for each worker. The time of a worker that they cost is the bound
/// each.
const PARDONED_PER_WORKER: u32 = 8;
/// How long it takes from one look to the next, at least. A look takes longer the more threads are held.
const PAUSE: Duration = Duration::from_millis(5);

/// What was cleared early.
#[derive(Default)]
pub(super) struct Clearing {
    /// When the monitor looked last.
    looked: Option<Instant>,
    /// Since when the pardoned offences are counted.
    since: Option<Instant>,
    pardoned: u32,
}

impl Clearing {
    /// Whether the monitor is to look which kinds hold a thread.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = is_past(self.looked, PAUSE, now);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    /// Whether the kind, none of whose jobs holds a thread, is cleared.
    pub(super) fn pardons(&mut self, record: &Record, workers: usize, now: Instant) -> bool {
        if is_past(self.since, MEMORY, now) {
            (self.since, self.pardoned) = (Some(now), 0);
        }
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        let pardoned = self.pardoned.saturating_add(record.to_be_cleared);
        let pardons = pardoned <= PARDONED_PER_WORKER.saturating_mul(workers);
        if pardons {
            self.pardoned = pardoned;
        }
        pardons
    }
}

/// Whether `then` is as long ago as `pause`, or never was.
fn is_past(then: Option<Instant>, pause: Duration, now: Instant) -> bool {
    then.is_none_or(|then| now.saturating_duration_since(then) >= pause)
}
