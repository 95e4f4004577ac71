//! What the scheduler asks of the features above it, as traits: forks, callbacks, the driver of a test runtime.
//!
//! The scheduler names these traits and nothing above them. A feature implements its trait and names the
//! scheduler. The crate root, which knows both, puts them together in [`FEATURES`](crate::FEATURES).
//!
//! `S` stands for what a runtime's threads share; it is defined above this file.

use std::any::Any;

use crate::{
    job::{JobPtr, JobRef, runnable::Runnable},
    timer::entry_queue::EntryQueue,
};

/// The features, as the crate root puts them together.
pub(crate) struct Features<S: 'static> {
    /// The forks of a new runtime.
    pub(crate) forks: fn() -> Box<dyn Forks<S>>,
    pub(crate) callbacks: &'static dyn Callbacks,
    pub(crate) driver: &'static dyn Driver,
    /// The default runtime, which starts at the first call.
    pub(crate) default_runtime: fn() -> &'static std::sync::Arc<S>,
    /// Ends a job that nobody will run.
    pub(crate) abandon: fn(Runnable),
}

/// The forked work of one runtime, which idle workers share.
pub(crate) trait Forks<S>: Any + Send + Sync {
    /// Steals the oldest half that a worker may run, as a job that is in no queue.
    fn steal(&self, shared: &S) -> Option<Runnable>;

    /// As [`steal`](Forks::steal), for the driver of a test runtime, which may run it on top of a job that waits.
    fn steal_for_driver(&self, shared: &S) -> Option<Runnable>;

    /// Whether there is a half that a worker could steal.
    fn sees_work(&self, shared: &S) -> bool;

    /// Whether some thread forks at this moment and a worker might help it.
    fn wants_helpers(&self, shared: &S) -> bool;

    /// Makes every thread that forks look around at its next fork. Called by a worker that has announced its sleep,
    /// before its last look for work.
    fn ring_all(&self);

    /// Asks what `job` forked to end, because `job` is cancelled.
    fn cancel_forks_of(&self, job: &JobRef);

    /// Whether `job` is in a fork.
    fn is_forking(&self, job: &JobRef) -> bool;

    /// For the feature itself, which knows the type.
    fn as_any(&self) -> &dyn Any;
}

/// The outermost fork that a thread is in. A thread's context names it while it lasts.
pub(crate) trait ThreadFork {
    /// The job that forked first; none on a foreign thread.
    fn root_job(&self) -> Option<JobPtr>;

    /// The thread no longer computes in the fork, until [`end_wait`](ThreadFork::end_wait) is given what this returns.
    fn begin_wait(&self) -> WaitedBefore;

    fn end_wait(&self, before: WaitedBefore);

    /// The thread, which kept what the fork used for its next one, is about to end.
    fn give_back(&self);
}

/// Whether the thread of a root fork waited already when another wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitedBefore {
    Yes,
    No,
}

/// While it lives, the thread does not compute in its root fork, so that another one may.
pub(crate) struct ForkWait<'a> {
    fork: &'a dyn ThreadFork,
    before: WaitedBefore,
}

impl<'a> ForkWait<'a> {
    pub(crate) fn begin(fork: &'a dyn ThreadFork) -> ForkWait<'a> {
        ForkWait {
            fork,
            before: fork.begin_wait(),
        }
    }
}

impl Drop for ForkWait<'_> {
    fn drop(&mut self) {
        self.fork.end_wait(self.before);
    }
}

/// Callbacks, whose timers and queues a worker looks after as entries.
pub(crate) trait Callbacks: Sync {
    /// A job that runs callbacks: those of `bring`, and then those that are ready at the worker that runs it. In the
    /// runtime of this number; in no queue.
    fn runner(&self, runtime: u16, bring: EntryQueue) -> Runnable;

    /// Cancels callbacks that are in no worker's list. Outside of every worker's lock: closures are dropped.
    fn discard(&self, callbacks: EntryQueue);
}

/// The driver of a test runtime: the thread that runs everything.
pub(crate) trait Driver: Sync {
    /// Whether the calling thread drives a test runtime.
    fn is_driving(&self) -> bool;

    /// Runs jobs, and moves time, until `is_over`.
    ///
    /// # Panics
    /// If nothing can run any more.
    fn drive_until(&self, is_over: &dyn Fn() -> bool);
}
