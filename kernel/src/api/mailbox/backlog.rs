//! Mailboxes that grow: the receiver notes a long queue when it takes it, so that sends count nothing.
//!
//! A receiver takes all messages that came since it took the last ones, and walks through them anyway to turn them into
//! their order. So it knows how many there are; a sender does not. A selective receive counts what it passes. A queue whose receiver never looks is not seen
//! here: its process blocks, computes or waits for something else, and is reported for that.

use std::time::{Duration, Instant};

use crate::{
    api::mailbox::Mailbox,
    job::{JobRef, extensions::Backlog},
    report::{self, JobName},
    scheduler::workers::shared::{self, Shared},
};

/// The least length that is noted, whatever the runtime's mark: shorter queues cost nothing.
const LEAST: usize = 1 << 10;

/// A mailbox whose receiver found more messages than the runtime's mark; see
/// [`Runtime::long_mailboxes`](crate::Runtime::long_mailboxes).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongMailbox {
    /// The job whose mailbox it is.
    pub job: JobName,
    /// How many messages it found at once, or passed because it waits for a certain one.
    pub messages: usize,
    /// How long ago: unless it has received all of them by now, the oldest message has waited for at least that long.
    pub since: Duration,
}

/// The receiver of `job`'s mailbox has found so many messages.
#[inline(always)]
pub(super) fn note(job: &JobRef, messages: usize) {
    if messages >= LEAST {
        note_long(job, messages, false);
    }
}

/// The receiver of `job`'s mailbox has passed so many messages, and waits for another one.
pub(super) fn note_unwanted(job: &JobRef, messages: usize) {
    if messages >= LEAST {
        note_long(job, messages, true);
    }
}

#[cold]
fn note_long(job: &JobRef, messages: usize, unwanted: bool) {
    let mark = shared::find(job.header().runtime()).map(|shared| shared.config.mailbox_mark);
    let Some(mark) = mark.filter(|mark| messages >= *mark) else {
        return;
    };
    let backlog = Backlog {
        messages,
        found: Instant::now(),
        unwanted,
    };
    let former = job.header().extensions.lock().backlog.replace(backlog);
    if former.is_none() {
        report::long_mailbox(&JobName::of(job.header()), messages, mark);
    }
}

impl<M> Mailbox<M> {
    /// How many messages there are now. O(n).
    pub fn len(&mut self) -> usize {
        self.refill();
        self.chain.links.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.refill();
        self.chain.links.is_empty()
    }
}

impl LongMailbox {
    /// The long mailboxes of a runtime, the longest first.
    pub(crate) fn among(shared: &Shared) -> Vec<LongMailbox> {
        let jobs = shared.live_jobs();
        let mut long: Vec<LongMailbox> = jobs.iter().filter_map(LongMailbox::of).collect();
        long.sort_by_key(|mailbox| std::cmp::Reverse(mailbox.messages));
        long
    }

    fn of(job: &JobRef) -> Option<LongMailbox> {
        let header = job.header();
        let backlog = header.extensions.lock_existing()?.backlog?;
        // A job that waits for any message has none left.
        let is_empty = header.state.is_listening() && !backlog.unwanted;
        (!is_empty).then(|| LongMailbox {
            job: JobName::of(header),
            messages: backlog.messages,
            since: backlog.found.elapsed(),
        })
    }
}
