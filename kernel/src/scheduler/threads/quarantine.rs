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
//!
//! Some spare threads are left for workers that are retaken. Beyond that bound the jobs wait for a thread, and the
//! workers continue to serve all others.

#![allow(unsafe_code)]

use std::{
    mem,
    sync::atomic::fence,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    job::{Header, JobPtr, runnable::Runnable},
    queue::injector::JobBatch,
    scheduler::threads::suspects::Suspects,
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// How many of `spare` spare threads may run quarantined jobs. An eighth, but at least one, is left for workers that
/// are retaken; a single one serves both.
pub(super) fn share_of_spare_threads(spare: usize) -> usize {
    (spare - spare.div_ceil(8)).max(spare.min(1))
}

/// How long a thread lingers: longer than two rounds of the monitor.
const LINGER: Duration = Duration::from_millis(2);
/// How many queued jobs a round checks for whether a worker may run them.
const CHECKED_AT_ONCE: usize = 64;

/// The jobs that wait for a thread of the quarantine.
pub(crate) struct Quarantine {
    queue: Mutex<QuarantineQueue>,
    /// The length of the queue, for callers that only ask. Written under the lock.
    len: AtomicUsize,
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
    checked: JobBatch<Header>,
    others: JobBatch<Header>,
    /// How many of the others belong to this lap.
    left_of_lap: usize,
}

impl QuarantineQueue {
    fn pop(&mut self) -> Option<*mut Header> {
        self.checked.pop().or_else(|| self.pop_other())
    }

    /// Takes the first of the others, which belongs to this lap if any of them does.
    fn pop_other(&mut self) -> Option<*mut Header> {
        self.left_of_lap = self.left_of_lap.saturating_sub(1);
        self.others.pop()
    }

    fn begin_lap(&mut self) {
        let others = mem::replace(&mut self.others, JobBatch::new());
        self.checked.append(others);
        mem::swap(&mut self.checked, &mut self.others);
        self.left_of_lap = self.others.len();
    }

    /// Takes the jobs that are to be checked next.
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
        self.checked.len() + self.others.len()
    }
}

impl Quarantine {
    pub(crate) fn new() -> Quarantine {
        Quarantine {
            queue: Mutex::new(QuarantineQueue {
                checked: JobBatch::new(),
                others: JobBatch::new(),
                left_of_lap: 0,
            }),
            len: AtomicUsize::new(0),
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

    fn change<R>(&self, change: impl FnOnce(&mut QuarantineQueue) -> R) -> R {
        let mut queue = lock(&self.queue);
        let answer = change(&mut queue);
        // Release: a thread that sees the length finds the jobs.
        self.len.store(queue.len(), Ordering::Release);
        answer
    }

    /// Queues a job. Any thread.
    pub(crate) fn push(&self, job: Runnable) {
        let mut batch = JobBatch::new();
        // SAFETY: the runnable's right goes into the batch.
        unsafe { batch.push(job.into_ptr().as_raw().as_ptr()) };
        self.change(|queue| queue.others.append(batch));
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

    /// Checks the next jobs, and takes those that a worker may run. These are jobs whose kinds are no longer suspect,
    /// and cancelled jobs, which end on the worker, unless the kind's destructors take long. The others keep their
    /// places. Called by the monitor while there is no thread for them.
    pub(crate) fn take_released(&self, suspects: &Suspects) -> JobBatch<Header> {
        let (mut released, mut stay) = (JobBatch::new(), JobBatch::new());
        // Checked without the lock. A thread that gets free meanwhile takes one behind them.
        let mut unchecked = self.change(QuarantineQueue::take_unchecked);
        while let Some(job) = unchecked.pop() {
            // SAFETY: the queue held the job's right to run, which keeps it alive.
            let header = unsafe { &*job };
            if header.state.is_cancelled() {
                // So that a worker does not send it back.
                header.prove();
            }
            let batch = match suspects.includes(header) {
                true => &mut stay,
                false => &mut released,
            };
            // SAFETY: the right to run goes into the batch.
            unsafe { batch.push(job) };
        }
        self.change(|queue| queue.checked.append(stay));
        released
    }

    /// Takes the job that waits longest. Any thread.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.len() == 0 {
            return None;
        }
        let job = self.change(QuarantineQueue::pop)?;
        let job = JobPtr::from_raw(std::ptr::NonNull::new(job).expect("a queued job"));
        // SAFETY: the queue held the job's right to run.
        Some(unsafe { Runnable::new(job) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{job::testing, scheduler::threads::suspect_records::MEMORY};

    #[test]
    fn a_spare_thread_is_left_for_workers_and_one_runs_quarantined_jobs() {
        let most = [0, 1, 2, 7, 8, 9, 512].map(share_of_spare_threads);
        assert_eq!(most, [0, 1, 1, 6, 7, 7, 448]);
    }

    /// How many jobs are queued: so many that the last of them are checked in the third round.
    const JOBS: usize = 2 * CHECKED_AT_ONCE + 10;

    /// A queue of jobs of a suspect kind, and their addresses.
    fn full_queue() -> (Quarantine, Suspects, Vec<*mut Header>) {
        let (quarantine, suspects) = (Quarantine::new(), Suspects::default());
        let push = |_| {
            let job = testing::runnable();
            let address = job.ptr().as_raw().as_ptr();
            quarantine.push(job);
            address
        };
        let jobs: Vec<_> = (0..JOBS).map(push).collect();
        // SAFETY: the queue keeps the job alive.
        let first = unsafe { &*jobs[0] };
        suspects.note_offence(first, Instant::now());
        (quarantine, suspects, jobs)
    }

    /// The first jobs of the queue, which are leaked.
    fn taken(quarantine: &Quarantine, most: usize) -> Vec<*mut Header> {
        let pop = |_| Some(quarantine.pop()?.into_ptr().as_raw().as_ptr());
        (0..most).map_while(pop).collect()
    }

    #[test]
    fn jobs_that_stay_keep_their_places() {
        for rounds in 1..=8 {
            let (quarantine, suspects, jobs) = full_queue();
            for _ in 0..rounds {
                assert_eq!(quarantine.take_released(&suspects).len(), 0);
                assert_eq!(quarantine.len(), JOBS);
            }
            assert!(taken(&quarantine, JOBS) == jobs, "{rounds} rounds");
            assert_eq!(quarantine.len(), 0);
        }
    }

    #[test]
    fn each_job_is_checked_in_turn_also_while_threads_take_the_first_and_others_come() {
        let (quarantine, suspects, jobs) = full_queue();
        let cancelled = jobs[JOBS - 1];
        // SAFETY: the queue keeps the job alive.
        let cancelled_job = unsafe { &*cancelled };
        let _owes = cancelled_job.state.cancel();
        let mut released = Vec::new();
        for round in 0..3 {
            assert!(released.is_empty(), "round {round}");
            assert!(taken(&quarantine, 1) == jobs[round..=round]);
            quarantine.push(testing::runnable());
            let mut batch = quarantine.take_released(&suspects);
            released.extend(std::iter::from_fn(|| batch.pop()));
        }
        assert!(released == [cancelled]);
        assert!(taken(&quarantine, JOBS - 4) == jobs[3..JOBS - 1]);
        assert_eq!(taken(&quarantine, JOBS).len(), 3, "those that came");
    }

    #[test]
    fn each_job_is_checked_however_many_come_meanwhile() {
        let (quarantine, suspects, jobs) = full_queue();
        let mut expected = jobs.clone();
        let cancelled = expected.remove(0);
        let mut released = Vec::new();
        let mut rounds = 0..JOBS;
        while released.is_empty() {
            // The next lap begins once all that were there have been checked: in round 3.
            let round = rounds.next().expect("a job that is not checked again");
            if round == 1 {
                // SAFETY: the queue keeps the job alive, which has been checked once.
                let _owes = unsafe { &*cancelled }.state.cancel();
            }
            for _ in 0..CHECKED_AT_ONCE {
                let job = testing::runnable();
                expected.push(job.ptr().as_raw().as_ptr());
                quarantine.push(job);
            }
            let mut batch = quarantine.take_released(&suspects);
            released.extend(std::iter::from_fn(|| batch.pop()));
        }
        assert!(released == [cancelled]);
        assert!(taken(&quarantine, usize::MAX) == expected, "their places");
    }

    #[test]
    fn all_jobs_of_a_kind_that_is_no_longer_suspect_are_released() {
        let (quarantine, suspects, mut jobs) = full_queue();
        assert_eq!(quarantine.take_released(&suspects).len(), 0);
        suspects.expire(Instant::now() + MEMORY);
        let mut released = JobBatch::new();
        for _ in 0..4 {
            released.append(quarantine.take_released(&suspects));
        }
        let mut released: Vec<_> = std::iter::from_fn(|| released.pop()).collect();
        released.sort();
        jobs.sort();
        assert!(released == jobs);
        assert_eq!(quarantine.len(), 0);
    }
}
