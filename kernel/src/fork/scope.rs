//! A scope of forks: any number of parts that may borrow from outside the scope, and end before it does.
//!
//! Parts queue in the scope. Its owner runs them once the scope's body has ended. Before that, and alongside the owner,
//! runners do: jobs that take parts from the queue until it is empty. At most as many runners of a scope are at work at
//! once as the runtime has workers. A runner whose part waits, or blocks its thread, is not at work: another one takes
//! its place if parts are left, because the part may wait for one of these.
//!
//! While the owner waits, it runs only parts of its scope. If there are none, it holds its OS thread until all parts
//! that are left wait too.
//!
//! Why parts may borrow: [`scope`] returns, or unwinds, only when the queue is empty and no part runs. A runner that
//! outlives the scope finds an empty queue, and borrows nothing itself.

#![allow(unsafe_code)]

mod part_runner;

use std::{
    collections::VecDeque,
    future::poll_fn,
    marker::PhantomData,
    mem,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::pin,
    sync::Arc,
    task::{Poll, Waker},
};

use crate::{
    api::spawn,
    fork::{
        cancel,
        fork_deque::{Ancestry, ForkDeque, part_watch::PartWatch},
        fork_deques::{self, relief::Relief},
        forked_wait, root_fork,
        root_job::RootJob,
        scope::part_runner::PartRunner,
        stolen_job,
    },
    job::{JobRef, body_bit, runnable::Runnable},
    report,
    report::payload::{self, Payload},
    scheduler::{
        stackful::wait::{self, Awaited, HoldLimit},
        workers::{context, shared},
    },
    sys::{Mutex, lock},
};

type Part = Box<dyn FnOnce() + Send>;

/// Forks parts that end before it does; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    parts: Arc<ScopeParts>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

struct ScopeParts {
    runtime: u16,
    /// In the ancestry of all that its parts fork on other threads; see [`Ancestry`].
    number: u64,
    /// The ancestry of the owner's root fork.
    of_owner: Option<Ancestry>,
    site: &'static Location<'static>,
    /// The root job of the owner's forks.
    root: RootJob,
    inner: Mutex<PartsState>,
}

#[derive(Default)]
struct PartsState {
    /// Parts that have not started, with their numbers.
    queue: VecDeque<(usize, Part)>,
    spawned: usize,
    running: usize,
    runners: usize,
    /// The runners whose parts wait or block their threads.
    waiting: usize,
    /// The runners that are running a part.
    at_work: Vec<JobRef>,
    /// Whether the scope is cancelled: parts are dropped instead of run.
    cancelled: bool,
    /// Whether the cancel of a part was hidden by the panic of another.
    hides_cancel: bool,
    /// The panic of the part with the lowest number.
    panic: Option<(usize, Payload)>,
    owner: Option<Waker>,
}

/// Runs `body`, which may fork parts in the scope, and then the parts that are left. When it returns, all parts
/// have ended.
///
/// Parts may borrow whatever outlives the call, and may fork further parts. For two halves,
/// [`join`](crate::fork::join()) is much cheaper: a part takes an allocation and a lock. For parts that wait
/// rather than compute, use [`weald::scope`](crate::scope()): here each part that waits or blocks its
/// thread makes another worker begin a part that is left.
///
/// While parts of this line block and hold all threads of the quarantine, no further worker begins parts, and the
/// caller runs what is left when `body` has returned. A `body`, or a part that the caller runs, that waits for a part
/// which has not begun then waits until a thread is free; [`Runtime::waits`](crate::Runtime::waits) names it. So it
/// does once its runtime has stopped, where nobody but the caller is left; while a runtime shuts down, its workers
/// begin parts.
///
/// # Panics
/// After all parts have ended: with the panic of `body`, else with that of the part that was spawned first among
/// those that panicked.
///
/// # Cancelling
/// As [`join`](crate::fork::join()): parts that have not started are dropped.
///
/// ```
/// let mut counts = [0; 3];
/// weald::fork::scope(|scope| {
///     for (count, word) in counts.iter_mut().zip(["a", "bb", "ccc"]) {
///         scope.spawn(move || *count = word.len());
///     }
/// });
/// assert_eq!(counts, [1, 2, 3]);
/// ```
#[track_caller]
pub fn scope<'env, R>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let site = Location::caller();
    root_fork::with_fork_deque(site, |fork_deque| {
        let root = fork_deque.root_of_forks();
        let parts = Arc::new(ScopeParts {
            runtime: fork_deque.shared().id(),
            number: fork_deques::of(fork_deque.shared()).number(),
            of_owner: fork_deque.ancestry(),
            site,
            root: match context::again().is_panicking() {
                true => root.of_destructor(),
                false => root,
            },
            inner: Mutex::default(),
        });
        fork_deque.open_scope(parts.clone());
        let open = OpenScope(fork_deque, &parts);
        let scope = Scope {
            parts: parts.clone(),
            scope: PhantomData,
            env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        if result.is_err() {
            // Nobody is told while the parts are awaited: the unit has not survived it yet.
            context::again().forget_panic();
        }
        if result.as_ref().is_err_and(cancel::is_own_cancel) {
            parts.cancel();
        }
        let unwinding = parts.end(fork_deque);
        drop(open);
        let (panic, hides_cancel) = {
            let mut inner = lock(&parts.inner);
            (inner.panic.take(), inner.hides_cancel)
        };
        let panic = panic.map(|(_, payload)| payload);
        let (payload, losers) = match (result, unwinding, panic) {
            (Ok(result), None, None) => return result,
            (Ok(_), None, Some(payload)) => (payload, [None, None]),
            (Ok(_), Some(payload), panic) => (payload, [panic, None]),
            (Err(payload), owed, panic) => (payload, [owed, panic]),
        };
        if cancel::is_own_cancel(&payload) {
            cancel::begin_unwinding(fork_deque);
        } else {
            losers.into_iter().for_each(forked_wait::give_way);
            if hides_cancel {
                wait::deliver_cancel_again();
            }
        }
        // A part that another thread ran may have dropped replies, whose callers must be told if the unit survives
        // this.
        context::again().note_panic();
        resume_unwind(payload)
    })
}

/// A scope that is not over, in the fork deque of its owner.
struct OpenScope<'a>(&'a ForkDeque, &'a Arc<ScopeParts>);

impl Drop for OpenScope<'_> {
    fn drop(&mut self) {
        self.0.close_scope(Arc::as_ptr(self.1).cast());
    }
}

/// A part that is about to run.
struct Taken {
    number: usize,
    part: Part,
    cancelled: bool,
}

impl PartsState {
    fn take(&mut self) -> Option<Taken> {
        let (number, part) = self.queue.pop_front()?;
        self.running += 1;
        Some(Taken {
            number,
            part,
            cancelled: self.cancelled,
        })
    }

    /// How many runners are at work.
    fn working(&self) -> usize {
        self.runners - self.waiting
    }

    /// Whether every part that runs waits with its stack.
    fn all_wait(&self) -> bool {
        let waits = |job: &JobRef| job.header().waits_with_stack();
        self.at_work.len() == self.running && self.at_work.iter().all(waits)
    }

    /// Returns the payload that loses, to be discarded outside the lock.
    fn keep_first(&mut self, number: usize, payload: Payload) -> Option<Payload> {
        let loser = match &self.panic {
            Some((first, _)) if *first < number => Some(payload),
            _ => self
                .panic
                .replace((number, payload))
                .map(|(_, payload)| payload),
        };
        self.hides_cancel |= loser.as_ref().is_some_and(payload::is_cancel);
        loser
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Forks a part. It runs when a worker has nothing else to do, or when the scope's body has ended.
    pub fn spawn(&'scope self, part: impl FnOnce() + Send + 'scope) {
        let part: Box<dyn FnOnce() + Send + 'scope> = Box::new(part);
        // SAFETY: the scope outlives its parts; see the head of this file.
        let part: Part = unsafe { mem::transmute(part) };
        self.parts.push(part);
    }
}

impl ScopeParts {
    fn push(self: &Arc<ScopeParts>, part: Part) {
        let Some(shared) = shared::find(self.runtime) else {
            report::impossible("a runtime ended while a thread forked in it");
        };
        let mut inner = lock(&self.inner);
        let number = inner.spawned;
        inner.spawned += 1;
        inner.queue.push_back((number, part));
        let wants_runner = inner.working() < shared.workers.len();
        inner.runners += usize::from(wants_runner);
        let owner = inner.owner.take();
        drop(inner);
        if let Some(owner) = owner {
            owner.wake();
        }
        if wants_runner {
            self.start_runner(&shared, None);
        } else {
            // If the monitor sleeps, nobody finds out that a runner is blocked, and so no longer computes.
            shared.monitor.begin_to_watch();
        }
    }

    /// Starts a runner, which is counted already.
    fn start_runner(self: &Arc<ScopeParts>, shared: &shared::Shared, relief: Option<Relief>) {
        let bits = match relief {
            None => body_bit::PART,
            Some(_) => body_bit::PART | body_bit::RELIEVES,
        };
        let runner = PartRunner {
            parts: self.clone(),
            counted: true,
            relief,
        };
        let run = async move { runner.run() };
        spawn::forked(shared, run, self.site, bits).detach();
    }

    fn take(&self) -> Option<Taken> {
        lock(&self.inner).take()
    }

    /// Runs a part that was taken; the caller counts its end.
    fn run(&self, taken: Taken) {
        let ended = catch_unwind(AssertUnwindSafe(|| match taken.cancelled {
            true => drop(taken.part),
            false => (taken.part)(),
        }));
        cancel::tell_if_survived(ended.is_ok());
        if let Err(payload) = ended {
            // The owner's cancel unwinds whichever part the owner runs, and cancels the whole scope.
            if cancel::is_own_cancel(&payload) {
                self.cancel();
            }
            let loser = lock(&self.inner).keep_first(taken.number, payload);
            loser.into_iter().for_each(payload::discard);
        }
    }

    /// A part that was taken has ended.
    fn count_end(&self) {
        let mut inner = lock(&self.inner);
        inner.running -= 1;
        let owner = inner.owner.take();
        drop(inner);
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    /// From now on parts are dropped.
    fn cancel(&self) {
        lock(&self.inner).cancelled = true;
    }

    /// Runs all parts, or waits for them. Returns the payload with which the caller must unwind, if it is cancelled
    /// meanwhile.
    fn end(&self, fork_deque: &ForkDeque) -> Option<Payload> {
        let (mut owed, awaited) = (None, AwaitedParts::of(self, fork_deque));
        loop {
            while let Some(taken) = self.take() {
                self.run(taken);
                self.count_end();
            }
            let inner = lock(&self.inner);
            if inner.running == 0 && inner.queue.is_empty() {
                return owed;
            }
            drop(inner);
            let news = pin!(poll_fn(|cx| self.poll_news(cx.waker())));
            let cancel = || self.cancel();
            let ((), unwinding) = forked_wait::wait_for(fork_deque, news, &awaited, &cancel);
            owed = unwinding.or(owed);
        }
    }

    fn poll_news(&self, waker: &Waker) -> Poll<()> {
        let mut inner = lock(&self.inner);
        if inner.running == 0 || !inner.queue.is_empty() {
            return Poll::Ready(());
        }
        inner.owner = Some(waker.clone());
        Poll::Pending
    }
}

/// The parts of a scope for whose end its owner waits, over all parts that the owner runs meanwhile.
struct AwaitedParts<'a> {
    parts: &'a ScopeParts,
    shared: &'a shared::Shared,
    hold_limit: HoldLimit,
}

impl AwaitedParts<'_> {
    fn of<'a>(parts: &'a ScopeParts, fork_deque: &'a ForkDeque) -> AwaitedParts<'a> {
        AwaitedParts {
            parts,
            shared: fork_deque.shared(),
            hold_limit: HoldLimit::default(),
        }
    }
}

impl Awaited for AwaitedParts<'_> {
    fn waits(&self) -> bool {
        lock(&self.parts.inner).all_wait()
    }

    fn hold_limit(&self) -> &HoldLimit {
        &self.hold_limit
    }

    fn is_suspended(&self) -> bool {
        let inner = lock(&self.parts.inner);
        inner.at_work.iter().all(|job| job.header().has_own_stack())
    }

    /// A part, or what a part has forked, that the loop of the owner's thread took while the body, or this wait, had
    /// its stack suspended, and that waited there. What the owner takes itself runs on its own stack.
    fn take_pinned(&self) -> Option<Runnable> {
        stolen_job::take_pinned_descendant(self.parts.number, self.shared)
    }
}

impl PartWatch for ScopeParts {
    fn begin_wait(&self, shared: &shared::Shared) -> bool {
        let mut inner = lock(&self.inner);
        inner.waiting += 1;
        debug_assert!(inner.waiting <= inner.runners, "a runner waits once");
        let wants_runner = !inner.queue.is_empty() && inner.working() < shared.workers.len();
        inner.runners += usize::from(wants_runner);
        wants_runner
    }

    fn start_runner(self: Arc<ScopeParts>, shared: &shared::Shared) {
        ScopeParts::start_runner(&self, shared, None);
    }

    fn end_wait(&self) {
        lock(&self.inner).waiting -= 1;
    }

    fn has_parts(&self) -> bool {
        !lock(&self.inner).queue.is_empty()
    }

    fn lacks_runner(&self) -> bool {
        let inner = lock(&self.inner);
        // A runner that has no part yet waits for a thread itself.
        !inner.queue.is_empty() && inner.at_work.len() <= inner.waiting
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn start_relief(self: Arc<ScopeParts>, shared: &shared::Shared, relief: Relief) {
        lock(&self.inner).runners += 1;
        ScopeParts::start_runner(&self, shared, Some(relief));
    }
}
