//! A theft: a forked half that another thread took, as a job of its own.
//!
//! The thief makes a job of what it stole, so that waiting, cancelling and relieving are what they are for
//! any job, and leaves the job's handle in the place of the half. The owner waits for that job's end.
//!
//! While the owner waits it runs only what descends from the stolen half; when there is nothing of that it
//! holds its OS thread, and a stand-in serves the worker, unless the half waits, too ([`crate::scheduler::stackful::wait::hold_in`]).
//! Who forks may hold a lock of `std`: an unrelated job on top of its stack could want that, and so could one that
//! holds the thread to which the standing owner is bound.

#![allow(unsafe_code)]

use std::{
    any::Any,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    sync::Arc,
};

use crate::{
    api::join::{JoinError, JoinHandle},
    fork::{
        fork_deque::Lane,
        fork_deques,
        root_fork::{Descent, Region},
        stack_job::{Header, Loot},
    },
    job::{self, Spec, runnable::Runnable, state::Inbox},
    report,
    scheduler::{
        stackful::{duties, wait},
        workers::{
            context,
            shared::{self, Shared},
        },
    },
    services::ForkWait,
    sys::spin_loop,
};

/// How often an owner looks for descendants of what it waits for before it gives its worker up; with
/// the pauses about as long as giving up a worker and getting one back would take.
const WAIT_ROUNDS: usize = 200;
/// How many pauses there are in a round.
const PAUSES: usize = 10;

/// What a thief leaves in the place of a half.
pub(super) struct Theft {
    number: u64,
    job: JoinHandle<()>,
}

/// How a stolen half ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// It ran; its outcome lies in the half.
    Ran,
    /// The thief's runtime stopped before it ran: it is the owner's again.
    Unrun,
}

/// The payload of an unwinding.
pub(super) type Payload = Box<dyn Any + Send>;

/// What the thief's job needs.
struct Stolen {
    runtime: u16,
    loot: Loot,
    descent: Descent,
}

// SAFETY: the loot may move.
unsafe impl Send for Stolen {}

impl Stolen {
    fn run(self) {
        // Not the context's: a foreign thread that waits in a join has none.
        let Some(shared) = shared::find(self.runtime) else {
            report::impossible("a runtime went while a half was stolen in it");
        };
        let _region = Region::enter(context::here(), &shared, Some(self.descent));
        self.loot.run();
    }
}

/// Steals the oldest half of `lane`, if it is one of a region that `admits`, as a job that the caller runs or queues.
pub(super) fn steal_from(
    shared: &Shared,
    lane: &Lane,
    admits: impl FnOnce(&Lane) -> bool,
) -> Option<Runnable> {
    // Asked once the half is out of its owner's reach: until then the lane may begin another region.
    lane.deque.thief().steal(
        || admits(lane),
        |entry| {
            let number = fork_deques::of(shared).number();
            let former = lane.line();
            let line: Vec<u64> = former
                .iter()
                .flat_map(|line| line.iter().copied())
                .chain([number])
                .collect();
            let descent = Descent {
                root: lane.root_of_forks(),
                line: Arc::from(line),
            };
            let (runnable, job) = make_job(shared, entry, descent);
            (Theft { number, job }, runnable)
        },
    )
}

fn make_job(shared: &Shared, entry: *mut Header, descent: Descent) -> (Runnable, JoinHandle<()>) {
    let site = match descent.root.job() {
        // SAFETY: the root is alive: it waits, through its joins, for the half that was just stolen.
        Some(root) => unsafe { root.header() }.extras.site(),
        None => Location::caller(),
    };
    let spec = Spec {
        runtime: shared.id(),
        site,
        inbox: Inbox::None,
        home: None,
        flags: 0,
        refs: 1,
    };
    // SAFETY: the caller has just stolen it.
    let loot = unsafe { Loot::new(entry) };
    let stolen = Stolen {
        runtime: shared.id(),
        loot,
        descent,
    };
    let runnable = job::new(spec, |_| async move { stolen.run() });
    // SAFETY: the one reference that the spec asked for.
    let reference = unsafe { runnable.claim_ref() };
    // SAFETY: the job's only handle, and its output is `()`.
    (runnable, unsafe { JoinHandle::new(reference) })
}

impl Theft {
    /// Asks the stolen half to end.
    pub(super) fn cancel(&self) {
        self.job.cancel();
    }

    /// Waits for the end of the half that was stolen from `lane`. With it comes the unwinding that the
    /// caller owes, if it was cancelled meanwhile.
    pub(super) fn wait(mut self, lane: &Lane) -> (Returned, Option<Payload>) {
        self.help(lane);
        let mut unwinding = None;
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.wait_with_stack(lane))) {
                Ok(Ok(())) => return (Returned::Ran, unwinding),
                Ok(Err(JoinError::Cancelled)) => return (Returned::Unrun, unwinding),
                Ok(Err(_)) => report::impossible("a stolen half's job panicked"),
                Err(payload) => {
                    // A wait unwinds once, so that the next one lasts until the half has ended.
                    self.cancel();
                    unwinding = Some(payload);
                }
            }
        }
    }

    /// Runs descendants of the half, as long as there are some or the half ends soon.
    fn help(&self, lane: &Lane) {
        let (here, shared) = (context::here(), lane.shared());
        let mut rounds = 0;
        while rounds < WAIT_ROUNDS && !self.job.is_finished() {
            let descendant = fork_deques::of(shared)
                .iter()
                .filter(|other| other.deque.has_entries() && self.is_ancestor_of(other))
                .find_map(|other| steal_from(shared, other, |other| self.is_ancestor_of(other)));
            match descendant {
                Some(half) => {
                    // The descendant computes in a region of its own, or waits.
                    let _parked = ForkWait::begin(lane);
                    duties::run_aside(here, shared.stack_class(), half);
                    rounds = 0;
                }
                None => rounds += 1,
            }
            for _ in 0..PAUSES {
                spin_loop();
            }
        }
    }

    fn is_ancestor_of(&self, lane: &Lane) -> bool {
        lane.line().is_some_and(|line| line.contains(&self.number))
    }

    fn wait_with_stack(&mut self, lane: &Lane) -> Result<(), JoinError> {
        let Some(shared) = shared::find(lane.shared().id()) else {
            report::impossible("a runtime went while a thread forked in it");
        };
        let _parked = ForkWait::begin(lane);
        let half = self.job.job().cloned();
        let half_waits = || {
            half.as_ref()
                .is_some_and(|half| half.header().waits_with_stack())
        };
        match wait::hold_in(&shared, Pin::new(&mut self.job), &half_waits) {
            Some(ended) => ended,
            // What the half waits for may be bound to this thread.
            None => wait::block_on_in(&shared, &mut self.job),
        }
    }
}
