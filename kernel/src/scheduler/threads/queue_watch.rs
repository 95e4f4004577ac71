//! Watching the queues of messages, so that sends count nothing and note no time.
//!
//! A mailbox: a *sample* sets a bit in the state of each job that has messages which nobody has taken, and notes the
//! time ([`UnreadTimes`]); taking the messages clears the bit. Messages that a receiver has taken are not seen here. If
//! they were many, the receiver has noted them itself, with the time ([`Backlog`]).
//!
//! If the mailbox has got very many messages since a sample found its oldest one, it is named: [`PostCounts`] estimates
//! their number.
//!
//! A channel: see [`weald_sync::backlog`]. Channels belong to no runtime.
//!
//! The same walk collects the jobs that depend on others ([`depending`]), of which circles of waits are made.
//!
//! The monitor samples once a second, some hundred jobs a round, less often if there are so many jobs that this would
//! take more than a hundredth of its time; and up to ten times as often while it must check a circle of waits.
//! It also samples before it sleeps, if that is quick; else it sleeps only until a sample is due. A call that asks for
//! the figures takes a sample itself if the last one is old.

#![allow(unsafe_code)]

pub(crate) mod depending;
pub(crate) mod post_counts;

use std::{
    mem,
    sync::{Arc, TryLockError},
    time::{Duration, Instant},
};

use weald_sync::backlog;

use crate::{
    job::{Header, JobPtr, JobRef, extensions::Backlog},
    memory::JobWalk,
    report::{self, LateName},
    scheduler::threads::{
        queue_watch::{depending::DependingJob, post_counts::PostCounts},
        unread_times::UnreadTimes,
    },
    sys::{Mutex, MutexGuard, lock},
    timer::clock::{Clock, ClockKind},
};

/// The least time between two samples of the monitor.
const INTERVAL: Duration = Duration::from_secs(1);
/// The monitor spends at most one part in this many of its time on samples. Calls that ask for the figures may spend
/// ten times as much.
const SHARE: u32 = 100;
/// Figures that are not older than this are not taken again.
const FRESH: Duration = Duration::from_millis(100);
/// How many steps of the walk over all jobs a round of the monitor takes.
const STEPS_PER_ROUND: usize = 2;
/// The monitor samples before it sleeps only if the last sample took no longer than this.
const QUICK: Duration = Duration::from_micros(100);

/// The figures of all mailboxes of a runtime.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MailboxFigures {
    /// How many receivers found more messages than `mailbox_mark`, and have not received them yet, or have got more
    /// and not looked.
    pub(crate) long: usize,
    /// The most messages that one receiver found, of those that were noted, or has got and not looked.
    pub(crate) longest: usize,
    /// Since when the oldest message has waited, as far as is known.
    pub(crate) oldest: Option<Instant>,
}

/// An unread mailbox.
pub(crate) struct UnreadJob {
    pub(crate) job: JobRef,
    /// When it was found to be unread.
    pub(crate) since: Instant,
    /// An estimate of the messages that have come since.
    pub(crate) messages: usize,
}

/// What the samples of a runtime have found.
pub(crate) struct QueueWatch {
    /// A channel with at least this many values is reported.
    mailbox_mark: usize,
    counts: Arc<PostCounts>,
    samples: Mutex<Samples>,
}

struct Samples {
    /// The number of the runtime.
    runtime: u16,
    /// A mailbox that got at least this many messages, while nobody looked, is reported.
    mailbox_mark: usize,
    counts: Arc<PostCounts>,
    unread: UnreadTimes<Instant>,
    /// The sample that is under way.
    walk: Option<Walk>,
    figures: MailboxFigures,
    /// What the last sample found, until the monitor has taken it.
    depending: Option<Vec<DependingJob>>,
    last: Option<LastSample>,
    /// Whether the monitor sleeps until a whole sample is due. A step in the round after that would put the sample off,
    /// again and again.
    sleeps_until_due: bool,
}

/// When the last sample ended, and how long it took, with the check for circles in it.
struct LastSample {
    ended: Instant,
    took: Duration,
}

impl LastSample {
    /// In how long [`Samples::is_due`].
    fn is_due_in(&self, interval: Duration, share: u32) -> Duration {
        let pause = interval.max(self.took * share);
        pause.saturating_sub(self.ended.elapsed())
    }
}

#[derive(Default)]
struct Walk {
    jobs: JobWalk,
    figures: MailboxFigures,
    depending: Vec<DependingJob>,
    took: Duration,
}

impl Header {
    /// The messages that the job's receiver took last, or passed, if they were many and may still wait.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        if !self.state.is_long() {
            return None;
        }
        let backlog = self.extensions.lock_existing()?.backlog?;
        // A job that waits for any message has none left.
        let is_empty = self.state.is_listening() && !backlog.is_unwanted;
        (!is_empty).then_some(backlog)
    }
}

impl QueueWatch {
    /// For the runtime with this number and [`mailbox_mark`](crate::Builder::mailbox_mark).
    pub(crate) fn new(runtime: u16, mailbox_mark: usize) -> QueueWatch {
        let counts = Arc::new(PostCounts::new());
        QueueWatch {
            mailbox_mark,
            counts: counts.clone(),
            samples: Mutex::new(Samples {
                runtime,
                mailbox_mark,
                counts,
                unread: UnreadTimes::default(),
                walk: None,
                figures: MailboxFigures::default(),
                depending: None,
                last: None,
                sleeps_until_due: false,
            }),
        }
    }

    /// Counts a post to the mailbox of `job`; see [`PostCounts`]. Any thread.
    pub(crate) fn count_post(&self, job: JobPtr) {
        self.counts.count(job.as_raw().addr().get());
    }

    /// Some steps of a sample, if one is due. Called by the monitor each round; `soon` if it needs one. The monitor
    /// does not wait for a whole sample that another thread takes: stuck workers would wait, too.
    pub(crate) fn step(&self, clock: &Clock, soon: bool) {
        let Some(mut samples) = self.try_samples() else {
            return;
        };
        if mem::take(&mut samples.sleeps_until_due) {
            return;
        }
        let interval = if soon { FRESH } else { INTERVAL };
        if samples.walk.is_none() && !samples.is_due(interval, SHARE) {
            return;
        }
        let mut jobs = Vec::new();
        let has_ended = (0..STEPS_PER_ROUND).any(|_| !samples.step(clock, &mut jobs, None));
        drop(samples);
        if has_ended {
            name_long_channels(self.mailbox_mark);
        }
    }

    /// A whole sample, if it is due, or the last one was quick. Else returns how long it takes until one is due: the
    /// monitor sleeps no longer, because what has happened since the last sample must be found. Called by the monitor
    /// before it sleeps.
    pub(crate) fn sample_before_sleep(&self, clock: &Clock) -> Option<Duration> {
        let Some(mut samples) = self.try_samples() else {
            return Some(INTERVAL);
        };
        let is_quick = |last: &LastSample| last.took <= QUICK;
        if samples.last.as_ref().is_none_or(is_quick) || samples.is_due(INTERVAL, SHARE) {
            samples.take(clock, None);
            drop(samples);
            name_long_channels(self.mailbox_mark);
            return None;
        }
        samples.sleeps_until_due = true;
        samples
            .last
            .as_ref()
            .map(|last| last.is_due_in(INTERVAL, SHARE))
    }

    /// The jobs that depend on others, if a sample has ended since the last call. Called by the monitor.
    pub(crate) fn take_depending(&self) -> Option<Vec<DependingJob>> {
        self.try_samples()?.depending.take()
    }

    /// What was done with what the last sample found took so long, too. Called by the monitor.
    pub(crate) fn add_to_sample(&self, took: Duration) {
        if let Some(last) = self.try_samples().as_mut().and_then(|it| it.last.as_mut()) {
            last.took += took;
        }
    }

    /// The figures. At most a tenth of a second old, or ten times as old as a sample takes, whichever is more. Any
    /// thread.
    pub(crate) fn figures(&self, clock: &Clock) -> MailboxFigures {
        let mut samples = lock(&self.samples);
        // The time of a test runtime stands still between its jobs.
        if clock.kind() == ClockKind::Virtual || samples.is_due(FRESH, SHARE / 10) {
            samples.take(clock, None);
        }
        samples.figures
    }

    /// How long, at least, the oldest of the messages that the receiver of `job` took a moment ago has waited; a sample
    /// has seen it. None while another thread takes a sample, because the receiver, which calls this, does not wait for
    /// that.
    pub(crate) fn waited(&self, job: &JobRef, clock: &Clock) -> Option<Duration> {
        let samples = self.try_samples()?;
        let since = samples.unread.since(address(job))?;
        Some(clock.now().saturating_duration_since(since))
    }

    /// The samples, unless another thread uses them now: for a whole sample, perhaps, and with a low priority.
    fn try_samples(&self) -> Option<MutexGuard<'_, Samples>> {
        match self.samples.try_lock() {
            Ok(samples) => Some(samples),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The jobs with messages that nobody has taken, and since when they were found so. Any thread.
    pub(crate) fn unread(&self, clock: &Clock) -> Vec<UnreadJob> {
        let mut unread = Vec::new();
        lock(&self.samples).take(clock, Some(&mut unread));
        unread
    }
}

impl Samples {
    /// Whether the last sample is older than `interval`, and than `share` times what it took.
    fn is_due(&self, interval: Duration, share: u32) -> bool {
        let is_old = |last: &LastSample| last.is_due_in(interval, share).is_zero();
        self.last.as_ref().is_none_or(is_old)
    }

    /// A whole sample. Adds the unread mailboxes to `found`. Lets go of the jobs of each step before the next: a thread
    /// that waits for a core in here would keep the memory of all jobs that end meanwhile.
    fn take(&mut self, clock: &Clock, mut found: Option<&mut Vec<UnreadJob>>) {
        if self.walk.take().is_some() {
            self.unread.restart_sample();
        }
        let (mut jobs, mut is_going_on) = (Vec::new(), true);
        while is_going_on {
            is_going_on = self.step(clock, &mut jobs, found.as_deref_mut());
            // Under the lock: the last reference to a job may drop a user's waker.
            report::without_user_code(|| jobs.clear());
        }
    }

    /// A step of the sample under way, or of a new one; see [`take`](Self::take). Adds the jobs that it has read
    /// to `jobs`. False if that has ended the sample.
    fn step(
        &mut self,
        clock: &Clock,
        jobs: &mut Vec<JobRef>,
        mut found: Option<&mut Vec<UnreadJob>>,
    ) -> bool {
        let began = Instant::now();
        let walk = self.walk.get_or_insert_default();
        let before = jobs.len();
        // SAFETY: job blocks stay mapped.
        let of_runtime = |block| unsafe { JobRef::from_block_of(block, self.runtime) };
        let is_going_on = walk.jobs.step(jobs, of_runtime);
        for job in &jobs[before..] {
            if job.header().runtime() != self.runtime || job.header().state.is_done() {
                continue;
            }
            walk.figures.count_backlog(job, self.mailbox_mark);
            depending::collect(job, &mut walk.depending);
            let (unread, mut is_new) = (&mut self.unread, false);
            let since = unread.check(address(job), &job.header().state, || {
                is_new = true;
                clock.now()
            });
            if since.is_none() || is_new {
                self.counts.forget(address(job));
            }
            let Some(since) = since else { continue };
            walk.figures.count(since);
            let messages = self.counts.messages(address(job));
            if messages >= self.mailbox_mark.max(1) {
                walk.figures.count_unread(job, messages, self.mailbox_mark);
                let waited = clock.now().saturating_duration_since(since);
                name_unread(job, messages, self.mailbox_mark, waited);
            }
            if let Some(found) = &mut found {
                found.push(UnreadJob {
                    job: job.clone(),
                    since,
                    messages,
                });
            }
        }
        walk.took += began.elapsed();
        if !is_going_on {
            let walk = self.walk.take().unwrap_or_default();
            self.unread.end_sample();
            self.figures = walk.figures;
            self.depending = Some(walk.depending);
            self.last = Some(LastSample {
                ended: Instant::now(),
                took: walk.took,
            });
        }
        is_going_on
    }
}

impl MailboxFigures {
    /// A message has waited since then.
    fn count(&mut self, since: Instant) {
        self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
    }

    /// Counts the messages that the job's receiver has noted.
    fn count_backlog(&mut self, job: &JobRef, mailbox_mark: usize) {
        if let Some(backlog) = job.header().backlog() {
            self.count(backlog.found);
            self.long += usize::from(backlog.messages >= mailbox_mark);
            self.longest = self.longest.max(backlog.messages);
        }
    }

    /// Counts the messages into which the job has not looked, which are more than `mailbox_mark`.
    fn count_unread(&mut self, job: &JobRef, messages: usize, mailbox_mark: usize) {
        let noted = job.header().backlog();
        self.long += usize::from(noted.is_none_or(|backlog| backlog.messages < mailbox_mark));
        self.longest = self.longest.max(messages);
    }
}

fn address(job: &JobRef) -> usize {
    job.ptr().as_raw().addr().get()
}

/// Reports the mailbox of `job`, unless it was reported before.
fn name_unread(job: &JobRef, messages: usize, mailbox_mark: usize, waited: Duration) {
    let mut extensions = job.header().extensions.lock();
    // The receiver, if it looks, finds that this is named; it lists the messages itself then.
    let backlog = extensions.backlog.get_or_insert_with(|| Backlog {
        messages,
        found: Instant::now(),
        is_unwanted: false,
        is_named: false,
    });
    if mem::replace(&mut backlog.is_named, true) {
        return;
    }
    drop(extensions);
    report::unread_mailbox(LateName::of(job.header()), messages, mailbox_mark, waited);
}

/// Reports the channels that are longer than `mailbox_mark`, each once.
fn name_long_channels(mailbox_mark: usize) {
    for channel in backlog::take_unnamed(mailbox_mark) {
        report::long_channel(&channel, mailbox_mark);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// With a lock that waits, this would never end.
    #[test]
    fn the_monitor_and_receivers_do_not_wait_for_a_sample_of_another_thread() {
        let runtime = crate::Runtime::builder().workers(1).build().unwrap();
        let job = runtime.spawn(std::future::pending::<()>());
        let (watch, clock) = (QueueWatch::new(0, 1), Clock::new(ClockKind::Real));
        let sample = lock(&watch.samples);
        watch.step(&clock, false);
        watch.sample_before_sleep(&clock);
        assert_eq!(watch.waited(job.job().unwrap(), &clock), None);
        drop(sample);
        job.cancel();
    }

    #[test]
    fn after_a_sleep_until_a_sample_is_due_the_monitor_samples_and_sleeps_on() {
        let (watch, clock) = (QueueWatch::new(0, 1), Clock::new(ClockKind::Real));
        let set_last = |age| {
            let ended = Instant::now() - age;
            let took = 2 * QUICK;
            lock(&watch.samples).last = Some(LastSample { ended, took });
        };
        set_last(Duration::ZERO);
        assert!(watch.sample_before_sleep(&clock).is_some());
        set_last(INTERVAL);
        // The round between them.
        watch.step(&clock, false);
        let samples = lock(&watch.samples);
        assert!(samples.walk.is_none() && samples.is_due(INTERVAL, SHARE));
        drop(samples);
        assert_eq!(watch.sample_before_sleep(&clock), None);
    }
}
