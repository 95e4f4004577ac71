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

use std::{panic::Location, pin::Pin, sync::Arc};

use crate::{
    api::join::{JoinError, JoinHandle},
    fork::{
        fork_deque::ForkDeque,
        fork_deques,
        forked_wait::{self, Payload},
        root_fork::{Origin, RootFork},
        stack_job::{EntryHeader, StolenEntry},
    },
    job::{self, Spec, runnable::Runnable, transition::Inbox},
    report,
    scheduler::{
        stackful::duties,
        workers::{
            cancel, context,
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
pub(super) struct StolenJob {
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

/// What the thief's job needs.
struct StolenBody {
    runtime: u16,
    entry: StolenEntry,
    origin: Origin,
}

// SAFETY: the loot may move.
unsafe impl Send for StolenBody {}

impl StolenBody {
    fn run(self) {
        // Not the context's: a foreign thread that waits in a join has none.
        let Some(shared) = shared::find(self.runtime) else {
            report::impossible("a runtime went while a half was stolen in it");
        };
        let _region = RootFork::enter(context::here(), &shared, Some(self.origin));
        self.entry.run();
    }
}

/// Steals the oldest half of `fork_deque`, if it is one of a region that `admits`, as a job that the caller runs or queues.
pub(super) fn steal_from(
    shared: &Shared,
    fork_deque: &ForkDeque,
    admits: impl FnOnce(&ForkDeque) -> bool,
) -> Option<Runnable> {
    // Asked once the half is out of its owner's reach: until then the lane may begin another region.
    fork_deque.deque.thief().steal(
        || admits(fork_deque),
        |entry| {
            let number = fork_deques::of(shared).number();
            let former = fork_deque.ancestry();
            let ancestry: Vec<u64> = former
                .iter()
                .flat_map(|ancestry| ancestry.iter().copied())
                .chain([number])
                .collect();
            let origin = Origin {
                root: fork_deque.root_of_forks(),
                ancestry: Arc::from(ancestry),
            };
            let (runnable, job) = make_job(shared, entry, origin);
            (StolenJob { number, job }, runnable)
        },
    )
}

fn make_job(
    shared: &Shared,
    entry: *mut EntryHeader,
    origin: Origin,
) -> (Runnable, JoinHandle<()>) {
    let site = match origin.root.job() {
        // SAFETY: the root is alive: it waits, through its joins, for the half that was just stolen.
        Some(root) => unsafe { root.header() }.extensions.site(),
        None => Location::caller(),
    };
    let spec = Spec {
        runtime: shared.id(),
        site,
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs: 1,
    };
    // SAFETY: the caller has just stolen it.
    let entry = unsafe { StolenEntry::new(entry) };
    let stolen = StolenBody {
        runtime: shared.id(),
        entry,
        origin,
    };
    let runnable = job::new(spec, |_| async move { stolen.run() });
    // SAFETY: the one reference that the spec asked for.
    let reference = unsafe { runnable.claim_ref() };
    // SAFETY: the job's only handle, and its output is `()`.
    (runnable, unsafe { JoinHandle::new(reference) })
}

impl StolenJob {
    /// Asks the stolen half to end.
    pub(super) fn cancel(&self) {
        self.job.cancel();
    }

    /// Waits for the end of the half that was stolen from `fork_deque`. With it comes the unwinding that the
    /// caller owes, if it was cancelled meanwhile.
    pub(super) fn wait(mut self, fork_deque: &ForkDeque) -> (Returned, Option<Payload>) {
        self.help(fork_deque);
        let half = self.job.job().cloned();
        let half = half.expect("a stolen half's job is joined once");
        let half_waits = || half.header().waits_with_stack();
        // A wait that unwinds for a cancel passes it on to the half.
        let cancel = || cancel::cancel(&half);
        let handle = Pin::new(&mut self.job);
        let (ended, owed) = forked_wait::wait_for(fork_deque, handle, &half_waits, &cancel);
        match ended {
            Ok(()) => (Returned::Ran, owed),
            Err(JoinError::Cancelled) => (Returned::Unrun, owed),
            Err(_) => report::impossible("a stolen half's job panicked"),
        }
    }

    /// Runs descendants of the half, as long as there are some or the half ends soon.
    fn help(&self, fork_deque: &ForkDeque) {
        let (here, shared) = (context::here(), fork_deque.shared());
        let mut rounds = 0;
        while rounds < WAIT_ROUNDS && !self.job.is_finished() {
            let descendant = fork_deques::of(shared)
                .iter()
                .filter(|other| other.deque.has_entries() && self.is_ancestor_of(other))
                .find_map(|other| steal_from(shared, other, |other| self.is_ancestor_of(other)));
            match descendant {
                Some(half) => {
                    // The descendant computes in a region of its own, or waits.
                    let _parked = ForkWait::begin(fork_deque);
                    duties::run_nested(here, shared.stack_class(), half);
                    rounds = 0;
                }
                None => rounds += 1,
            }
            for _ in 0..PAUSES {
                spin_loop();
            }
        }
    }

    fn is_ancestor_of(&self, fork_deque: &ForkDeque) -> bool {
        fork_deque
            .ancestry()
            .is_some_and(|ancestry| ancestry.contains(&self.number))
    }
}
