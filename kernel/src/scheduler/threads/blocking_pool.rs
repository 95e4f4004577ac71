//! The blocking pool of a runtime: closures that may block, and how many threads run them.
//!
//! No job and no suspended stack lives on a blocking thread, so a closure that blocks one holds up nobody. A closure
//! gets a thread at once, idle or new, while there are fewer than
//! [`Builder::blocking_threads`](crate::Builder::blocking_threads). Beyond that bound the closures wait for their
//! turn, first come, first served.
//!
//! Invariants:
//! - A closure is in the queue, runs, or is gone. [`BlockingCall`] says which; it ends only after the closure is gone,
//!   so that its caller may lend what it owns.
//! - A thread whose closure waits with Weald does not count against the bound: what it waits for may
//!   itself need a thread.
//! - A closure that waits too long for its turn is reported, once until the queue is empty ([`report_if_full`]). So a
//!   deadlock of closures that wait for each other by other means is not silent.
//!
//! Called by [`blocking_threads`](crate::scheduler::threads::blocking_threads), which are the threads, by the callers of
//! closures, by the monitor and by the shutdown.
//!
//! [`report_if_full`]: BlockingPool::report_if_full

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    sync::{Arc, Condvar, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use weald_sync::reason::{Kind, Reason};

use crate::{
    job::{JobRef, foreign_waker},
    report::{self, JobName, panic_message},
    sys::lock,
};

/// A closure that waits this long for its turn is reported.
const TURN_IS_LATE: Duration = Duration::from_secs(1);

/// The blocking threads of a runtime, and the closures that wait for one.
pub(crate) struct BlockingPool {
    inner: Mutex<Inner>,
    /// Signalled when a closure is queued for an idle thread, and when the runtime stops.
    queued: Condvar,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Turn>,
    running: Vec<Arc<BlockingCall>>,
    /// Threads that have started and not ended.
    threads: usize,
    /// Threads without a closure. Some of them may be on their way to a closure that is queued.
    idle: usize,
    /// Threads whose closure waits with Weald.
    waiting: usize,
    started: usize,
    is_stopped: bool,
    /// Whether the lack of a thread was reported since the queue was last empty.
    is_reported: bool,
}

/// A closure in the queue.
pub(super) struct Turn {
    work: Box<dyn FnOnce() + Send>,
    pub(super) call: Arc<BlockingCall>,
}

/// One closure on its way through the pool, as its caller sees it.
pub(crate) struct BlockingCall {
    caller: Caller,
    since: Instant,
    progress: Mutex<Progress>,
}

struct Progress {
    phase: CallPhase,
    waker: Option<Waker>,
}

/// Where a closure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    Queued,
    Running,
    Over(CallEnd),
}

/// What became of a closure that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// An idle thread takes it.
    HasThread,
    /// The caller must start the thread with this number, which is counted.
    NeedsThread(usize),
    /// It waits for its turn.
    MustWait,
    /// The runtime has stopped: the call is over.
    Refused,
}

/// How a call ended. The closure is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Ran,
    NeverRan,
}

/// The caller that waits for a closure, for reports.
pub(crate) enum Caller {
    /// A job, whose stack stays suspended until the closure is gone.
    Job(JobRef),
    /// A future. It may be dropped; the closure then continues on its own.
    Future {
        site: &'static Location<'static>,
        type_name: &'static str,
    },
}

impl Caller {
    fn name(&self) -> JobName {
        match self {
            Caller::Job(job) => JobName::of(job.header()),
            Caller::Future { site, type_name } => JobName {
                name: None,
                type_name,
                site,
                waits_for: None,
            },
        }
    }
}

impl BlockingCall {
    pub(super) fn new(caller: Caller) -> Arc<BlockingCall> {
        Arc::new(BlockingCall {
            caller,
            since: Instant::now(),
            progress: Mutex::new(Progress {
                phase: CallPhase::Queued,
                waker: None,
            }),
        })
    }

    /// How the call ended, once it has. Until then `note` gets what the caller waits for.
    pub(crate) fn poll(&self, cx: &Context<'_>, note: fn(Reason)) -> Poll<CallEnd> {
        let mut progress = lock(&self.progress);
        if let CallPhase::Over(end) = progress.phase {
            return Poll::Ready(end);
        }
        note(self.reason(progress.phase));
        let former = progress.waker.replace(cx.waker().clone());
        drop(progress);
        // Outside the lock: a waker's destructor is user code.
        drop(former);
        Poll::Pending
    }

    fn reason(&self, phase: CallPhase) -> Reason {
        match phase {
            CallPhase::Queued => Reason::new(Kind::BlockingTurn, self),
            CallPhase::Running | CallPhase::Over(_) => Reason::new(Kind::Blocking, self),
        }
    }

    fn begin(&self) {
        let mut progress = lock(&self.progress);
        progress.phase = CallPhase::Running;
        // The job is in this wait until the call is over, so the word is about this call. Before its first poll the
        // wait has noted nothing.
        if let Caller::Job(job) = &self.caller
            && progress.waker.is_some()
        {
            let reason = self.reason(CallPhase::Running);
            job.header().set_waits_for(reason.to_word());
        }
    }

    /// The closure is gone.
    pub(super) fn end(&self, end: CallEnd) {
        let mut progress = lock(&self.progress);
        progress.phase = CallPhase::Over(end);
        let waker = progress.waker.take();
        drop(progress);
        if let Some(waker) = waker {
            foreign_waker::wake(waker);
        }
    }
}

impl Turn {
    pub(super) fn run(self) {
        self.call.begin();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(self.work)) {
            // Only the destructor of an output that nobody takes can panic here.
            let message = panic_message(payload.as_ref());
            report::unobserved_panic(&self.call.caller.name(), &message);
            std::mem::forget(payload);
        }
    }

    fn refuse(self) {
        // A closure that is dropped may run a user's destructors.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(self.work))) {
            report::unobserved_panic(&self.call.caller.name(), &panic_message(payload.as_ref()));
            std::mem::forget(payload);
        }
        self.call.end(CallEnd::NeverRan);
    }
}

impl Inner {
    /// Counts a thread for the queue, if it needs one and may have it. Returns its number.
    fn count_new(&mut self, most: usize) -> Option<usize> {
        let may_start = self.threads < most.saturating_add(self.waiting);
        (self.queue.len() > self.idle && may_start).then(|| {
            self.threads += 1;
            self.started += 1;
            self.started
        })
    }

    fn is_crowded(&self, most: usize) -> bool {
        self.threads > most.saturating_add(self.waiting)
    }
}

impl BlockingPool {
    pub(crate) fn new() -> BlockingPool {
        BlockingPool {
            inner: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    /// Queues `work`.
    pub(super) fn push(
        &self,
        work: Box<dyn FnOnce() + Send>,
        call: Arc<BlockingCall>,
        most: usize,
    ) -> Queued {
        let turn = Turn { work, call };
        let mut inner = lock(&self.inner);
        if inner.is_stopped {
            drop(inner);
            turn.refuse();
            return Queued::Refused;
        }
        inner.queue.push_back(turn);
        let new = inner.count_new(most);
        let must_wait = new.is_none() && inner.queue.len() > inner.idle;
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
        let nobody_serves = inner.threads == 0;
        drop(inner);
        if nobody_serves {
            self.refuse_queued(|_| true);
        }
    }

    /// The closure of a thread begins to wait with Weald. Returns the number of a thread that must start.
    pub(super) fn begin_wait(&self, most: usize) -> Option<usize> {
        let mut inner = lock(&self.inner);
        inner.waiting += 1;
        inner.count_new(most)
    }

    /// The wait has ended.
    pub(super) fn end_wait(&self) {
        lock(&self.inner).waiting -= 1;
    }

    /// Takes a closure out of the queue, if it has not begun: it will never run.
    pub(crate) fn retract(&self, call: &Arc<BlockingCall>) {
        self.refuse_queued(|queued| Arc::ptr_eq(queued, call));
    }

    fn refuse_queued(&self, which: impl Fn(&Arc<BlockingCall>) -> bool) {
        let mut inner = lock(&self.inner);
        let queue = std::mem::take(&mut inner.queue);
        let (refused, rest): (VecDeque<Turn>, VecDeque<Turn>) =
            queue.into_iter().partition(|turn| which(&turn.call));
        inner.queue = rest;
        drop(inner);
        refused.into_iter().for_each(Turn::refuse);
    }

    /// The next closure for an idle thread, which waits for one. None: the thread ends, and is no longer counted.
    pub(super) fn next(&self, most: usize, retire_after: Duration) -> Option<Turn> {
        let mut inner = lock(&self.inner);
        let retire_at = Instant::now() + retire_after;
        loop {
            if inner.is_crowded(most) {
                break;
            }
            if let Some(turn) = inner.queue.pop_front() {
                inner.is_reported &= !inner.queue.is_empty();
                inner.running.push(turn.call.clone());
                return Some(turn);
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
        None
    }

    /// The closure has run.
    pub(super) fn forget(&self, call: &Arc<BlockingCall>) {
        lock(&self.inner)
            .running
            .retain(|running| !Arc::ptr_eq(running, call));
    }

    /// The runtime stops: idle threads end, and the closures of futures that have not begun are refused. A job takes
    /// its own closure back when it is cancelled; one that cannot be, because it unwinds, still gets its turn.
    pub(crate) fn stop(&self) {
        lock(&self.inner).is_stopped = true;
        self.queued.notify_all();
        self.refuse_queued(|call| matches!(call.caller, Caller::Future { .. }));
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.inner).threads
    }

    /// How many closures run, and how many wait for a turn.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.running.len(), inner.queue.len())
    }

    /// The futures whose closures run; they are no jobs.
    pub(crate) fn offloaded(&self) -> Vec<JobName> {
        let inner = lock(&self.inner);
        let running = inner.running.iter().map(|call| &call.caller);
        running
            .filter(|caller| matches!(caller, Caller::Future { .. }))
            .map(Caller::name)
            .collect()
    }

    /// Whether a closure waits for its turn, and this was not reported yet.
    pub(super) fn is_unreported(&self) -> bool {
        let inner = lock(&self.inner);
        !inner.queue.is_empty() && !inner.is_reported
    }

    /// Reports a closure that waits too long for its turn, with those that hold the threads. Returns whether the
    /// monitor must look again. Called by the monitor each round.
    pub(crate) fn report_if_full(&self, most: usize) -> bool {
        let mut inner = lock(&self.inner);
        let Some(first) = inner.queue.front().filter(|_| !inner.is_reported) else {
            return false;
        };
        let late = first.call.since.elapsed();
        if late < TURN_IS_LATE {
            return true;
        }
        inner.is_reported = true;
        let queued = inner.queue.len();
        let running: Vec<JobName> = inner
            .running
            .iter()
            .map(|call| call.caller.name())
            .collect();
        drop(inner);
        report::no_turn_to_block(most, queued, late, &running);
        false
    }
}
