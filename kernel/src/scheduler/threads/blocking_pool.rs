//! The blocking pool of a runtime: closures that may block, and how many threads run them.
//!
//! No job and no suspended stack lives on a blocking thread, so a closure that blocks one holds up nobody. A closure
//! gets a thread at once, idle or new, while there are fewer than
//! [`Builder::blocking_threads`](crate::Builder::blocking_threads). Beyond that limit the closures wait for a free
//! thread, first come, first served.
//!
//! Invariants:
//! - A closure is in the queue, runs, or is gone. Its [`BlockingCall`] says which. The call ends only after the closure
//!   is gone, so the closure may borrow from the caller.
//! - A thread whose closure waits with Weald does not count against the limit, because the wait may be
//!   for something that itself needs a thread.
//! - A pool of operations ([`Bounds::held`]) *excuses* a closure that has held its thread for [`HELD`] while others
//!   wait: it no longer counts, so that operations that never return stop no other. Once no more can be excused and
//!   none has returned for [`check::THREAD_IS_LATE`], those that have waited that long end without one
//!   ([`BlockingPool::check`]).
//! - Otherwise a closure that waits too long for a thread is reported, and then no other until the queue was empty. So
//!   a deadlock of closures that wait for each other by other means is not silent.
//!
//! `check.rs` has what the monitor does with a queue that does not move, and with operations that nobody waits for, and
//! `priorities.rs` what it does with closures that compute.
//!
//! Called by [`blocking_threads`](crate::scheduler::threads::blocking_threads), which are the threads and the monitor's
//! check the pools, by the callers of closures and by the shutdown.

mod check;
mod priorities;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use crate::{
    report::{self, JobName, LateName, LateNames, panic_message},
    scheduler::threads::{
        blocking_call::{self, BlockingCall, CallEnd, RunsClosure},
        blocking_pool::priorities::ClosureThread,
    },
    sys::lock,
};

/// An operation that holds its thread this long is not counted while others wait: the disk or the server is slow, or
/// nobody will ever answer.
const HELD: Duration = Duration::from_millis(10);
/// An operation is reported when it has lasted this long.
pub(crate) const LASTS: Duration = Duration::from_secs(1);
/// How many jobs a report names at most.
const NAMED: usize = 10;

/// How many closures of a pool run at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The closures that count.
    pub(crate) counted: usize,
    /// The closures that are excused; zero if every closure counts, however long it runs.
    pub(crate) held: usize,
}

/// The blocking threads of one purpose, and the closures that wait for one.
pub(crate) struct BlockingPool {
    pub(super) bounds: Bounds,
    inner: Mutex<Inner>,
    /// Signalled when a closure is queued for an idle thread, and when the runtime stops.
    queued: Condvar,
}

#[derive(Default)]
struct Inner {
    /// The closures that wait, by the numbers of their calls.
    queue: BTreeMap<u64, QueuedClosure>,
    /// How many closures were ever queued.
    queued: u64,
    running: Vec<Running>,
    /// Operations whose futures were dropped while they ran, until they end or are reported.
    abandoned: Vec<Abandoned>,
    /// How many of those that run are excused.
    excused: usize,
    /// When a closure last began or ended.
    moved: Option<Instant>,
    /// Threads that have started and not ended.
    threads: usize,
    /// Threads that are counted and have not asked for a closure yet: each is on its way to one that is queued.
    starting: usize,
    /// Threads without a closure. Some of them may be on their way to a closure that is queued.
    idle: usize,
    /// Threads whose closure waits with Weald.
    waiting: usize,
    started: usize,
    /// Whether the system has refused a thread since a closure last began.
    is_refused: bool,
    is_stopped: bool,
    /// Whether the lack of a thread was reported since the queue was last empty.
    is_reported: bool,
}

/// A closure that a thread runs.
struct Running {
    call: Arc<BlockingCall>,
    since: Instant,
    is_excused: bool,
    thread: ClosureThread,
}

/// An operation that runs although its future was dropped.
struct Abandoned {
    call: Arc<BlockingCall>,
    /// When it began to run.
    since: Instant,
}

/// A closure in the queue.
pub(crate) struct QueuedClosure {
    work: Box<dyn FnOnce() + Send>,
    pub(super) call: Arc<BlockingCall>,
}

/// The fate of a closure that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// An idle thread takes it.
    HasThread,
    /// The caller must start the thread with this number, which is counted.
    NeedsThread(usize),
    /// It waits for a free thread.
    MustWait,
    /// The runtime has stopped: the call is over.
    Refused,
}

impl QueuedClosure {
    /// How reports name the closure.
    pub(super) fn name(&self) -> JobName {
        self.call.caller.name().known().clone()
    }

    pub(super) fn run(self) {
        self.call.begin();
        let _serves = RunsClosure::begin(&self.call);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(self.work)) {
            // Only the destructor of an output that nobody takes can panic here.
            let message = panic_message(payload.as_ref());
            report::unobserved_panic(&self.call.caller.name().now(), &message);
            std::mem::forget(payload);
        }
    }

    pub(super) fn refuse(self, end: CallEnd) {
        // A closure that is dropped may run a user's destructors.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(self.work))) {
            let message = panic_message(payload.as_ref());
            report::unobserved_panic(&self.call.caller.name().now(), &message);
            std::mem::forget(payload);
        }
        self.call.end(end);
    }
}

impl Inner {
    /// How many threads there may be.
    fn most(&self, bounds: Bounds) -> usize {
        bounds.counted.saturating_add(self.waiting + self.excused)
    }

    /// Whether a closure is queued to which no thread is on its way.
    fn lacks_thread(&self) -> bool {
        self.queue.len() > self.idle + self.starting
    }

    /// Counts a thread for the queue, if it needs one and may have it. Returns its number.
    fn count_new(&mut self, bounds: Bounds) -> Option<usize> {
        let may_start = self.threads < self.most(bounds);
        (self.lacks_thread() && may_start).then(|| {
            self.threads += 1;
            self.starting += 1;
            self.started += 1;
            self.started
        })
    }

    /// Excuses closures that have held their threads for long, as many as [`Bounds::held`] allows.
    fn excuse(&mut self, bounds: Bounds, now: Instant) {
        let free = bounds.held.saturating_sub(self.excused);
        let is_long = |running: &&mut Running| {
            !running.is_excused && now.saturating_duration_since(running.since) >= HELD
        };
        for running in self.running.iter_mut().filter(is_long).take(free) {
            running.is_excused = true;
            self.excused += 1;
        }
    }

    /// A closure has left the queue. If the queue is empty now, the next lack of a thread is reported again.
    fn note_shorter(&mut self) {
        self.is_reported &= !self.queue.is_empty();
    }

    fn names(&self) -> LateNames {
        let running = self.running.iter();
        LateNames::of(running.map(|running| running.call.caller.name()), NAMED)
    }
}

impl BlockingPool {
    pub(crate) fn new(bounds: Bounds) -> BlockingPool {
        BlockingPool {
            bounds,
            inner: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    /// Queues `work`.
    pub(super) fn push(&self, work: Box<dyn FnOnce() + Send>, call: Arc<BlockingCall>) -> Queued {
        let closure = QueuedClosure { work, call };
        let mut inner = lock(&self.inner);
        if inner.is_stopped {
            drop(inner);
            closure.refuse(CallEnd::NeverRan);
            return Queued::Refused;
        }
        inner.queued += 1;
        let number = inner.queued;
        closure.call.set_number(number);
        inner.queue.insert(number, closure);
        let new = inner.count_new(self.bounds);
        let must_wait = new.is_none() && inner.lacks_thread();
        drop(inner);
        self.queued.notify_one();
        match new {
            Some(number) => Queued::NeedsThread(number),
            None if must_wait => Queued::MustWait,
            None => Queued::HasThread,
        }
    }

    /// A thread that was counted could not start.
    pub(super) fn not_started(&self) {
        let mut inner = lock(&self.inner);
        inner.threads -= 1;
        inner.starting -= 1;
        inner.is_refused = true;
        let nobody_serves = inner.threads == 0;
        drop(inner);
        if nobody_serves {
            let end = match self.bounds.held {
                0 => CallEnd::NeverRan,
                _ => CallEnd::NoFreeThread,
            };
            self.refuse_queued(end, |_| true);
        }
    }

    /// Leaves the start of a thread that was counted to the monitor, which finds its closure in the queue. False if the
    /// caller must start it, because the runtime has stopped.
    pub(super) fn leave_start(&self) -> bool {
        let mut inner = lock(&self.inner);
        if !inner.is_stopped {
            inner.threads -= 1;
            inner.starting -= 1;
        }
        !inner.is_stopped
    }

    /// The closure of a thread begins to wait with Weald. Returns the number of a thread that must start.
    pub(super) fn begin_wait(&self) -> Option<usize> {
        let mut inner = lock(&self.inner);
        inner.waiting += 1;
        inner.count_new(self.bounds)
    }

    /// The wait has ended.
    pub(super) fn end_wait(&self) {
        lock(&self.inner).waiting -= 1;
    }

    /// Takes a closure out of the queue, if it has not begun: it will never run.
    /// Takes a time logarithmic in the length of the queue: ten thousand may be taken back at once.
    pub(crate) fn retract(&self, call: &Arc<BlockingCall>) {
        let mut inner = lock(&self.inner);
        let closure = inner.queue.remove(&call.number());
        inner.note_shorter();
        drop(inner);
        if let Some(closure) = closure {
            closure.refuse(CallEnd::NeverRan);
        }
    }

    /// The future of a call that is not queued any more is dropped. Returns true if it is an operation that still runs:
    /// then the monitor, which must be awake, watches it.
    pub(crate) fn abandon(&self, call: &Arc<BlockingCall>) -> bool {
        if !call.may_last() {
            return false;
        }
        let mut inner = lock(&self.inner);
        let is_it = |running: &&Running| Arc::ptr_eq(&running.call, call);
        let Some(since) = inner.running.iter().find(is_it).map(|it| it.since) else {
            return false;
        };
        let call = call.clone();
        inner.abandoned.push(Abandoned { call, since });
        true
    }

    fn refuse_queued(&self, end: CallEnd, which: impl Fn(&Arc<BlockingCall>) -> bool) {
        let refused = self.take_queued(which).into_iter();
        refused.for_each(|closure| closure.refuse(end));
    }

    fn take_queued(&self, which: impl Fn(&Arc<BlockingCall>) -> bool) -> Vec<QueuedClosure> {
        let mut inner = lock(&self.inner);
        let queue = std::mem::take(&mut inner.queue);
        let (taken, rest): (BTreeMap<u64, QueuedClosure>, BTreeMap<u64, QueuedClosure>) = queue
            .into_iter()
            .partition(|(_, closure)| which(&closure.call));
        inner.queue = rest;
        inner.note_shorter();
        drop(inner);
        taken.into_values().collect()
    }

    /// The first closure for a thread that has started; see [`next`](Self::next).
    pub(super) fn first(&self, retire_after: Duration) -> Option<QueuedClosure> {
        let mut inner = lock(&self.inner);
        inner.starting -= 1;
        self.next_in(inner, retire_after)
    }

    /// The next closure for an idle thread, which waits for one. None: the thread ends, and is no longer counted.
    pub(super) fn next(&self, retire_after: Duration) -> Option<QueuedClosure> {
        self.next_in(lock(&self.inner), retire_after)
    }

    fn next_in(&self, mut inner: MutexGuard<'_, Inner>, idle: Duration) -> Option<QueuedClosure> {
        let retire_at = Instant::now() + idle;
        loop {
            if inner.threads > inner.most(self.bounds) {
                break;
            }
            if let Some((_, closure)) = inner.queue.pop_first() {
                let now = Instant::now();
                inner.note_shorter();
                inner.moved = Some(now);
                inner.is_refused = false;
                inner.running.push(Running {
                    call: closure.call.clone(),
                    since: now,
                    is_excused: false,
                    thread: ClosureThread::here(),
                });
                return Some(closure);
            }
            let left = retire_at.saturating_duration_since(Instant::now());
            if inner.is_stopped || left.is_zero() {
                break;
            }
            inner.idle += 1;
            let waited = self.queued.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            inner.idle -= 1;
        }
        inner.threads -= 1;
        if !inner.queue.is_empty() {
            // This thread may have been woken for a closure, and then be one too many.
            self.queued.notify_one();
        }
        None
    }

    /// The closure has run. Returns whether the priority of the calling thread, which ran it, was lowered.
    pub(super) fn forget(&self, call: &Arc<BlockingCall>) -> bool {
        let mut inner = lock(&self.inner);
        let is_it = |running: &Running| Arc::ptr_eq(&running.call, call);
        let Some(at) = inner.running.iter().position(is_it) else {
            return false;
        };
        let running = inner.running.swap_remove(at);
        inner.excused -= usize::from(running.is_excused);
        inner.moved = Some(Instant::now());
        running.thread.is_lowered()
    }

    /// The calling thread ends, and is no longer counted; the monitor starts another for a closure that is queued.
    /// False if it must go on, because the runtime has stopped.
    pub(super) fn leave(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.threads -= usize::from(!inner.is_stopped);
        !inner.is_stopped
    }

    /// The runtime stops: idle threads end. Returns the closures of futures that have not begun, to be refused. A job
    /// takes its own closure back when it is cancelled; one that cannot be, because it unwinds, still runs.
    pub(crate) fn stop(&self) -> Vec<QueuedClosure> {
        lock(&self.inner).is_stopped = true;
        self.queued.notify_all();
        self.take_queued(|call| call.caller.is_future())
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.inner).threads
    }

    /// How many closures run, and how many wait for a thread.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.running.len(), inner.queue.len())
    }

    /// The futures whose closures run, apart from one that runs on the calling thread; they are no jobs.
    pub(crate) fn offloaded(&self) -> Vec<LateName> {
        let own = blocking_call::running_here();
        let is_other =
            |call: &Arc<BlockingCall>| own.as_ref().is_none_or(|own| !Arc::ptr_eq(own, call));
        let inner = lock(&self.inner);
        let running = inner.running.iter().map(|running| &running.call);
        let running = running
            .filter(|call| is_other(call))
            .map(|call| &call.caller);
        let futures = running.filter(|caller| caller.is_future());
        futures.map(|caller| caller.name()).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
