//! The thread pool of a runtime: which threads are spare, and which wait for a worker.
//!
//! Invariants:
//! - A worker's lease is in exactly one place: with the thread that serves the worker, in an offer, or in a handoff.
//! - An idle thread is in `spares` or in `wanting`, never in both.
//! - A thread with pinned jobs never retires: they may run nowhere else.
//!
//! A thread is started when a worker needs one and none is idle, up to the limit. A spare thread that was not needed
//! for a while retires.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    collections::HashMap,
    sync::Arc,
    thread::{self, Thread},
    time::Instant,
};

use crate::{
    biased_lock::Lease,
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            visit_run::{SeenRun, VisitRun, main_poll::SeenPoll},
        },
        threads::{
            outbox::{Outbox, Outboxes},
            senders::OperationCount,
            visits::poll_watch::PollWatch,
        },
        workers::shared::Shared,
    },
    sys::{AtomicBool, AtomicUsize, Mutex, Ordering, lock},
};

/// A worker on its way to a thread, with the lease that makes the thread its owner.
#[must_use = "a handoff that is dropped is a worker that nobody serves"]
pub(crate) struct Handoff {
    pub(crate) worker: usize,
    pub(crate) lease: Lease,
}

/// One thread of the pool.
pub(super) struct PoolThread {
    /// The system's number of the thread.
    pub(super) number: u32,
    pub(super) pinned: Arc<PinnedQueue>,
    pub(super) thread: Thread,
    pub(super) offer: Mutex<Option<Offer>>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) operations: OperationCount,
    /// Whether jobs were pinned to the thread when it became idle. Written by the thread, read under the pool's lock.
    pub(super) holds_pinned_jobs: AtomicBool,
}

impl PoolThread {
    /// The calling thread, which has this number.
    pub(super) fn here(number: u32, offer: Option<Offer>) -> PoolThread {
        PoolThread {
            number,
            pinned: Arc::new(PinnedQueue::new()),
            thread: thread::current(),
            offer: Mutex::new(offer),
            outbox: Outbox::new(),
            operations: OperationCount::here(),
            holds_pinned_jobs: AtomicBool::new(false),
        }
    }

    /// Gives the thread, which was taken from its list, something to do.
    pub(super) fn accept(&self, offer: Offer) {
        *lock(&self.offer) = Some(offer);
        self.thread.unpark();
    }
}

/// A thread's place among the members of its pool; dropping it is [`leave`](ThreadPool::leave), even when a defect
/// unwinds the thread. Afterwards nobody reads its count of operations.
#[must_use = "a thread that is no longer a member is not seen by the monitor"]
pub(super) struct Membership<'a> {
    pool: &'a ThreadPool,
    member: &'a Arc<PoolThread>,
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        self.pool.leave(self.member);
    }
}

/// What an idle thread is given to do.
#[must_use = "an offer that is dropped is a worker that nobody serves"]
pub(super) enum Offer {
    Worker(Handoff),
    /// The jobs in the quarantine's queue.
    Quarantine,
}

/// All threads of a runtime.
pub(crate) struct ThreadPool {
    inner: Mutex<PoolLists>,
    /// How many threads want a worker: the length of `wanting`, read by workers at each look. Relaxed: a worker that
    /// does not see it yet sees it at its next look, and one that falls asleep is woken, under the fences of the
    /// sleepers.
    wanted: AtomicUsize,
    pub(crate) outboxes: Outboxes,
    visitors: Mutex<Vec<Visitor>>,
}

/// A thread that is not in the pool, but in `block_on`.
struct Visitor {
    pinned: Arc<PinnedQueue>,
    last: LastSeen,
}

/// What the monitor saw a visitor run in its last round, and since when; and what it knows of the poll of its future.
pub(super) struct LastSeen {
    pub(super) run: SeenRun,
    pub(super) since: Instant,
    pub(super) poll: PollWatch,
}

struct PoolLists {
    spares: Vec<Arc<PoolThread>>,
    wanting: Vec<Arc<PoolThread>>,
    /// Every thread between [`enter`](ThreadPool::enter) and [`leave`](ThreadPool::leave).
    members: Vec<Arc<PoolThread>>,
    /// Threads that have started and not ended.
    threads: usize,
}

/// In which list an idle thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAs {
    Spare,
    Wanting,
}

/// Whether a thread with pinned jobs will do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PinnedJobs {
    Any,
    No,
}

/// No thread can take the worker: the limit of threads is reached, or the system refuses to start one.
pub(crate) struct NoThread {
    pub(crate) handoff: Handoff,
    /// Why the system refused, if it was asked.
    pub(crate) error: Option<std::io::Error>,
}

thread_local! {
    /// The number of the runtime in whose pool this thread is; zero if it is in none.
    static POOL_OF: Cell<u16> = const { Cell::new(0) };
}

/// The calling thread enters the pool of the runtime with this number; with zero it leaves the
/// pool.
pub(super) fn set_pool_of(runtime: u16) {
    POOL_OF.set(runtime);
}

/// Whether the calling thread is in the pool of the runtime with this number.
pub(crate) fn is_in_pool_of(runtime: u16) -> bool {
    POOL_OF.get() == runtime
}

impl ThreadPool {
    pub(crate) fn new() -> ThreadPool {
        ThreadPool {
            inner: Mutex::new(PoolLists {
                spares: Vec::new(),
                wanting: Vec::new(),
                members: Vec::new(),
                threads: 0,
            }),
            wanted: AtomicUsize::new(0),
            visitors: Mutex::default(),
            outboxes: Outboxes::new(),
        }
    }

    /// Whether a thread wants a worker. Any thread.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.inner).threads
    }

    /// Whether a worker could go to an idle thread now.
    pub(super) fn has_idle(&self) -> bool {
        let inner = lock(&self.inner);
        !inner.spares.is_empty() || !inner.wanting.is_empty()
    }

    /// Whether a worker could go to a thread now, idle or new.
    pub(crate) fn has_spare_thread(&self, shared: &Shared) -> bool {
        self.free(shared) > 0
    }

    /// How many threads could take a worker now, idle or new.
    pub(super) fn free(&self, shared: &Shared) -> usize {
        let inner = lock(&self.inner);
        let idle = inner.spares.len() + inner.wanting.len();
        idle + shared.most_threads().saturating_sub(inner.threads)
    }

    /// Counts a thread that is about to start, if there are fewer than `most`. Returns how many there are then.
    pub(super) fn count_new(&self, most: usize) -> Option<usize> {
        let mut inner = lock(&self.inner);
        if inner.threads >= most {
            return None;
        }
        inner.threads += 1;
        Some(inner.threads)
    }

    /// The calling thread, which is `member`, works for the runtime until it drops the result.
    pub(super) fn enter<'a>(&'a self, member: &'a Arc<PoolThread>) -> Membership<'a> {
        lock(&self.inner).members.push(member.clone());
        Membership { pool: self, member }
    }

    /// The thread no longer works for the runtime.
    fn leave(&self, member: &Arc<PoolThread>) {
        let mut inner = lock(&self.inner);
        inner.members.retain(|other| !Arc::ptr_eq(other, member));
    }

    /// The pinned queues of the threads that `is_wanted` selects, by the system's number of the thread.
    pub(super) fn pinned_queues(
        &self,
        is_wanted: impl Fn(u32, &PinnedQueue) -> bool,
    ) -> HashMap<u32, Arc<PinnedQueue>> {
        let (inner, visitors) = (lock(&self.inner), lock(&self.visitors));
        let members = inner.members.iter();
        let members = members.map(|member| (member.number, &member.pinned));
        let visitors = visitors
            .iter()
            .filter_map(|visitor| Some((visitor.pinned.visit()?.thread, &visitor.pinned)));
        members
            .chain(visitors)
            .filter(|(number, pinned)| is_wanted(*number, pinned))
            .map(|(number, pinned)| (number, pinned.clone()))
            .collect()
    }

    /// A thread that is not in the pool enters `block_on`, with this queue.
    pub(crate) fn enter_visit(&self, pinned: Arc<PinnedQueue>) {
        let (run, since) = (SeenRun::NONE, Instant::now());
        let poll = PollWatch::new(SeenPoll::NONE);
        let last = LastSeen { run, since, poll };
        lock(&self.visitors).push(Visitor { pinned, last });
    }

    /// The thread with this queue leaves `block_on`.
    pub(crate) fn leave_visit(&self, pinned: &Arc<PinnedQueue>) {
        let mut visitors = lock(&self.visitors);
        visitors.retain(|visitor| !Arc::ptr_eq(&visitor.pinned, pinned));
    }

    /// Calls `act` for each visitor. Threads that enter `block_on` or leave it wait meanwhile.
    pub(super) fn each_visit(
        &self,
        mut act: impl FnMut(&Arc<PinnedQueue>, &VisitRun, &mut LastSeen),
    ) {
        for Visitor { pinned, last } in &mut *lock(&self.visitors) {
            if let Some(visit) = pinned.visit() {
                act(pinned, visit, last);
            }
        }
    }

    /// How many operations the jobs of the thread with this number have completed; the number wraps. None if the thread
    /// is not in the pool.
    pub(super) fn operations(&self, number: u32) -> Option<u32> {
        let inner = lock(&self.inner);
        let mut members = inner.members.iter();
        let member = members.find(|member| member.number == number)?;
        // SAFETY: it is listed, and the lock is held.
        Some(unsafe { member.operations.get() })
    }

    /// A thread has ended, or could not start.
    pub(super) fn uncount(&self) {
        lock(&self.inner).threads -= 1;
    }

    /// Wakes every idle thread, so that it sees that the runtime stops.
    pub(crate) fn dismiss(&self) {
        let inner = lock(&self.inner);
        for member in inner.spares.iter().chain(&inner.wanting) {
            member.thread.unpark();
        }
    }

    /// Takes an idle thread: one that wants a worker if there is any, or else the latest spare.
    pub(super) fn take_idle(&self) -> Option<Arc<PoolThread>> {
        let mut inner = lock(&self.inner);
        if let Some(member) = inner.wanting.pop() {
            self.wanted.store(inner.wanting.len(), Ordering::Relaxed);
            return Some(member);
        }
        inner.spares.pop()
    }

    /// Takes the latest spare thread that fits.
    pub(super) fn take_spare(&self, pinned: PinnedJobs) -> Option<Arc<PoolThread>> {
        let mut inner = lock(&self.inner);
        let fits = |member: &Arc<PoolThread>| {
            pinned == PinnedJobs::Any || !member.holds_pinned_jobs.load(Ordering::Relaxed)
        };
        let index = inner.spares.iter().rposition(fits)?;
        Some(inner.spares.remove(index))
    }

    /// Puts `member`, which is idle, into a list: among the wanting if it has a runnable pinned job.
    pub(super) fn enlist(&self, member: &Arc<PoolThread>, shared: &Shared) -> IdleAs {
        let holds_pinned_jobs = member.pinned.has_pinned_jobs();
        member
            .holds_pinned_jobs
            .store(holds_pinned_jobs, Ordering::Relaxed);
        let mut inner = lock(&self.inner);
        if !member.pinned.has_runnable() {
            inner.spares.push(member.clone());
            return IdleAs::Spare;
        }
        inner.wanting.push(member.clone());
        self.wanted.store(inner.wanting.len(), Ordering::Relaxed);
        drop(inner);
        // A sleeping worker sees the request only when it is woken.
        shared.wake_one();
        IdleAs::Wanting
    }

    /// Takes `member` out of its list. False if it is in none: an offer is under way.
    pub(super) fn delist(&self, member: &Arc<PoolThread>) -> bool {
        let mut inner = lock(&self.inner);
        let before = inner.spares.len() + inner.wanting.len();
        inner.spares.retain(|other| !Arc::ptr_eq(other, member));
        inner.wanting.retain(|other| !Arc::ptr_eq(other, member));
        self.wanted.store(inner.wanting.len(), Ordering::Relaxed);
        inner.spares.len() + inner.wanting.len() < before
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{panic, time::Duration};

    use weald_sync::unit;

    use super::*;
    use crate::{Runtime, current_runtime, scheduler::workers::shared};

    #[test]
    fn a_thread_that_unwinds_leaves_the_pool() {
        let pool = ThreadPool::new();
        let unwinds = || {
            let member = Arc::new(PoolThread::here(7, None));
            let _membership = pool.enter(&member);
            assert!(pool.operations(7).is_some());
            panic::resume_unwind(Box::new("a defect"));
        };
        let ended = thread::scope(|scope| scope.spawn(unwinds).join());
        assert!(ended.is_err());
        assert_eq!(pool.operations(7), None);
    }

    #[test]
    fn operations_of_a_thread_are_counted_until_it_leaves() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let counts = runtime.spawn(async {
            let shared = shared::find(current_runtime()).unwrap();
            let number = shared.thread_number();
            let before = shared.pool.operations(number).unwrap();
            unit::with(|unit| (0..100).for_each(|_| unit.count_free()));
            let after = shared.pool.operations(number).unwrap();
            assert_eq!(after.wrapping_sub(before), 100);
            (shared, number)
        });
        let (shared, number) = runtime.block_on(counts).unwrap();
        runtime.shutdown(Duration::MAX);
        assert_eq!(shared.pool.operations(number), None);
    }
}
