//! Mailboxes that grow: the receiver notes a long queue when it takes it, so that sends count nothing.
//!
//! A receiver takes all messages that came since its last receive, and walks through them anyway to reverse them into
//! their order. So it knows how many there are; a sender does not. A selective receive counts what it passes. A queue
//! whose receiver never looks has an age, and its length is estimated: the runtime samples mailboxes, see
//! [`crate::scheduler::threads::queue_watch`].

use std::time::{Duration, Instant};

use crate::{
    api::mailbox::{Mailbox, SelectiveReceive},
    job::{
        JobPtr, JobRef,
        extensions::Backlog,
        marks::{LEAST_NOTED, NotedLength},
        state::TakenMessages,
    },
    report::{self, JobName},
    scheduler::workers::{
        ready,
        shared::{self, Shared},
    },
};

/// A mailbox whose receiver found more messages than `mailbox_mark`; see
/// [`Runtime::long_mailboxes`](crate::Runtime::long_mailboxes).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongMailbox {
    /// The job whose mailbox it is.
    pub job: JobName,
    /// How many messages it found at once, or passed because it waits for a certain one; with a mark, give or take an
    /// eighth.
    pub messages: usize,
    /// How long ago it found them. The oldest message has waited for at least that long, unless all of them were
    /// received since.
    pub since: Duration,
}

/// A mailbox with messages that nobody has taken out of it; see
/// [`Runtime::unread_mailboxes`](crate::Runtime::unread_mailboxes).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadMailbox {
    /// The job whose mailbox it is.
    pub job: JobName,
    /// How long the oldest of these messages has waited, at least.
    pub waited: Duration,
    /// How many others have come since then, as an estimate from one in 1,024 sends; zero if they are fewer than some
    /// thousand.
    pub messages: usize,
}

/// A post to the mailbox of `job`, which has other messages, stands for many. The sender gives way, if it has no
/// worker. Returns true, so that its caller can end with a tail call.
///
/// # Safety
/// The caller holds a reference to `job`. (Given as a pointer, which the caller has in a register.)
#[cold]
#[inline(never)]
pub(super) unsafe fn count_post(job: JobPtr) -> bool {
    // SAFETY: the caller's promise.
    if let Some(shared) = shared::find(unsafe { job.header() }.runtime()) {
        shared.queues.count_post(job);
    }
    ready::give_way();
    true
}

/// The receiver of `job`'s mailbox has found this many messages, which it took just now.
#[inline(always)]
pub(super) fn note(job: &JobRef, messages: usize, taken: TakenMessages) {
    if messages >= LEAST_NOTED {
        note_taken(job, messages, taken);
    }
}

#[cold]
fn note_taken(job: &JobRef, messages: usize, taken: TakenMessages) {
    let waited = || {
        let shared = shared::find(job.header().runtime()).filter(|_| taken.was_seen())?;
        shared.queues.waited(job, &shared.clock)
    };
    note_long(job, messages, None, waited);
}

/// A selective receive is about to wait, with this many messages that it does not want.
pub(super) fn note_unwanted<M, F>(receive: &mut SelectiveReceive<'_, M, F>, messages: usize) {
    if messages >= LEAST_NOTED {
        note_many_unwanted(receive, messages);
    }
}

/// As [`note_unwanted`], for a receive with a mark: there may be other messages before the mark. What an earlier
/// receive has noted need not be noted again.
pub(super) fn note_marked<M, F>(receive: &mut SelectiveReceive<'_, M, F>) {
    let passed_many = receive.scan.passed() >= LEAST_NOTED;
    let mailbox = &mut *receive.mailbox;
    let Some((waiting, noted)) = mailbox.chain.links.marked_length() else {
        return;
    };
    if waiting < LEAST_NOTED {
        return;
    }
    if noted.covers(waiting) && !passed_many {
        mailbox.job.header().state.set_long();
        return;
    }
    let mailbox_mark = note_many_unwanted(receive, waiting);
    if let Some((_, noted)) = receive.mailbox.chain.links.marked_length() {
        *noted = NotedLength::new(waiting, mailbox_mark);
    }
}

#[cold]
fn note_many_unwanted<M, F>(receive: &mut SelectiveReceive<'_, M, F>, messages: usize) -> usize {
    let since = *receive.passed_many.get_or_insert_with(Instant::now);
    let waited = || Some(since.elapsed());
    note_long(&receive.mailbox.job, messages, Some(since), waited)
}

/// `waited`: how long the oldest message has waited, at least, if that is known. Returns the runtime's `mailbox_mark`.
#[cold]
fn note_long(
    job: &JobRef,
    messages: usize,
    unwanted_since: Option<Instant>,
    waited: impl FnOnce() -> Option<Duration>,
) -> usize {
    let mailbox_mark = shared::find(job.header().runtime())
        .map_or(usize::MAX, |shared| shared.config.mailbox_mark);
    let is_beyond = messages >= mailbox_mark;
    let mut extensions = job.header().extensions.lock();
    let was_named = extensions.backlog.is_some_and(|backlog| backlog.is_named);
    extensions.backlog = Some(Backlog {
        messages,
        found: unwanted_since.unwrap_or_else(Instant::now),
        is_unwanted: unwanted_since.is_some(),
        is_named: was_named || is_beyond,
    });
    drop(extensions);
    job.header().state.set_long();
    if is_beyond && !was_named {
        report::long_mailbox(&JobName::of(job.header()), messages, mailbox_mark, waited());
    }
    mailbox_mark
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
        let jobs = shared.jobs_that(|job| job.header().backlog().is_some());
        let mut long: Vec<LongMailbox> = jobs.iter().filter_map(LongMailbox::of).collect();
        long.retain(|mailbox| mailbox.messages >= shared.config.mailbox_mark);
        long.sort_by_key(|mailbox| std::cmp::Reverse(mailbox.messages));
        long
    }

    fn of(job: &JobRef) -> Option<LongMailbox> {
        let backlog = job.header().backlog()?;
        Some(LongMailbox {
            job: JobName::of(job.header()),
            messages: backlog.messages,
            since: backlog.found.elapsed(),
        })
    }
}

impl UnreadMailbox {
    /// The unread mailboxes of a runtime, the one with the oldest message first.
    pub(crate) fn among(shared: &Shared) -> Vec<UnreadMailbox> {
        let mut unread = shared.queues.unread(&shared.clock);
        unread.sort_by_key(|unread| unread.since);
        let now = shared.clock.now();
        let unread = unread.into_iter().map(|unread| UnreadMailbox {
            job: JobName::of(unread.job.header()),
            waited: now.saturating_duration_since(unread.since),
            messages: unread.messages,
        });
        unread.collect()
    }
}
