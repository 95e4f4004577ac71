//! What the scheduler needs from the features, as traits: forks, callbacks, the driver of a test runtime.
//!
//! The scheduler names these traits and no layer that comes later in the list of the crate root. A feature implements
//! its trait and may name the scheduler. The crate root, which knows both, connects them in
//! [`FEATURES`](crate::FEATURES).
//!
//! Timers and the reactor are not behind a trait, but below the scheduler: as data they know no worker, and a worker
//! owns its wheel as it owns its ring. Forks and callbacks create jobs, and so come later.
//!
//! The parameter `S` is the state that a runtime's threads share, a type of the scheduler's.

use std::{any::Any, panic::Location};

use crate::{
    job::{JobPtr, JobRef, runnable::Runnable},
    report::JobName,
    timer::{entry::EntryPtr, entry_queue::EntryQueue},
};

/// The table that the crate root fills in.
pub(crate) struct Features<S: 'static> {
    /// Creates the forks of a new runtime.
    pub(crate) forks: fn() -> Box<dyn Forks<S>>,
    pub(crate) callbacks: &'static dyn Callbacks,
    pub(crate) driver: &'static dyn Driver,
    /// The default runtime, which starts at the first call.
    pub(crate) default_runtime: fn() -> &'static std::sync::Arc<S>,
}

/// The forked work of one runtime, which idle workers share.
pub(crate) trait Forks<S>: Any + Send + Sync {
    /// Steals the oldest stack job that a worker may run, as a job that is in no queue.
    fn steal_stack_job(&self, shared: &S) -> Option<Runnable>;

    /// How many threads may have forked, as of about now: so many does [`steal_stack_job`](Forks::steal_stack_job) look
    /// at.
    fn threads(&self) -> usize;

    /// As [`steal_stack_job`](Forks::steal_stack_job), for the driver of a test runtime. The driver may run the stolen
    /// job on top of a job that waits.
    fn steal_for_driver(&self, shared: &S) -> Option<Runnable>;

    /// Whether there is a stack job that a worker could steal.
    fn sees_work(&self, shared: &S) -> bool;

    /// Whether some thread is forking and a worker might help it.
    fn wants_helpers(&self, shared: &S) -> bool;

    /// Whether a worker sleeps although too many root forks compute to let it take some stack job, or a scope has parts
    /// that nobody has begun: then [`find_blocked`](Forks::find_blocked) may find that fewer compute.
    fn must_find_blocked(&self, shared: &S) -> bool;

    /// If so, asks `is_blocked` about each thread that forks, by the system's number of the thread; notes the blocked
    /// ones, and wakes a worker if it may steal now. In any case clears the notes of threads that run again. Called by
    /// the monitor.
    fn find_blocked(&self, shared: &S, is_blocked: &dyn Fn(u32) -> bool);

    /// Until the next round so much room is in the quarantine. Called by the monitor.
    fn set_room_for_parts(&self, shared: &S, room: RoomForParts);

    /// Whether a part that goes before all others in the quarantine was taken, and has not begun.
    fn is_relieving(&self) -> bool;

    /// The forks whose parts no other thread may begin at present, because too many root forks compute, or because the
    /// parts block and the quarantine has no thread for them.
    fn held_back(&self, shared: &S) -> Vec<HeldBackFork>;

    /// Makes every forking thread check at its next fork whether a worker sleeps. Called by a worker that has prepared
    /// its sleep, before its last check for work, and by the monitor before its own.
    fn alert_all(&self);

    /// Cancels what `job` forked, because `job` is cancelled.
    fn cancel_forks_of(&self, job: &JobRef);

    /// Whether `job` is inside a fork.
    fn is_forking(&self, job: &JobRef) -> bool;

    /// Itself, for the feature to downcast to its own type.
    fn as_any(&self) -> &dyn Any;
}

/// The root fork of a thread. The thread's context names it while the fork lasts.
pub(crate) trait ThreadFork {
    /// The job that opened the root fork; none on a foreign thread.
    fn root_job(&self) -> Option<JobPtr>;

    /// The jobs whose forks wait for this root fork on other threads: the root job, and the jobs between it and this
    /// one. None if the root fork was not stolen.
    fn waiting_jobs(&self) -> Vec<HeldForker>;

    /// Where the user's code called the root fork.
    fn site(&self) -> &'static Location<'static>;

    /// The thread stops computing in the fork. Pass the result to [`end_wait`](ThreadFork::end_wait).
    fn begin_wait(&self) -> WaitedBefore;

    /// The thread computes again, unless it waited already when the wait began.
    fn end_wait(&self, before: WaitedBefore);

    /// Whether a destructor that a panic runs has forked the root fork, or one from which it descends, inside of
    /// another root fork, and waits for it: a cancel that unwound it would be raised in that destructor.
    fn is_of_destructor(&self) -> bool;

    /// Called by the thread before a cancel unwinds the root fork: nobody begins what was forked so far.
    fn begin_unwinding(&self);

    /// Called before the thread ends: gives back what it kept for its next root fork.
    fn give_back(&self);
}

/// The room that the quarantine has for parts of suspect lines.
#[derive(Clone, Copy)]
pub(crate) struct RoomForParts {
    /// So many may wait for its threads. While as many jobs wait there, no thief takes such a part.
    pub(crate) queued: usize,
    /// The same of parts that are to be tried.
    pub(crate) tried: usize,
    /// How many threads there are for parts for which others wait.
    pub(crate) left: ThreadsLeft,
}

/// How many threads are free while the quarantine is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadsLeft {
    /// None; or the quarantine is not full, or it runs as many short jobs as it may.
    None,
    /// So few that the next one is not given away at once.
    Last,
    /// More.
    Many,
}

/// A fork with parts that nobody may begin but its own thread, or the threads that run parts of the same scope.
pub(crate) struct HeldBackFork {
    /// Where the user's code called it.
    pub(crate) site: &'static Location<'static>,
    /// The job that runs it; none on a foreign thread.
    pub(crate) job: Option<JobRef>,
}

/// A job that waits in a fork, and holds its thread.
pub(crate) struct HeldForker {
    pub(crate) job: JobRef,
    /// Tells the threads apart.
    pub(crate) thread: usize,
}

/// Whether the thread of a root fork was already waiting when another wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitedBefore {
    Yes,
    No,
}

/// While a `ForkWait` lives, its thread does not count as computing, so another thread may compute.
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

/// Callbacks, whose timers and queues a worker keeps as entries.
pub(crate) trait Callbacks: Sync {
    /// A job that runs callbacks: first `incoming`, then those that are ready on the worker that runs the job. It
    /// belongs to the runtime with this number and is in no queue.
    fn runner(&self, runtime: u16, incoming: EntryQueue) -> Runnable;

    /// Cancels callbacks that are in no worker's list. Called outside every worker's lock: closures are dropped.
    fn discard(&self, callbacks: EntryQueue);

    /// How reports name a callback. The caller has the scheduler's claim to the entry.
    fn name_of(&self, callback: EntryPtr) -> JobName;
}

/// The driver of a test runtime: the one thread that runs everything.
pub(crate) trait Driver: Sync {
    /// Whether the calling thread drives a test runtime.
    fn is_driving(&self) -> bool;

    /// Runs jobs, and advances time, until `is_over`.
    ///
    /// # Panics
    /// If nothing can run any longer.
    fn drive_until(&self, is_over: &dyn Fn() -> bool);

    /// As [`drive_until`](Driver::drive_until), for code during which no job may run: only time advances, and
    /// descriptors become ready. False if that does not end the wait; of descriptors, within a second.
    fn advance_until(&self, is_over: &dyn Fn() -> bool) -> bool;
}
