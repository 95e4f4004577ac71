//! Quarantine: jobs of [suspect](crate::scheduler::threads::suspects) kinds run here, on pool threads that own no
//! worker. If such a job blocks or computes, no worker is held up, and none needs to be retaken.
//!
//! - A worker that takes such a job from its queues puts it into the quarantine's queue instead of running it. A
//!   callback comes as a job of its own ([`runner`](crate::callback)).
//! - Threads take the jobs in the order in which they were queued. Yet later jobs of its kind may overtake a job: when
//!   the kind is no longer suspect, workers run new jobs at once, and those that wait are released by and by.
//! - The monitor starts threads for the queue until as many are *busy* (neither blocked nor in a run beyond
//!   `stuck_after`) as there are workers. While none is busy, each round doubles their number. So 600 jobs that block
//!   get their threads within ten rounds, and jobs that compute share few threads at first, but never wait for each
//!   other longer than the bound.
//! - A thread takes one job after the other until the queue is empty. Then it *lingers*: for a moment the next job
//!   wakes it, and need not wait for the monitor. No more threads linger than there are workers.
//! - A part of a fork that was stolen, and for which its owner may wait, may be put before all others
//!   ([`put_first`](Quarantine::put_first)).
//! - While all jobs are suspect, one job of each code is [tried](crate::scheduler::threads::suspect_records::trials)
//!   before all others, if need be on some of the threads that are left for workers.
//!
//! Some spare threads are left for workers that are retaken. Beyond that bound the jobs wait for a thread, and the
//! workers continue to serve all others.

#![allow(unsafe_code)]

use std::{
    mem,
    ptr::NonNull,
    sync::atomic::fence,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    job::{Header, JobPtr, JobRef, body_bit, runnable::Runnable, walked::WalkedJobs},
    queue::injector::JobBatch,
    scheduler::threads::{suspect_records::trials::Rank, suspects::Suspects},
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// How many of `spare` spare threads may run quarantined jobs. An eighth, but at least one, is left for workers that
/// are retaken; a single one serves both.
pub(super) fn share_of_spare_threads(spare: usize) -> usize {
    (spare - spare.div_ceil(8)).max(spare.min(1))
}

/// How long a thread lingers: longer than two rounds of the monitor.
const LINGER: Duration = Duration::from_millis(2);
/// How many queued jobs are checked under one lock for whether a worker may run them. A round checks as many at least.
const CHECKED_AT_ONCE: usize = 64;
/// A round checks this part of the queue at most.
const CHECKED_PART: usize = 64;
/// A stolen part is among so many: while more jobs wait than a round starts threads for, thieves take none. Several may
/// have asked for room at one time.
const PARTS_AMONG: usize = 256;

/// The jobs that wait for a thread of the quarantine.
pub(crate) struct Quarantine {
    queue: Mutex<QuarantineQueue>,
    /// The length of the queue, for callers that only ask. Written under the lock.
    len: AtomicUsize,
    /// How many of them are to be tried. Written under the lock.
    tried: AtomicUsize,
    /// Threads that were given the queue and have not taken from it yet.
    starting: AtomicUsize,
    /// The threads that wait for the next job, and how many.
    lingering: Mutex<Vec<Thread>>,
    lingerers: AtomicUsize,
}

/// A queue in two parts, so that each job is checked in turn and keeps its place: those that a check has let stay in
/// this lap come before the others. A lap checks each job that was there when it began, and none that has come since:
/// however many come, it ends.
struct QuarantineQueue {
    /// The jobs that are tried before all others. They are few, and each round checks them all.
    tried: JobBatch<Header>,
    checked: JobBatch<Header>,
    others: JobBatch<Header>,
    /// How many of the others belong to this lap.
    left_of_lap: usize,
}

impl QuarantineQueue {
    fn pop(&mut self) -> Option<*mut Header> {
        let tried = self.tried.pop().or_else(|| self.checked.pop());
        tried.or_else(|| self.pop_other())
    }

    /// Puts these jobs before all others.
    fn put_first(&mut self, mut first: JobBatch<Header>) {
        first.append(mem::replace(&mut self.tried, JobBatch::new()));
        self.tried = first;
    }

    /// Takes the first of the others, which belongs to this lap if any of them does.
    fn pop_other(&mut self) -> Option<*mut Header> {
        self.left_of_lap = self.left_of_lap.saturating_sub(1);
        self.others.pop()
    }

    /// Takes the first job that `is_wanted` selects.
    fn take_first(&mut self, is_wanted: impl Fn(&Header) -> bool) -> Option<*mut Header> {
        for checked in [&mut self.tried, &mut self.checked] {
            if let Some((_, job)) = checked.take_first(PARTS_AMONG, &is_wanted) {
                return Some(job);
            }
        }
        let (before, job) = self.others.take_first(PARTS_AMONG, is_wanted)?;
        self.left_of_lap -= usize::from(before < self.left_of_lap);
        Some(job)
    }

    fn begin_lap(&mut self) {
        let others = mem::replace(&mut self.others, JobBatch::new());
        self.checked.append(others);
        mem::swap(&mut self.checked, &mut self.others);
        self.left_of_lap = self.others.len();
    }

    /// Takes some of the jobs that are to be checked next.
    fn take_unchecked(&mut self) -> JobBatch<Header> {
        if self.left_of_lap == 0 {
            self.begin_lap();
        }
        let mut batch = JobBatch::new();
        while batch.len() < CHECKED_AT_ONCE && self.left_of_lap > 0 {
            let job = self.pop_other().expect("one of this lap");
            // SAFETY: the queue owned the job, and the batch owns it now.
            unsafe { batch.push(job) };
        }
        batch
    }

    fn len(&self) -> usize {
        self.tried.len() + self.checked.len() + self.others.len()
    }
}

impl Quarantine {
    pub(crate) fn new() -> Quarantine {
        Quarantine {
            queue: Mutex::new(QuarantineQueue {
                tried: JobBatch::new(),
                checked: JobBatch::new(),
                others: JobBatch::new(),
                left_of_lap: 0,
            }),
            len: AtomicUsize::new(0),
            tried: AtomicUsize::new(0),
            starting: AtomicUsize::new(0),
            lingering: Mutex::new(Vec::new()),
            lingerers: AtomicUsize::new(0),
        }
    }

    /// How many threads were given the queue and have not taken from it yet.
    pub(crate) fn starting(&self) -> usize {
        // Relaxed: a count for the monitor's decision.
        self.starting.load(Ordering::Relaxed)
    }

    /// A thread was given the queue.
    pub(crate) fn begin_start(&self) {
        self.starting.fetch_add(1, Ordering::Relaxed);
    }

    /// The thread has begun to serve the queue, or could not start.
    pub(crate) fn end_start(&self) {
        self.starting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with the store in `change`.
        self.len.load(Ordering::Acquire)
    }

    /// The first `most` of the jobs that wait. Any thread.
    pub(crate) fn first(&self, most: usize) -> WalkedJobs {
        let queue = lock(&self.queue);
        let batches = [&queue.tried, &queue.checked, &queue.others];
        let jobs = batches.into_iter().flat_map(JobBatch::iter).take(most);
        let jobs = jobs.map(|job| {
            let job = NonNull::new(job).expect("a queued job");
            // SAFETY: the queue holds the job's right to run, which keeps it alive.
            unsafe { JobRef::new_for(JobPtr::from_raw(job)) }
        });
        WalkedJobs::new(jobs.collect())
    }

    /// How many jobs wait to be tried.
    pub(crate) fn tried(&self) -> usize {
        // Relaxed: a count for the monitor's decision.
        self.tried.load(Ordering::Relaxed)
    }

    /// Whether a part that `is_wanted` selects waits. Called by the monitor.
    pub(crate) fn has(&self, is_wanted: impl Fn(&Header) -> bool) -> bool {
        let queue = lock(&self.queue);
        let batches = [&queue.tried, &queue.checked, &queue.others];
        let mut first = batches
            .into_iter()
            .flat_map(|it| it.iter().take(PARTS_AMONG));
        // SAFETY: the queue holds the job's right to run, which keeps it alive.
        first.any(|job| is_wanted(unsafe { &*job }))
    }

    /// Puts the first of the parts that `is_wanted` selects before all others, so that it gets a thread of those that
    /// are left for workers. Called by the monitor.
    pub(crate) fn put_first(&self, is_wanted: impl Fn(&Header) -> bool) {
        self.change(|queue| {
            let Some(job) = queue.take_first(is_wanted) else {
                return;
            };
            // SAFETY: the queue held the job's right to run, which keeps it alive.
            unsafe { &*job }.set_body_bit(body_bit::RELIEVES);
            let mut first = JobBatch::new();
            // SAFETY: that right goes into the batch.
            unsafe { first.push(job) };
            queue.put_first(first);
        });
    }

    /// Whether a part waits that was put before all others. Called by the monitor.
    pub(super) fn is_relieving(&self) -> bool {
        // SAFETY: the queue holds the job's right to run, which keeps it alive.
        let relieves = |job: *mut Header| unsafe { &*job }.relieves();
        self.tried() > 0 && lock(&self.queue).tried.iter().any(relieves)
    }

    fn change<R>(&self, change: impl FnOnce(&mut QuarantineQueue) -> R) -> R {
        let mut queue = lock(&self.queue);
        let answer = change(&mut queue);
        // Release: a thread that sees the length finds the jobs.
        self.len.store(queue.len(), Ordering::Release);
        self.tried.store(queue.tried.len(), Ordering::Relaxed);
        answer
    }

    /// Queues a job, which goes there because of `suspects`. Any thread.
    pub(crate) fn push(&self, job: Runnable, suspects: &Suspects) {
        let rank = suspects.rank(job.header());
        let mut batch = JobBatch::new();
        // SAFETY: the runnable's right goes into the batch.
        unsafe { batch.push(job.into_ptr().as_raw().as_ptr()) };
        self.change(|queue| match rank {
            Rank::First => queue.put_first(batch),
            Rank::Tried => queue.tried.append(batch),
            Rank::Last => queue.others.append(batch),
        });
        // Pairs with the fence in `linger`: the thread sees the job, or is seen here.
        fence(Ordering::SeqCst);
        if self.lingerers.load(Ordering::Relaxed) > 0 {
            self.wake_lingerer();
        }
    }

    fn wake_lingerer(&self) {
        let mut lingering = lock(&self.lingering);
        let thread = lingering.pop();
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// Waits a moment for the next job. True if there is one. Returns at once if `most` threads wait already.
    pub(super) fn linger(&self, most: usize) -> bool {
        let own = thread::current().id();
        let is_other = |thread: &Thread| thread.id() != own;
        let mut lingering = lock(&self.lingering);
        if lingering.len() >= most {
            return false;
        }
        lingering.push(thread::current());
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        fence(Ordering::SeqCst);
        let end = Instant::now() + LINGER;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A job that this thread was woken for may have gone to another one.
            if self.len() > 0 || left.is_zero() || lock(&self.lingering).iter().all(is_other) {
                break;
            }
            thread::park_timeout(left);
        }
        let mut lingering = lock(&self.lingering);
        lingering.retain(is_other);
        self.lingerers.store(lingering.len(), Ordering::Relaxed);
        drop(lingering);
        self.len() > 0
    }

    /// Checks the jobs that are to be tried, and the next of the others, and takes those that a worker may run. These
    /// are jobs whose kinds are no longer suspect, and cancelled jobs, which end on the worker, unless the kind's
    /// destructors take long. The others keep their places. Checks a part of the queue, so that a lap ends soon however
    /// long the queue is, and stops as soon as `has_time` says no. Called by the monitor while there is no thread for
    /// them.
    pub(crate) fn take_released(
        &self,
        suspects: &Suspects,
        mut has_time: impl FnMut() -> bool,
    ) -> JobBatch<Header> {
        // Checked without the lock. A thread that gets free meanwhile takes one behind them.
        let tried = self.change(|queue| mem::replace(&mut queue.tried, JobBatch::new()));
        let (mut released, tried) = check(tried, suspects, |job| suspects.give_up_trial(job));
        // Behind one that has come first meanwhile.
        self.change(|queue| queue.tried.append(tried));
        let mut left = (self.len() / CHECKED_PART).max(1);
        loop {
            let unchecked = self.change(QuarantineQueue::take_unchecked);
            let checked = unchecked.len();
            let (taken, stay) = check(unchecked, suspects, |_| ());
            released.append(taken);
            self.change(|queue| queue.checked.append(stay));
            left = left.saturating_sub(checked);
            if left == 0 || checked == 0 || !has_time() {
                return released;
            }
        }
    }

    /// Takes the job that is to be tried next. Any thread.
    pub(super) fn pop_tried(&self) -> Option<Runnable> {
        match self.tried() {
            0 => None,
            _ => Some(runnable(self.change(|queue| queue.tried.pop())?)),
        }
    }

    /// Takes the job that waits longest. Any thread.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.len() == 0 {
            return None;
        }
        Some(runnable(self.change(QuarantineQueue::pop)?))
    }
}

/// A job that was taken from the queue.
fn runnable(job: *mut Header) -> Runnable {
    let job = JobPtr::from_raw(NonNull::new(job).expect("a queued job"));
    // SAFETY: the queue held the job's right to run.
    unsafe { Runnable::new(job) }
}

/// The jobs that a worker may run, with each of which `release` is called, and those that stay.
fn check(
    mut unchecked: JobBatch<Header>,
    suspects: &Suspects,
    release: impl Fn(&Header),
) -> (JobBatch<Header>, JobBatch<Header>) {
    let (mut released, mut stay) = (JobBatch::new(), JobBatch::new());
    while let Some(job) = unchecked.pop() {
        // SAFETY: the queue held the job's right to run, which keeps it alive.
        let header = unsafe { &*job };
        if header.state.is_cancelled() {
            // So that a worker does not send it back.
            header.prove();
        }
        let batch = match suspects.includes(header) {
            true => &mut stay,
            false => {
                release(header);
                &mut released
            }
        };
        // SAFETY: the right to run goes into the batch.
        unsafe { batch.push(job) };
    }
    (released, stay)
}

#[cfg(all(test, not(loom)))]
mod tests;
