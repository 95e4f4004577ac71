//! What the workloads of processes are written against: a runtime with units, mailboxes and sleeps, and what is built
//! on these alone.
//!
//! Invariants: everything is resolved at compile time, and nothing is boxed here. On a system whose waits block (may
//! and std) each future is ready at its first poll, so a unit is one poll on its own stack.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::Tally;

/// Long enough for a unit that has counted itself started to reach its wait.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);

/// A runtime.
pub(crate) trait System: Sized + 'static {
    type Outbox<T: Send + 'static>: Outbox<T>;
    type Mailbox<T: Send + 'static>: Mailbox<T>;
    /// The two ends of a channel for one message.
    type Tell<T: Send + 'static>: Send + 'static;
    type Told<T: Send + 'static>: Send + 'static;
    /// What is kept of a unit in order to see that it is gone.
    type Unit: Send + 'static;

    fn mailbox<T: Send + 'static>() -> (Self::Outbox<T>, Self::Mailbox<T>);
    fn once<T: Send + 'static>() -> (Self::Tell<T>, Self::Told<T>);
    /// Sends the one message; false if nobody waits for it.
    fn tell<T: Send + 'static>(tell: Self::Tell<T>, value: T) -> bool;
    fn told<T: Send + 'static>(told: Self::Told<T>) -> impl Future<Output = Option<T>> + Send;

    /// Starts a unit that nobody joins.
    fn start(body: impl Future<Output = ()> + Send + 'static);
    /// Starts a unit whose end is waited for.
    fn spawn(body: impl Future<Output = ()> + Send + 'static) -> Self::Unit;
    /// Waits until the runtime has given back everything of these units, which are all that there are. What is kept
    /// beside a unit may be dropped with it, but need not.
    fn gone<T: Send>(units: &mut Vec<Option<(T, Self::Unit)>>) -> impl Future<Output = ()> + Send;
    fn pause(length: Duration) -> impl Future<Output = ()> + Send;
    /// Ends the program with a sentence if there cannot be so many units.
    fn allow(_units: usize) {}
}

/// A runtime of tasks that can sleep, and be cancelled while they do.
pub(crate) trait Tasks: System {
    type Task: Send + 'static;
    type Sleep: Future + Send + 'static;

    fn task(body: impl Future<Output = ()> + Send + 'static) -> Self::Task;
    fn cancel(task: Self::Task);
    fn sleep(length: Duration) -> Self::Sleep;
    fn sleep_until(due: Instant) -> Self::Sleep;
    fn give_way() -> impl Future<Output = ()> + Send;
}

/// Where messages are sent to; a send never waits.
pub(crate) trait Outbox<T>: Clone + Send + Sync + 'static {
    /// False if the receiver is gone.
    fn send(&self, value: T) -> bool;
}

/// Where they arrive.
pub(crate) trait Mailbox<T>: Send + 'static {
    /// Waits for the next message with the runtime's own future: one around it would cost something at each poll.
    fn receive(&mut self) -> impl Future<Output = impl Arrival<T>> + Send;
}

/// What a receive ends with.
pub(crate) trait Arrival<T>: Send {
    /// The message; `None` if every sender is gone.
    fn message(self) -> Option<T>;
}

impl<T: Send> Arrival<T> for Option<T> {
    fn message(self) -> Self {
        self
    }
}

impl<T: Send, E: Send> Arrival<T> for Result<T, E> {
    fn message(self) -> Option<T> {
        self.ok()
    }
}

/// Runs a future whose waits block the thread.
pub(crate) fn run_blocking<T>(body: impl Future<Output = T>) -> T {
    match pin!(body).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("its waits block"),
    }
}

/// A counter that all units share, and that wakes the main one when it is full.
pub(crate) struct Counter<S: System> {
    tally: Tally,
    open: S::Outbox<()>,
}

impl<S: System> Counter<S> {
    pub(crate) fn count(&self) {
        if self.tally.count() {
            assert!(self.open.send(()), "the main unit waits");
        }
    }
}

/// Opens when all have counted themselves.
pub(crate) struct Gate<S: System> {
    pub(crate) counter: &'static Counter<S>,
    opened: S::Mailbox<()>,
}

impl<S: System> Gate<S> {
    /// A gate that opens after `full` counts; it lives until the program ends.
    pub(crate) fn new(full: usize) -> Self {
        let (open, opened) = S::mailbox();
        let tally = Tally::new(full);
        let counter = Box::leak(Box::new(Counter { tally, open }));
        Self { counter, opened }
    }

    pub(crate) async fn wait(&mut self) {
        let opened = self.opened.receive().await;
        opened.message().expect("the counter keeps its end");
    }
}

/// Units that are parked before the clock starts and then work at the same time.
pub(crate) struct Team<S: System> {
    started: Gate<S>,
    done: Gate<S>,
    starts: Vec<S::Tell<()>>,
}

impl<S: System> Team<S> {
    /// A team that will have this many units.
    pub(crate) fn of(units: usize) -> Self {
        S::allow(units);
        Self::that_counts(units, units)
    }

    /// A team of which only these many count themselves as done.
    pub(crate) fn that_counts(units: usize, done: usize) -> Self {
        Self {
            started: Gate::new(units),
            done: Gate::new(done),
            starts: Vec::with_capacity(units),
        }
    }

    /// Adds a unit that waits for the start and then does this work.
    pub(crate) fn add(&mut self, work: impl Future + Send + 'static) {
        let (started, done) = (self.started.counter, self.done.counter);
        let go = self.told_to_start();
        S::start(async move {
            started.count();
            S::told(go).await.expect("the main unit sends the start");
            work.await;
            done.count();
        });
    }

    /// The same, but the clock does not wait for it.
    pub(crate) fn add_uncounted(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let started = self.started.counter;
        let go = self.told_to_start();
        S::start(async move {
            started.count();
            S::told(go).await.expect("the main unit sends the start");
            work.await;
        });
    }

    /// What a unit counts its start and its end with that waits in its body alone. What `add` wraps round a body costs
    /// a few instructions at each poll, which a workload of nothing but polls would measure.
    pub(crate) fn counters(&self) -> [&'static Counter<S>; 2] {
        [self.started.counter, self.done.counter]
    }

    /// The start of such a unit.
    pub(crate) fn told_to_start(&mut self) -> S::Told<()> {
        let (start, go) = S::once();
        self.starts.push(start);
        go
    }

    /// Starts all units and returns how long it took until the last one was done.
    pub(crate) async fn run(self) -> Duration {
        self.run_from(|| {}).await
    }

    /// The same, and does `begin` when all are started.
    pub(crate) async fn run_from(mut self, begin: impl FnOnce()) -> Duration {
        self.started.wait().await;
        S::pause(SETTLE).await;
        let clock = Instant::now();
        for start in self.starts {
            assert!(S::tell(start, ()), "the unit waits for its start");
        }
        begin();
        self.done.wait().await;
        clock.elapsed()
    }
}
