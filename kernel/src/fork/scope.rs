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
        fork_deque::{ForkDeque, PartWatch},
        fork_deques, forked_wait,
        root_fork::{self, Origin, RootFork},
        root_job::RootJob,
    },
    job::{JobRef, runnable::Runnable},
    report,
    report::payload::{self, Payload},
    scheduler::{
        stackful::wait::{self, Awaited},
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
/// Once its runtime shuts down, no further worker begins parts, and the caller runs what is left when `body` has
/// returned. A `body`, or a part that the caller runs, that waits for a part which has not begun then waits until it is
/// cancelled at the end of the drain. So it does while all threads of the quarantine are held by parts of this line
/// that block.
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
        let parts = Arc::new(ScopeParts {
            runtime: fork_deque.shared().id(),
            site,
            root: fork_deque.root_of_forks(),
            inner: Mutex::default(),
        });
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
            self.start_runner(&shared);
        } else {
            // If the monitor sleeps, nobody finds out that a runner is blocked, and so no longer computes.
            shared.monitor.begin_to_watch();
        }
    }

    /// Starts a runner, which is counted already.
    fn start_runner(self: &Arc<ScopeParts>, shared: &shared::Shared) {
        let runner = PartRunner {
            parts: self.clone(),
            counted: true,
        };
        spawn::forked(shared, async move { runner.run() }, self.site).detach();
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
        let mut owed = None;
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
            let ((), unwinding) = forked_wait::wait_for(fork_deque, news, self, &cancel);
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

impl Awaited for ScopeParts {
    fn waits(&self) -> bool {
        lock(&self.inner).all_wait()
    }

    fn is_suspended(&self) -> bool {
        let inner = lock(&self.inner);
        inner.at_work.iter().all(|job| job.header().has_own_stack())
    }

    /// The owner runs the parts that it takes on its own stack, so none of them is left in the queue.
    fn take_pinned(&self) -> Option<Runnable> {
        None
    }

    fn note_suspended(&self) {}
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
        ScopeParts::start_runner(&self, shared);
    }

    fn end_wait(&self) {
        lock(&self.inner).waiting -= 1;
    }

    fn has_parts(&self) -> bool {
        !lock(&self.inner).queue.is_empty()
    }
}

/// A job that runs parts until there are none, or until enough other runners are at work.
struct PartRunner {
    parts: Arc<ScopeParts>,
    /// Whether the scope's count of runners includes it.
    counted: bool,
}

impl PartRunner {
    fn run(mut self) {
        while let Some(taken) = self.take() {
            // The part's root fork ends before the part's end is counted, because the root job waits only until then.
            let is_cancelled = self.run_in_root_fork(taken);
            self.parts.count_end();
            if is_cancelled {
                return;
            }
        }
    }

    /// The next part. If there is none, the runner is no longer counted, so that the next part gets a new runner.
    fn take(&mut self) -> Option<Taken> {
        // Others may have taken its place while its last part waited.
        let most = context::here().shared()?.workers.len();
        let mut inner = lock(&self.parts.inner);
        let taken = match inner.working() > most {
            true => None,
            false => inner.take(),
        };
        if taken.is_none() {
            self.counted = false;
            inner.runners -= 1;
        }
        taken
    }

    /// Runs a part as a fork of the scope's owner. Returns whether the runner is cancelled.
    fn run_in_root_fork(&self, taken: Taken) -> bool {
        let here = context::here();
        let (Some(shared), Some(job)) = (here.shared(), here.job_ref()) else {
            report::impossible("a runner is no job");
        };
        let origin = Origin {
            root: self.parts.root,
            ancestry: Arc::from([fork_deques::of(shared).number()]),
        };
        lock(&self.parts.inner).at_work.push(job.clone());
        let root_fork = RootFork::enter(here, shared, self.parts.site, Some(origin));
        root_fork.fork_deque.begin_part(self.parts.clone());
        self.parts.run(taken);
        root_fork.fork_deque.end_part();
        lock(&self.parts.inner)
            .at_work
            .retain(|other| other.ptr() != job.ptr());
        job.header().state.is_cancelled()
    }
}

impl Drop for PartRunner {
    fn drop(&mut self) {
        if self.counted {
            lock(&self.parts.inner).runners -= 1;
        }
    }
}
