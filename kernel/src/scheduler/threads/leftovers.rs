//! Leftovers: user code that a stopped runtime still has to run or drop. These are wakers of other executors, which it
//! calls, and closures of callbacks and of [`offload`](crate::offload()) that have not run, and what ended jobs have
//! left, which it drops.
//!
//! No worker is left to run it, and the thread that finds it has something else to do: it shuts the runtime down, ends
//! other jobs, or waits in a destructor. So leftovers run on threads of their own, and each thread takes one after the
//! other: wakers first, because somebody waits for them. The *keeper* is a thread that runs no leftover: while the
//! queue is not empty, it starts a thread when each one has been held by one leftover for [`HELD`]. A shutdown waits
//! for all leftovers until its deadline, and names those that have not ended then.
//!
//! The thread of a test runtime runs its leftovers itself.
//!
//! Invariant: while the queue is not empty, there is a keeper. It ends only under the lock, when it has seen that the
//! queue is empty.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use crate::{
    FEATURES,
    job::foreign_call::{ForeignCall, ForeignCalls},
    report::{JobName, RuntimeSubscriber},
    scheduler::threads::{blocking_call::CallEnd, blocking_pool::QueuedClosure},
    sys::lock,
    timer::entry_queue::EntryQueue,
};

/// How long a leftover may hold its thread before another thread takes those behind it.
const HELD: Duration = Duration::from_millis(5);

/// The most threads that run leftovers. If each of them is held, those behind wait.
const MOST_THREADS: usize = 64;

/// How long a shutdown waits beyond its deadline for a leftover that had just begun: it names only what holds a thread.
const BRIEF: Duration = Duration::from_millis(20);

/// Leftovers that were found. The thread that drops them runs them.
#[derive(Default)]
#[must_use = "leftovers that are dropped run on the calling thread"]
pub(crate) struct Leftovers {
    pub(crate) calls: ForeignCalls,
    /// Their callers wait, too.
    pub(crate) queued: Vec<QueuedClosure>,
    pub(crate) closures: EntryQueue,
}

impl Leftovers {
    pub(crate) fn of_calls(calls: ForeignCalls) -> Leftovers {
        let mut found = Leftovers::default();
        found.calls = calls;
        found
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.queued.is_empty() && self.closures.is_empty()
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        drop(std::mem::take(&mut self.calls));
        let queued = self.queued.drain(..);
        queued.for_each(|closure| closure.refuse(CallEnd::NeverRan));
        FEATURES
            .callbacks
            .discard(std::mem::take(&mut self.closures));
    }
}

/// The threads of one runtime that run its leftovers, and the queue of these. It may outlive the runtime.
pub(crate) struct LeftoverThreads {
    state: Mutex<LeftoverQueue>,
    /// Signalled when a thread ends.
    ended: Condvar,
    subscriber: Arc<RuntimeSubscriber>,
}

#[derive(Default)]
struct LeftoverQueue {
    calls: VecDeque<ForeignCall>,
    queued: VecDeque<QueuedClosure>,
    closures: EntryQueue,
    has_keeper: bool,
    threads: usize,
    /// What the threads run now.
    running: Vec<LeftoverRun>,
}

/// A leftover that a thread runs.
struct LeftoverRun {
    thread: ThreadId,
    name: JobName,
    since: Instant,
}

impl LeftoverQueue {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.queued.is_empty() && self.closures.is_empty()
    }

    fn is_thread_missing(&self) -> bool {
        let is_held = |run: &LeftoverRun| run.since.elapsed() >= HELD;
        let all_held = self.running.len() == self.threads && self.running.iter().all(is_held);
        all_held && self.threads < MOST_THREADS
    }

    /// Takes the first leftover out of the queue, with its name.
    fn take(&mut self) -> Option<(JobName, Leftovers)> {
        let mut taken = Leftovers::default();
        if let Some(call) = self.calls.pop_front() {
            let name = call.name();
            taken.calls.push(call);
            return Some((name, taken));
        }
        if let Some(closure) = self.queued.pop_front() {
            let name = closure.name();
            taken.queued.push(closure);
            return Some((name, taken));
        }
        let name = FEATURES.callbacks.name_of(self.closures.first()?);
        taken.closures = self.closures.take_first(1);
        Some((name, taken))
    }

    /// What is left, if those that run `hold` their threads, and the others are about to end.
    fn left(&self, holds: impl Fn(&LeftoverRun) -> bool) -> LeftLeftovers {
        let held: Vec<JobName> = self
            .running
            .iter()
            .filter(|run| holds(run))
            .map(|run| run.name.clone())
            .collect();
        let brief = self.running.len() - held.len();
        let waiting = self.calls.len() + self.queued.len() + self.closures.len();
        LeftLeftovers {
            held,
            left: brief + waiting,
        }
    }
}

/// The leftovers that a shutdown does not wait for any longer.
pub(crate) struct LeftLeftovers {
    /// Those that hold a thread.
    pub(crate) held: Vec<JobName>,
    /// How many others there are.
    pub(crate) left: usize,
}

impl LeftoverThreads {
    pub(crate) fn new(subscriber: Arc<RuntimeSubscriber>) -> Arc<LeftoverThreads> {
        Arc::new(LeftoverThreads {
            state: Mutex::default(),
            ended: Condvar::new(),
            subscriber,
        })
    }

    /// Lets a thread run what was found. Any thread, outside every lock.
    pub(crate) fn add(self: &Arc<Self>, mut found: Leftovers) {
        if found.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        state
            .calls
            .extend(std::mem::take(&mut found.calls).into_calls());
        state.queued.extend(found.queued.drain(..));
        while let Some(closure) = found.closures.pop() {
            state.closures.push_unlisted(closure);
        }
        let has_keeper = std::mem::replace(&mut state.has_keeper, true);
        drop(state);
        if !has_keeper && !self.start(LeftoverThreads::keep) {
            // No thread can be started. What blocks now holds the caller.
            self.keep();
        }
    }

    /// Waits until all leftovers have run, at most until `deadline`. Returns those that have not.
    pub(crate) fn await_all(&self, deadline: Instant) -> LeftLeftovers {
        let mut state = lock(&self.state);
        loop {
            let is_over = state.is_empty() && state.running.is_empty();
            let now = Instant::now();
            // Of those that run at the deadline, the brief ones end.
            let begun = |run: &LeftoverRun| run.since <= deadline;
            let is_brief = |run: &LeftoverRun| begun(run) && run.since.elapsed() < BRIEF;
            if is_over || now >= deadline && !state.running.iter().any(is_brief) {
                return state.left(begun);
            }
            let left = deadline.saturating_duration_since(now).max(HELD);
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Starts a thread that does `act`. False if the system refuses.
    fn start(self: &Arc<Self>, act: fn(&Arc<Self>)) -> bool {
        let own = self.clone();
        let thread = thread::Builder::new().name("weald-shutdown".to_owned());
        let started = thread.spawn(move || {
            let _reports = own.subscriber.enter();
            act(&own);
        });
        started.is_ok()
    }

    /// The life of the keeper: see the head of the file.
    fn keep(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        while !state.is_empty() {
            if state.is_thread_missing() {
                state.threads += 1;
                drop(state);
                if !self.start(|own| own.run_all()) {
                    self.run_all();
                }
                state = lock(&self.state);
                continue;
            }
            let waited = self.ended.wait_timeout(state, HELD);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        state.has_keeper = false;
    }

    /// Runs leftovers until there are none. The calling thread is counted.
    fn run_all(&self) {
        let own = thread::current().id();
        loop {
            let mut state = lock(&self.state);
            state.running.retain(|run| run.thread != own);
            let Some((name, leftover)) = state.take() else {
                state.threads -= 1;
                return self.ended.notify_all();
            };
            state.running.push(LeftoverRun {
                thread: own,
                name,
                since: Instant::now(),
            });
            drop(state);
            drop(leftover);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        sync::mpsc,
        task::{Wake, Waker},
    };

    use super::*;
    use crate::scheduler::workers::{config::Config, shared::Shared};
    use crate::{job::foreign_call::FiredBy, timer::clock::ClockKind};

    /// Tells that it is woken, and blocks until it is told to go on.
    struct Blocks(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

    impl Wake for Blocks {
        fn wake(self: Arc<Blocks>) {
            self.0.send(()).unwrap();
            _ = lock(&self.1).recv();
        }
    }

    #[test]
    fn what_has_begun_and_blocks_is_named() {
        let (shared, _handoffs) = Shared::new(Config::new(), ClockKind::Real).unwrap();
        let ((begin, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
        let waker = Waker::from(Arc::new(Blocks(begin, Mutex::new(goes))));
        let mut calls = ForeignCalls::default();
        calls.push(ForeignCall::new(FiredBy::Timer, waker));
        shared.leftovers.add(Leftovers::of_calls(calls));
        begun.recv().unwrap();
        let left = shared.leftovers.await_all(Instant::now());
        assert_eq!(left.left, 0);
        let names = left.held.iter().map(|named| named.name.as_deref());
        assert_eq!(
            names.collect::<Vec<_>>(),
            [Some("a waker fired by a timer")]
        );
        go.send(()).unwrap();
    }
}
