//! A fork deque: the [`Deque`] of stack jobs of one root fork, and what else its forks need.
//!
//! A *root fork* is an outermost fork and everything that it runs on its stack. It has a fork deque of its own while it
//! lasts, so all entries descend from it. A fork deque belongs to the OS thread that runs the root fork, and stays
//! there when the thread's lease is revoked. It goes along with a fiber that migrates while it waits.
//!
//! Fork deques are reused, and are freed only with their runtime, so that thieves may look at any time. They find those
//! that a thread has claimed ([`InUse`](crate::fork::in_use::InUse)).
//!
//! Invariants:
//! - `stack_end`, `segment` and the owner's side of the deque belong to the thread that claimed the fork deque.
//! - `ancestry` is empty, or is written before the root fork's first push. Thieves read it under the deque's lock.

#![allow(unsafe_code)]

pub(in crate::fork) mod destructors;
pub(in crate::fork) mod part_watch;

use std::{
    cell::Cell,
    mem,
    panic::Location,
    ptr::{self, NonNull},
    sync::Arc,
};

use self::{destructors::Destructors, part_watch::PartWatch};
use crate::fork::{
    deque::Deque, forking_job::ForkingJob, root_fork::Origin, root_job::RootJob,
    stack_job::EntryHeader, stolen_job::StolenJob,
};
use crate::{
    fork::fork_deques,
    job::{self, JobPtr, JobRef},
    scheduler::services::{HeldForker, ThreadFork, WaitedBefore},
    scheduler::workers::context::{self, Context},
    scheduler::workers::shared::Shared,
    sys::barrier,
    sys::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Mutex, Ordering, lock},
};

/// The numbers of the steals, the scopes and their runners that a root fork descends from, the oldest first. A scope
/// is followed by a runner.
pub(super) type Ancestry = Arc<[u64]>;

/// See the head of this file.
pub(crate) struct ForkDeque {
    pub(super) deque: Deque<EntryHeader, StolenJob>,
    /// A fork below this address of its stack continues on a new segment.
    pub(super) stack_end: Cell<usize>,
    /// How many bytes of segments the root fork uses.
    pub(super) segment: Cell<usize>,
    /// Whether a root fork uses the fork deque, and which job runs that root fork.
    job: ForkingJob<job::Header>,
    /// Whether the root fork's thread waits, or has announced with `block_in_place` that it may block.
    waits: AtomicBool,
    /// Whether the monitor has found the root fork's thread blocked. The thread takes the note back when it begins to
    /// wait, and at the next push at which it responds.
    blocked: AtomicBool,
    /// Whether the root fork's thread waits for a stolen job, and has handed its worker off for that.
    holds_thread: AtomicBool,
    pub(super) destructors: Destructors,
    /// The [`RootJob`] that the root fork descends from.
    root: AtomicPtr<job::Header>,
    /// The address of the context of the root fork's thread.
    thread: AtomicUsize,
    /// The system's number of that thread.
    thread_number: AtomicU32,
    /// Where the user's code called the fork that the root fork descends from; null before the first.
    site: AtomicPtr<Location<'static>>,
    ancestry: Mutex<Option<Ancestry>>,
    /// The runner of a scope whose part the root fork is. `waits` and `blocked` change only while this is locked, and
    /// the watch has been told then whether one of them is set.
    watch: Mutex<Option<Arc<dyn PartWatch>>>,
    /// The scopes that the root fork has opened, the outermost first.
    scopes: Mutex<Vec<Arc<dyn PartWatch>>>,
    /// The runtime that owns the fork deque.
    shared: *const Shared,
    /// Its number among the fork deques of the runtime.
    number: usize,
}

// SAFETY: the cells belong to the thread that claimed the fork deque; `shared` never changes.
unsafe impl Sync for ForkDeque {}
// SAFETY: as above.
unsafe impl Send for ForkDeque {}

impl ForkDeque {
    /// A fork deque, claimed by the caller, with this number.
    pub(super) fn new(shared: &Shared, number: usize) -> ForkDeque {
        ForkDeque {
            deque: Deque::new(),
            stack_end: Cell::new(0),
            segment: Cell::new(0),
            job: ForkingJob::new(),
            waits: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            holds_thread: AtomicBool::new(false),
            destructors: Destructors::new(),
            root: AtomicPtr::new(ptr::null_mut()),
            thread: AtomicUsize::new(0),
            thread_number: AtomicU32::new(0),
            site: AtomicPtr::new(ptr::null_mut()),
            ancestry: Mutex::new(None),
            watch: Mutex::new(None),
            scopes: Mutex::new(Vec::new()),
            shared: ptr::from_ref(shared),
            number,
        }
    }

    /// The runtime that owns the fork deque.
    pub(super) fn shared(&self) -> &Shared {
        // SAFETY: a runtime frees its fork deques last.
        unsafe { &*self.shared }
    }

    /// Its number among the fork deques of the runtime.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Gives the fork deque back.
    pub(super) fn unclaim(&self) {
        // The next thread may have its context at the same address.
        self.thread.store(0, Ordering::Relaxed);
        fork_deques::of(self.shared()).unclaim(self.number);
    }

    /// A root fork begins, run by `job`, because of the call at `site`. `origin`: what it descends from, if it was
    /// stolen.
    pub(super) fn begin(
        &self,
        job: Option<JobPtr>,
        site: &'static Location<'static>,
        origin: Option<Origin>,
    ) {
        let root = origin
            .as_ref()
            .map_or(RootJob::new(job), |origin| origin.root);
        self.root.store(root.into_raw(), Ordering::Relaxed);
        self.site
            .store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
        if let Some(origin) = origin {
            *lock(&self.ancestry) = Some(origin.ancestry);
        }
        self.destructors.begin();
        self.note_running();
        self.job.begin(job.map(JobPtr::as_raw));
    }

    /// The root fork's thread has this context.
    pub(super) fn set_thread(&self, context: &Context) {
        let address = ptr::from_ref(context).addr();
        if self.thread.load(Ordering::Relaxed) != address {
            self.thread.store(address, Ordering::Relaxed);
            // Asks the system, so not at each root fork.
            let number = self.shared().thread_number();
            self.thread_number.store(number, Ordering::Relaxed);
        }
    }

    /// The system's number of the root fork's thread.
    pub(super) fn thread_number(&self) -> u32 {
        self.thread_number.load(Ordering::Relaxed)
    }

    /// The monitor has found the root fork's thread blocked. If it has gone on meanwhile, one root fork too many may
    /// compute until it responds, or until the monitor checks.
    pub(super) fn note_blocked(&self) {
        self.change(|| {
            // A thread that has begun to wait meanwhile says itself when it goes on.
            let blocked = !self.waits.load(Ordering::Relaxed);
            self.blocked.store(blocked, Ordering::Relaxed);
        });
    }

    /// Whether the monitor has found the root fork's thread blocked, and nobody has found it running since.
    pub(super) fn is_noted_as_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// The root fork's thread runs.
    pub(super) fn note_running(&self) {
        if self.blocked.load(Ordering::Relaxed) {
            self.change(|| self.blocked.store(false, Ordering::Relaxed));
        }
    }

    /// Makes a change of `waits` and `blocked`, and tells the watch if the thread thereby stops computing or goes on.
    fn change(&self, change: impl FnOnce()) {
        let watch = lock(&self.watch);
        let before = self.waits_or_is_blocked();
        change();
        let lacks_runner = match (&*watch, before, self.waits_or_is_blocked()) {
            (Some(watch), false, true) => watch.begin_wait(self.shared()).then(|| watch.clone()),
            (Some(watch), true, false) => {
                watch.end_wait();
                None
            }
            _ => None,
        };
        drop(watch);
        if let Some(watch) = lacks_runner {
            watch.start_runner(self.shared());
        }
    }

    /// Whether the root fork's thread is known to wait, or to be blocked.
    fn waits_or_is_blocked(&self) -> bool {
        self.waits.load(Ordering::Relaxed) || self.blocked.load(Ordering::Relaxed)
    }

    /// The root fork's thread begins to wait for a stolen job, without its worker, or has waited. Called by that
    /// thread.
    pub(super) fn set_holds_thread(&self, holds: bool) {
        self.holds_thread.store(holds, Ordering::Relaxed);
    }

    /// Whether the root fork holds an OS thread of the runtime only to wait for a stolen job, in the family of `other`:
    /// both descend from one root job.
    pub(super) fn holds_thread_in_family_of(&self, other: &ForkDeque) -> bool {
        let is_of_runtime = !self.job.address().is_null();
        let holds = is_of_runtime && self.holds_thread.load(Ordering::Relaxed);
        holds && self.root().job() == other.root().job()
    }

    /// The thread begins to wait, or goes on. It obviously runs at that moment.
    fn set_waits(&self, waits: bool) {
        self.change(|| {
            self.waits.store(waits, Ordering::Relaxed);
            self.blocked.store(false, Ordering::Relaxed);
        });
    }

    /// The root fork runs a part of a scope, until [`end_part`](ForkDeque::end_part).
    pub(super) fn begin_part(&self, part: Arc<dyn PartWatch>) {
        self.set_watch(Some(part));
    }

    /// The part is over.
    pub(super) fn end_part(&self) {
        self.set_watch(None);
    }

    /// Called by the root fork's thread, which runs.
    fn set_watch(&self, watch: Option<Arc<dyn PartWatch>>) {
        let mut current = lock(&self.watch);
        if self.blocked.swap(false, Ordering::Relaxed)
            && let Some(current) = &*current
        {
            current.end_wait();
        }
        let ended = mem::replace(&mut *current, watch);
        drop(current);
        drop(ended);
    }

    /// Whether the root fork runs a part of a scope that has parts left.
    pub(super) fn has_parts(&self) -> bool {
        let watch = lock(&self.watch);
        watch.as_ref().is_some_and(|watch| watch.has_parts())
    }

    /// The scope whose part the root fork runs, if it has parts left. Only to be compared.
    pub(super) fn scope_with_parts(&self) -> Option<usize> {
        let watch = lock(&self.watch);
        let watch = watch.as_ref().filter(|watch| watch.has_parts())?;
        Some(Arc::as_ptr(watch).addr())
    }

    /// A destructor has begun the root fork: no cancel reaches what it forks.
    pub(super) fn shield(&self) {
        let root = self.root().of_destructor();
        self.root.store(root.into_raw(), Ordering::Relaxed);
    }

    /// The root fork has ended.
    pub(super) fn end(&self) {
        debug_assert!(
            lock(&self.scopes).is_empty(),
            "a scope is over before its root fork"
        );
        self.job.end();
        self.root.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The root fork, which was stolen, has ended: later ones here do not inherit its ancestry.
    pub(super) fn forget_ancestry(&self) {
        *lock(&self.ancestry) = None;
    }

    pub(super) fn is_active(&self) -> bool {
        self.job.is_active()
    }

    /// The root job that the root fork descends from.
    pub(super) fn root(&self) -> RootJob {
        RootJob::from_raw(self.root.load(Ordering::Relaxed))
    }

    /// No thief takes what the root fork has pushed so far. Called by the root fork's thread.
    pub(super) fn withdraw(&self) {
        // SAFETY: the caller owns the deque.
        unsafe { self.deque.withdraw() };
    }

    /// The root job of what is forked here. While a cancel already unwinds, the root job is shielded: the cancel does
    /// not reach those forks. Called by the root fork's thread, or a thief that has just taken an entry.
    pub(super) fn root_of_forks(&self) -> RootJob {
        let Some(job) = NonNull::new(self.job.address()).map(JobPtr::from_raw) else {
            return self.root();
        };
        // Not the root job: that may have unwound while this one has not begun to. SAFETY: the job runs the caller, or
        // waits for the entry that the caller has taken.
        let header = unsafe { job.header() };
        let unwinds = |job: &job::Header| {
            let extensions = job.extensions.lock_existing();
            extensions.is_some_and(|extensions| extensions.unwound)
        };
        match header.waits_to_the_end() {
            true if unwinds(header) => self.root().of_destructor(),
            true => self.root().shielded(),
            false => self.root(),
        }
    }

    /// Whether `job` runs the root fork.
    pub(super) fn is_run_by(&self, job: JobPtr) -> bool {
        self.job.address() == job.as_raw().as_ptr()
    }

    /// Whether a cancel of `job` cancels the root fork, because the root fork is the job's own or descends from it.
    pub(super) fn is_cancelled_with(&self, job: &JobRef) -> bool {
        self.root().canceller() == Some(job.ptr())
    }

    /// The job that runs the root fork.
    pub(super) fn job(&self) -> Option<JobRef> {
        // SAFETY: it is alive during the call.
        self.job
            .with(|job| unsafe { JobRef::new_for(JobPtr::from_raw(job)) })
    }

    /// The ancestry of the root fork; none if it was not stolen.
    pub(super) fn ancestry(&self) -> Option<Ancestry> {
        lock(&self.ancestry).clone()
    }

    /// Whether the root fork computes at this moment, as far as another thread can see: its thread neither waits nor
    /// is blocked.
    pub(super) fn computes(&self) -> bool {
        if !self.is_active() || self.waits_or_is_blocked() {
            return false;
        }
        // SAFETY: it is alive during the call.
        let waits = |job| unsafe { JobPtr::from_raw(job).header() }.state.is_waiting();
        !self.job.with(waits).unwrap_or(false)
    }
}

impl ThreadFork for ForkDeque {
    fn root_job(&self) -> Option<JobPtr> {
        self.root().job()
    }

    fn waiting_jobs(&self) -> Vec<HeldForker> {
        let Some(steals) = self.ancestry() else {
            return Vec::new();
        };
        let root = self.root().job();
        let others = fork_deques::of(self.shared()).iter();
        let others = others.filter(|other| !ptr::eq(*other, self));
        let waiting = others.filter_map(|other| {
            let job = other.job()?;
            let waits = match other.ancestry() {
                None => root == Some(job.ptr()),
                Some(theirs) => theirs.last().is_some_and(|steal| steals.contains(steal)),
            };
            waits.then(|| HeldForker {
                job,
                thread: other.thread.load(Ordering::Relaxed),
            })
        });
        waiting.collect()
    }

    fn site(&self) -> &'static Location<'static> {
        // Relaxed: a location lives for ever. SAFETY: the address of one, or null.
        let site = unsafe { self.site.load(Ordering::Relaxed).as_ref() };
        site.expect("a root fork has begun")
    }

    fn begin_wait(&self) -> WaitedBefore {
        let before = self.waits.load(Ordering::Relaxed);
        self.set_waits(true);
        // Either a worker that is about to sleep sees the room, or this thread sees the sleeper.
        barrier::full();
        fork_deques::wake_for_room(self.shared());
        match before {
            true => WaitedBefore::Yes,
            false => WaitedBefore::No,
        }
    }

    fn end_wait(&self, before: WaitedBefore) {
        // A fiber may have migrated. The monitor must ask for the thread that runs it now.
        self.set_thread(context::again());
        if before == WaitedBefore::No {
            self.set_waits(false);
        }
    }

    fn is_of_destructor(&self) -> bool {
        destructors::have_forked(self)
    }

    fn begin_unwinding(&self) {
        self.withdraw();
    }

    fn give_back(&self) {
        self.unclaim();
    }
}

/// The fork deque of the calling thread's root fork.
#[inline(always)]
pub(super) fn of(cx: &Context) -> Option<&ForkDeque> {
    let fork = cx.thread_fork_ptr()?.cast::<ForkDeque>();
    // SAFETY: only fork deques are set, and the caller that set it keeps the runtime alive until it is replaced.
    Some(unsafe { fork.as_ref() })
}

/// Takes the fork deque that the calling thread keeps as a spare, if it has one.
pub(super) fn take_spare(cx: &Context) -> Option<&ForkDeque> {
    let spare = cx.take_spare_thread_fork()?.cast::<ForkDeque>();
    // SAFETY: only fork deques are kept. The thread belongs to their runtime, and gives the spare back before it ends.
    Some(unsafe { spare.as_ref() })
}

/// The fork deque as a thread's context keeps it.
pub(super) fn as_thread_fork(fork_deque: &ForkDeque) -> NonNull<dyn ThreadFork> {
    NonNull::from(fork_deque as &dyn ThreadFork)
}

#[cfg(all(test, not(loom)))]
mod tests;
