//! A stolen job: a stack job that another thread took, as a job of its own.
//!
//! The thief turns what it stole into a job, so that waiting, cancelling and retaking a worker work as for any
//! job, and leaves the job's handle in the stack job's place. The owner waits for the end of that job.
//!
//! While the owner waits, it runs only descendants of the stolen job. When there are none, it holds its OS thread, and
//! a spare thread serves the worker, unless the stolen job itself waits and a job that is pinned to this thread is
//! runnable ([`hold_in`](crate::scheduler::stackful::wait::hold_in)). The reason: a thread that forks may hold a lock
//! of `std`. If the owner ran an unrelated job on its stack, that job could want the lock, and would never get it. If
//! the owner were suspended, a job that wants the lock could block the one thread that resumes the owner.

#![allow(unsafe_code)]

use std::{panic::Location, pin::Pin, sync::Arc};

use crate::{
    api::join::{JoinError, JoinHandle},
    fork::{
        self,
        fork_deque::ForkDeque,
        fork_deques, forked_wait,
        root_fork::{Origin, RootFork},
        stack_job::StolenEntry,
    },
    job::{self, Room, Spec, body_bit, runnable::Runnable, transition::Inbox},
    report,
    report::payload::Payload,
    scheduler::services::{ForkWait, ThreadFork},
    scheduler::{
        stackful::duties,
        workers::{
            cancel, context,
            shared::{self, Shared},
        },
    },
    sys::spin_loop,
};

/// How many times an owner looks for descendants of the stolen job before it hands its worker off. With the pauses,
/// this takes about as long as a handoff and getting a worker back.
const WAIT_ROUNDS: usize = 200;
/// The number of pauses in a round.
const PAUSES: usize = 10;

/// What a thief leaves in the place of a stack job.
pub(super) struct StolenJob {
    number: u64,
    job: JoinHandle<()>,
}

/// How a stolen job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// It ran; its outcome is in the stack job.
    Ran,
    /// The runtime stopped before it ran: the owner has the stack job back.
    Unrun,
}

/// What the stolen job needs to run.
struct StolenBody {
    runtime: u16,
    entry: StolenEntry,
    /// Where the user's code called the fork.
    site: &'static Location<'static>,
    origin: Origin,
}

impl StolenBody {
    fn run(self) {
        // Not from the context: a foreign thread that waits in a join has no runtime there.
        let Some(shared) = shared::find(self.runtime) else {
            report::impossible("a runtime ended while a job was stolen in it");
        };
        let _root_fork = RootFork::enter(context::here(), &shared, self.site, Some(self.origin));
        let returned = self.entry.run();
        fork::cancel::tell_if_survived(returned);
    }
}

/// Steals the oldest stack job of `fork_deque`, if `admits` accepts the deque, as a job that the caller runs or queues.
pub(super) fn steal_from(
    shared: &Shared,
    fork_deque: &ForkDeque,
    admits: impl FnOnce(&ForkDeque) -> bool,
) -> Option<Runnable> {
    // `admits` is called only after the owner can no longer pop the stack job: until then the deque may pass to
    // another root fork.
    fork_deque.deque.steal(
        || admits(fork_deque),
        |entry| {
            let number = fork_deques::of(shared).number();
            let inherited = fork_deque.ancestry();
            let ancestry: Vec<u64> = inherited
                .iter()
                .flat_map(|ancestry| ancestry.iter().copied())
                .chain([number])
                .collect();
            let origin = Origin {
                root: fork_deque.root_of_forks(),
                ancestry: Arc::from(ancestry),
            };
            // SAFETY: it has just been stolen.
            let entry = unsafe { StolenEntry::new(entry) };
            let (runnable, job) = make_job(shared, entry, fork_deque.site(), origin);
            (StolenJob { number, job }, runnable)
        },
    )
}

fn make_job(
    shared: &Shared,
    entry: StolenEntry,
    site: &'static Location<'static>,
    origin: Origin,
) -> (Runnable, JoinHandle<()>) {
    let spec = Spec {
        runtime: shared.id(),
        site,
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs: 1,
    };
    let stolen = StolenBody {
        runtime: shared.id(),
        entry,
        site,
        origin,
    };
    let runnable = job::new(Room::needed(), spec, |_| async move { stolen.run() });
    runnable.header().set_body_bit(body_bit::FORKED);
    // SAFETY: this is the one reference that the spec asked for.
    let reference = unsafe { runnable.claim_ref() };
    // SAFETY: this is the job's only handle, and the job's output is `()`.
    (runnable, unsafe { JoinHandle::new(reference) })
}

impl StolenJob {
    /// Cancels the stolen job.
    pub(super) fn cancel(&self) {
        self.job.cancel();
    }

    /// Waits for the end of this job, which was stolen from `fork_deque`. If the caller is cancelled meanwhile, also
    /// returns the payload with which the caller must unwind.
    pub(super) fn wait(mut self, fork_deque: &ForkDeque) -> (Returned, Option<Payload>) {
        self.help(fork_deque);
        let stolen = self.job.job().cloned();
        let stolen = stolen.expect("a stolen job is joined once");
        let stolen_waits = || stolen.header().waits_with_stack();
        // A wait that unwinds for a cancel passes the cancel on to the stolen job.
        let cancel = || cancel::cancel(&stolen);
        let handle = Pin::new(&mut self.job);
        let (ended, owed) = forked_wait::wait_for(fork_deque, handle, &stolen_waits, &cancel);
        match ended {
            Ok(()) => (Returned::Ran, owed),
            Err(JoinError::Cancelled) => (Returned::Unrun, owed),
            Err(_) => report::impossible("a stolen job panicked outside of its closure"),
        }
    }

    /// Runs descendants of the stolen job, as long as there are some or the stolen job ends soon.
    fn help(&self, fork_deque: &ForkDeque) {
        let (here, shared) = (context::here(), fork_deque.shared());
        let mut rounds = 0;
        while rounds < WAIT_ROUNDS && !self.job.is_finished() {
            let descendant = fork_deques::of(shared)
                .iter()
                .filter(|other| other.deque.has_entries() && self.is_ancestor_of(other))
                .find_map(|other| steal_from(shared, other, |other| self.is_ancestor_of(other)));
            match descendant {
                Some(descendant) => {
                    // The descendant computes in a root fork of its own, or waits.
                    let _waits = ForkWait::begin(fork_deque);
                    duties::run_nested(here, shared.stack_class(), descendant);
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
