//! The context of an OS thread: the worker that it owns, the job that it runs, the stack that it is on.
//!
//! Every field is written by its own thread only. A foreign thread has an empty context. There is no destructor, so an
//! access is one load from the thread's base register.

#![allow(unsafe_code)]

mod budget;
mod cached_stacks;
pub(crate) mod nested_run;
pub(crate) mod plain_nested_run;
mod poll_notes;
mod stacks;
mod work;

pub(crate) use crate::scheduler::workers::context::{
    nested_run::OuterRun,
    poll_notes::{Left, PollNotes},
};

use std::{
    arch::asm,
    cell::Cell,
    ptr::{self, NonNull},
    sync::Arc,
    task::Waker,
    thread,
    time::Instant,
};

use crate::scheduler::workers::context::{cached_stacks::CachedStacks, nested_run::OuterRuns};
use weald_sync::unit::{self, Obstacle, Unit};

use crate::{
    biased_lock::Lease,
    job::{Header, JobPtr, JobRef},
    scheduler::services::{ForkWait, ThreadFork},
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{Base, StackContext},
        },
        threads::outbox::Outbox,
        workers::{shared::Shared, waker, worker::Worker},
    },
    stack::Stack,
};

/// The runtime number that no runtime has.
pub(crate) const NO_RUNTIME: u16 = 0;

pub(crate) struct Context {
    /// The runtime of the worker that the thread owns, or [`NO_RUNTIME`].
    runtime: Cell<u16>,
    /// That worker, and its lease. Valid while `runtime` is set.
    lease: Cell<Lease>,
    worker: Cell<*const Worker>,
    /// The runtime that the thread works for: that of its worker, or of the worker that it was detached from, or the
    /// one whose `block_on` it is in. Valid while set: the code that sets it keeps the runtime alive.
    shared: Cell<*const Shared>,
    /// The queue of the jobs that are pinned to this thread. Valid while set, as above.
    pinned: Cell<*const PinnedQueue>,
    /// The outbox of this thread, if it belongs to a pool. Valid while set, as above.
    outbox: Cell<*const Outbox>,
    /// The job that the thread runs.
    job: Cell<Option<JobPtr>>,
    /// The unit of the thread; null until it was asked for.
    unit: Cell<*const Unit>,
    /// The root fork that the thread is in. Valid while set: it does not outlive its runtime.
    thread_fork: Cell<Option<NonNull<dyn ThreadFork>>>,
    /// What the thread keeps for its next root fork. Valid while set. Only threads of a runtime keep it, and they give
    /// it back before they end.
    spare_thread_fork: Cell<Option<NonNull<dyn ThreadFork>>>,
    /// The deadline of the caller on whose behalf the running job works. None while other code than that runs, such as
    /// another job on top of it, or while the stack of that job is suspended.
    wanted_until: Cell<Option<Instant>>,
    /// Whether the thread drops the future of a job that was cancelled.
    dropping: Cell<bool>,
    /// The outer runs in which the present one is nested.
    pub(crate) outer_runs: OuterRuns,
    /// How many stacks of this thread are suspended while they unwind.
    unwinding: Cell<u32>,
    /// The stack of ours on which the thread runs; null on its own.
    stack_context: Cell<*const StackContext>,
    /// The base of the loop at work on this thread; null if none is. Valid while set.
    base: Cell<*const Base<'static>>,
    /// Stacks that fibers gave back last, for the next fibers. Only on threads that own a worker.
    cached_stacks: CachedStacks,
    /// A stack that was just left for good; the stack that resumes gives it back.
    abandoned: Cell<Option<Stack>>,
    /// See [`direct_budget`](Context::direct_budget).
    direct_budget: Cell<u32>,
    left: Cell<Option<Left>>,
    /// See [`set_given_away`](Context::set_given_away).
    given_away: Cell<bool>,
}

/// A nested run. When it is dropped, the outer run continues.
pub(crate) struct NestedRun<'a> {
    here: &'a Context,
    node: &'a OuterRun,
    job: Option<JobPtr>,
    thread_fork: Option<NonNull<dyn ThreadFork>>,
    /// The number and the budget of the outer run's unit.
    unit: (usize, u32),
    noted: PollNotes,
    wanted_until: Option<Instant>,
    dropping: bool,
}

thread_local! {
    static CONTEXT: Context = const {
        Context {
            runtime: Cell::new(NO_RUNTIME),
            lease: Cell::new(Lease::NONE),
            worker: Cell::new(ptr::null()),
            shared: Cell::new(ptr::null()),
            pinned: Cell::new(ptr::null()),
            outbox: Cell::new(ptr::null()),
            job: Cell::new(None),
            unit: Cell::new(ptr::null()),
            thread_fork: Cell::new(None),
            spare_thread_fork: Cell::new(None),
            wanted_until: Cell::new(None),
            dropping: Cell::new(false),
            outer_runs: OuterRuns::new(),
            unwinding: Cell::new(0),
            stack_context: Cell::new(ptr::null()),
            base: Cell::new(ptr::null()),
            cached_stacks: CachedStacks::new(),
            abandoned: Cell::new(None),
            direct_budget: Cell::new(0),
            left: Cell::new(None),
            given_away: Cell::new(false),
        }
    };
}

/// Runs `act` with the calling thread's context.
#[inline(always)]
pub(crate) fn with<R>(act: impl FnOnce(&Context) -> R) -> R {
    crate::sys::with_local(&CONTEXT, act)
}

/// The calling thread's context, for paths on which the closure of [`with`] would be a call.
#[inline(always)]
pub(crate) fn here() -> &'static Context {
    // SAFETY: the context has no destructor and lives as long as its thread. The reference cannot leave the thread,
    // because a context is not `Sync`.
    with(|context| unsafe { &*ptr::from_ref(context) })
}

/// [`here`] for code that may resume on another thread than it began on. Never inlined, so that no address of the
/// former thread is kept; and not a pure function to the compiler, so that two calls are not merged.
#[inline(never)]
pub(crate) fn again() -> &'static Context {
    // SAFETY: it has no instruction; the compiler takes it for one that reads and writes memory.
    unsafe { asm!("", options(nostack, preserves_flags)) };
    here()
}

impl Context {
    /// The worker that the thread owns, if it belongs to `runtime`, and the lease.
    #[inline(always)]
    pub(crate) fn worker_of(&self, runtime: u16) -> Option<(&Worker, Lease)> {
        if self.runtime.get() != runtime {
            return None;
        }
        // SAFETY: `set_worker` set it with the runtime's number, which no caller passes as NO_RUNTIME, and its caller
        // keeps the runtime alive until `clear_worker`.
        Some((unsafe { &*self.worker.get() }, self.lease.get()))
    }

    /// The worker that the thread owns, and the lease, if that worker may run `job`. A job that is pinned to a thread,
    /// or whose stack is suspended on one, belongs to no worker: it goes to the pinned queue of the thread.
    #[inline(always)]
    pub(crate) fn worker_for(&self, job: &Header) -> Option<(&Worker, Lease)> {
        match job.runs_anywhere() {
            true => self.worker_of(job.runtime()),
            false => None,
        }
    }

    /// The worker that the thread owns, and the lease.
    pub(crate) fn worker(&self) -> Option<(&Worker, Lease)> {
        match self.runtime.get() {
            NO_RUNTIME => None,
            runtime => self.worker_of(runtime),
        }
    }

    /// The thread now owns `worker`.
    pub(crate) fn set_worker(&self, shared: &Shared, worker: &Worker, lease: Lease) {
        self.worker.set(worker);
        self.lease.set(lease);
        self.runtime.set(shared.id());
    }

    /// The thread no longer owns a worker.
    pub(crate) fn clear_worker(&self) {
        self.runtime.set(NO_RUNTIME);
    }

    /// The runtime that the thread works for.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        // SAFETY: the code that set it keeps it alive until it is replaced.
        unsafe { self.shared.get().as_ref() }
    }

    /// Sets the runtime that the thread works for; returns the one before.
    pub(crate) fn set_shared(&self, shared: *const Shared) -> *const Shared {
        self.shared.replace(shared)
    }

    /// The pinned queue of this thread, as a counted reference.
    pub(crate) fn pinned(&self) -> Option<Arc<PinnedQueue>> {
        let pinned = self.pinned.get();
        if pinned.is_null() {
            return None;
        }
        // SAFETY: it came from an `Arc` that the code that set it keeps until it is replaced.
        unsafe { Arc::increment_strong_count(pinned) };
        // SAFETY: the count was just taken.
        Some(unsafe { Arc::from_raw(pinned) })
    }

    /// The pinned queue of this thread, valid for as long as the context names it.
    #[inline(always)]
    pub(crate) fn pinned_here(&self) -> Option<&PinnedQueue> {
        // SAFETY: the code that set it keeps it alive until it is replaced.
        unsafe { self.pinned.get().as_ref() }
    }

    /// The address of this thread's pinned queue; null if it has none.
    #[inline(always)]
    pub(crate) fn pinned_ptr(&self) -> *const PinnedQueue {
        self.pinned.get()
    }

    /// The outbox of this thread, if it belongs to the pool of the runtime that it works for.
    pub(crate) fn outbox(&self) -> Option<&Outbox> {
        // SAFETY: the code that set it keeps it alive until it is replaced.
        unsafe { self.outbox.get().as_ref() }
    }

    /// Sets the outbox of this thread.
    pub(crate) fn set_outbox(&self, outbox: *const Outbox) {
        self.outbox.set(outbox);
    }

    /// A wait with the stack begins in the middle of a poll. Returns what the poll has noted so far, for
    /// [`end_wait`](Context::end_wait).
    pub(crate) fn begin_wait(&self) -> PollNotes {
        self.set_noted(PollNotes::NOTHING)
    }

    /// The wait is over; `suspended`: the stack was, meanwhile.
    pub(crate) fn end_wait(&self, noted: PollNotes, suspended: bool) {
        // A panic within the wait is the unit's, and what catches it may be behind the wait.
        let noted = noted.with_panic_of(self.noted());
        self.set_noted(match suspended {
            true => noted.after_suspension(),
            false => noted,
        });
    }

    /// Sets the pinned queue of this thread; returns the one before.
    pub(crate) fn set_pinned(&self, pinned: *const PinnedQueue) -> *const PinnedQueue {
        self.pinned.replace(pinned)
    }

    /// The root fork that the thread is in.
    #[inline(always)]
    pub(crate) fn thread_fork(&self) -> Option<&dyn ThreadFork> {
        // SAFETY: the code that set it stays inside the fork's runtime until it is replaced.
        self.thread_fork.get().map(|fork| unsafe { fork.as_ref() })
    }

    /// The root fork that the thread is in, as the pointer that the feature set.
    #[inline(always)]
    pub(crate) fn thread_fork_ptr(&self) -> Option<NonNull<dyn ThreadFork>> {
        self.thread_fork.get()
    }

    /// Sets the root fork that the thread is in; returns the one before.
    pub(crate) fn set_thread_fork(
        &self,
        fork: Option<NonNull<dyn ThreadFork>>,
    ) -> Option<NonNull<dyn ThreadFork>> {
        self.thread_fork.replace(fork)
    }

    /// Takes what the thread keeps for its next root fork.
    pub(crate) fn take_spare_thread_fork(&self) -> Option<NonNull<dyn ThreadFork>> {
        self.spare_thread_fork.take()
    }

    /// Keeps `fork` for the thread's next root fork. False if the thread keeps one already.
    pub(crate) fn keep_spare_thread_fork(&self, fork: NonNull<dyn ThreadFork>) -> bool {
        let has_room = self.spare_thread_fork.get().is_none();
        if has_room {
            self.spare_thread_fork.set(Some(fork));
        }
        has_room
    }

    /// Until the guard is dropped, the running job does not compute in the fork that it is in.
    pub(crate) fn fork_wait(&self) -> Option<ForkWait<'_>> {
        self.thread_fork().map(ForkWait::begin)
    }

    /// A run of `job` begins with a fresh budget.
    #[inline(always)]
    pub(crate) fn begin_run(&self, job: JobPtr, budget: u32) {
        self.job.set(Some(job));
        unit::with(|unit| {
            // SAFETY: the job is alive while it runs, and its header begins with the word that the hooks promise.
            unsafe { unit.begin(job.as_raw().as_ptr().expose_provenance(), budget) };
            // SAFETY: no poll of this run has noted anything yet.
            unsafe { unit.set_notes(PollNotes::NOTHING.to_bits()) };
        });
    }

    /// Begins a nested run: on top of the present run's stack, or before that run continues.
    #[must_use]
    pub(crate) fn begin_nested<'a>(&'a self, node: &'a OuterRun) -> NestedRun<'a> {
        let job = self.job.take();
        self.outer_runs.push(node, job);
        NestedRun {
            here: self,
            node,
            job,
            thread_fork: self.thread_fork.take(),
            unit: unit::with(Unit::take_off),
            noted: self.noted(),
            wanted_until: self.set_wanted_until(None),
            dropping: self.dropping.replace(false),
        }
    }

    /// Notes whether the thread drops the future of a cancelled job; returns what was noted before.
    pub(crate) fn set_dropping(&self, dropping: bool) -> bool {
        self.dropping.replace(dropping)
    }

    /// Notes whether the thread ends a job that it does not run; returns what was noted before.
    // Noted beside the unit, because a wait that begins looks there.
    pub(crate) fn set_ending(&self, ending: bool) -> bool {
        // SAFETY: the numbers of units are those of `begin_run`.
        unsafe { self.unit().set_obstacle(Obstacle::ENDING, ending) }
    }

    /// Whether the thread is ending a job whose run is over (destructors, exit hooks), on whichever stack.
    pub(crate) fn is_ending(&self) -> bool {
        self.unit().has_obstacle(Obstacle::ENDING)
    }

    /// A stack of this thread is suspended while it unwinds, for as long as `suspend` takes.
    pub(crate) fn suspend_unwinding<R>(&self, suspend: impl FnOnce() -> R) -> R {
        self.unwinding.set(self.unwinding.get() + 1);
        let suspended = suspend();
        self.unwinding.set(self.unwinding.get() - 1);
        suspended
    }

    /// Whether the running job unwinds. While a stack that unwinds is suspended, `std::thread::panicking` is true for
    /// every job of the thread, so this returns false.
    #[inline(always)]
    pub(crate) fn is_panicking(&self) -> bool {
        thread::panicking() && self.unwinding.get() == 0
    }

    pub(crate) fn is_dropping(&self) -> bool {
        self.dropping.get()
    }

    /// Sets the job that runs; returns the one before.
    #[inline(always)]
    pub(crate) fn set_job(&self, job: Option<JobPtr>) -> Option<JobPtr> {
        let id = job.map_or(0, |job| job.as_raw().as_ptr().expose_provenance());
        // SAFETY: as in `begin_run`.
        unit::with(|unit| unsafe { unit.begin(id, unit.budget()) });
        self.job.replace(job)
    }

    /// The job that the thread runs.
    #[inline(always)]
    pub(crate) fn job(&self) -> Option<JobPtr> {
        self.job.get()
    }

    /// The job that the thread runs, as a counted reference.
    pub(crate) fn job_ref(&self) -> Option<JobRef> {
        // SAFETY: the thread that runs a job holds its runnable, so the job is alive.
        self.job.get().map(|job| unsafe { JobRef::new_for(job) })
    }

    /// The job waits for a message, among other things.
    #[inline(always)]
    pub(crate) fn listen(&self) {
        self.note(PollNotes::LISTENS);
    }

    #[inline(always)]
    fn note(&self, also: PollNotes) {
        self.set_noted(self.noted().and(also));
    }

    /// What the running job's poll has noted. It is kept beside the unit, because a wait that begins looks there.
    #[inline(always)]
    pub(crate) fn noted(&self) -> PollNotes {
        PollNotes::of_bits(self.unit().notes())
    }

    /// Replaces what is noted; returns what was.
    #[inline(always)]
    fn set_noted(&self, noted: PollNotes) -> PollNotes {
        // SAFETY: a wait that begins in a poll keeps the notes, and so does a nested run; both restore them at their
        // ends. Else `WAITS` is taken back by `end_poll_of_wait` alone, where the stack is about to be suspended.
        PollNotes::of_bits(unsafe { self.unit().set_notes(noted.to_bits()) })
    }

    /// The job that is polled with `waker` yields: it goes to the end of the queue when its poll ends.
    #[inline(always)]
    pub(crate) fn yield_run(&self, waker: &Waker) {
        match self.job.get() {
            Some(job) if waker::is_of(waker, job) => self.yield_job(),
            _ => waker.wake_by_ref(),
        }
    }

    /// The running job yields when its poll ends, or when its stack is suspended.
    pub(crate) fn yield_job(&self) {
        self.note(PollNotes::YIELDED);
    }
}

impl Drop for NestedRun<'_> {
    fn drop(&mut self) {
        self.here.outer_runs.pop(self.node);
        self.here.job.set(self.job);
        self.here.thread_fork.set(self.thread_fork);
        // SAFETY: as in `begin_run`: the outer run continues.
        unit::with(|unit| unsafe { unit.begin(self.unit.0, self.unit.1) });
        self.here.set_noted(self.noted);
        self.here.set_wanted_until(self.wanted_until);
        self.here.dropping.set(self.dropping);
    }
}
