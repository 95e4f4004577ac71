//! A stolen job, as the owner of the stack job sees it: what the thief (`thief`) has left in the stack job's place. The
//! owner waits for the end of that job.
//!
//! While the owner waits, it runs only descendants of the stolen job. When there are none, it holds its OS thread, and
//! a spare thread serves the worker, unless the stolen job itself waits and a job that is pinned to this thread is
//! runnable ([`hold_in`](crate::scheduler::stackful::wait::hold_in)). The reason: a thread that forks may hold a lock
//! of `std`. If the owner ran an unrelated job on its stack, that job could want the lock, and would never get it. If
//! the owner were suspended, a job that wants the lock could block the one thread that resumes the owner.
//!
//! A descendant that the owner, or its thread's loop, ran may have waited, so that it is suspended on the owner's
//! thread: also one that the loop took while the owner's first half waited. The stolen job may block until that
//! descendant goes on. So when it is runnable, the owner runs it on, on top of its own stack.

use std::pin::Pin;

use crate::{
    api::join::{JoinError, JoinHandle},
    fork::{
        fork_deque::ForkDeque,
        fork_deques, forked_wait,
        thief::{self, Admitted},
    },
    job::{JobRef, runnable::Runnable},
    report::{self, payload::Payload},
    scheduler::{
        services::ForkWait,
        stackful::{
            duties,
            wait::{Awaited, HoldLimit},
        },
        workers::{cancel, context, shared::Shared},
    },
    sys::{barrier, spin_loop},
};

/// How many times an owner looks for descendants of the stolen job before it hands its worker off. With the pauses,
/// this takes about as long as a handoff and getting a worker back.
const WAIT_ROUNDS: usize = 200;
/// The number of pauses in a round.
const PAUSES: usize = 10;
/// With more fork deques than this, a round counts as several: their number does not make the owner spin for longer.
const DEQUES_PER_ROUND: usize = 8;

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

impl StolenJob {
    /// `number` is the one that the ancestry of its descendants has. `job` is the job's only handle.
    pub(super) fn new(number: u64, job: JoinHandle<()>) -> StolenJob {
        StolenJob { number, job }
    }

    /// The number of the steal.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Cancels the stolen job.
    pub(super) fn cancel(&self) {
        self.job.cancel();
    }

    /// Waits for the end of this job, which was stolen from `fork_deque`. If the caller is cancelled meanwhile, also
    /// returns the payload with which the caller must unwind.
    pub(super) fn wait(mut self, fork_deque: &ForkDeque) -> (Returned, Option<Payload>) {
        let job = self.job.job().cloned();
        let awaited = AwaitedJob {
            number: self.number,
            job: job.expect("a stolen job is joined once"),
            shared: fork_deque.shared(),
            hold_limit: HoldLimit::default(),
        };
        awaited.help(fork_deque);
        // A wait that unwinds for a cancel passes the cancel on to the stolen job.
        let cancel = || cancel::cancel(&awaited.job);
        let handle = Pin::new(&mut self.job);
        fork_deque.set_holds_thread(true);
        let (ended, owed) = forked_wait::wait_for(fork_deque, handle, &awaited, &cancel);
        fork_deque.set_holds_thread(false);
        // Pairs with the fence of a worker that is about to sleep.
        barrier::full();
        fork_deques::wake_for_room(fork_deque.shared());
        match ended {
            Ok(()) => (Returned::Ran, owed),
            Err(JoinError::Cancelled) => (Returned::Unrun, owed),
            Err(_) => report::impossible("a stolen job panicked outside of its closure"),
        }
    }
}

/// A stolen job for whose end its owner waits.
struct AwaitedJob<'a> {
    number: u64,
    job: JobRef,
    shared: &'a Shared,
    hold_limit: HoldLimit,
}

impl AwaitedJob<'_> {
    /// Runs descendants of the stolen job, as long as there are some or the stolen job may end soon, which it does not
    /// if it waits itself.
    fn help(&self, fork_deque: &ForkDeque) {
        let mut rounds = 0;
        while rounds < WAIT_ROUNDS && !self.job.header().state.has_ended() {
            let mut deques = 0;
            let descendant = fork_deques::of(self.shared)
                .iter()
                .inspect(|_| deques += 1)
                .filter(|other| other.deque.has_entries() && self.is_ancestor_of(other))
                .find_map(|other| {
                    let admits =
                        |other: &_| self.is_ancestor_of(other).then_some(Admitted::Plainly);
                    thief::steal_from(self.shared, other, admits)
                });
            match descendant {
                Some(descendant) => {
                    // The descendant computes in a root fork of its own, or waits.
                    let _waits = ForkWait::begin(fork_deque);
                    duties::run_nested(context::here(), self.shared.stack_class(), descendant);
                    rounds = 0;
                }
                None if self.waits() => return,
                None => rounds += 1 + deques / DEQUES_PER_ROUND,
            }
            for _ in 0..PAUSES {
                spin_loop();
            }
        }
    }

    fn is_ancestor_of(&self, fork_deque: &ForkDeque) -> bool {
        descends(fork_deque, self.number)
    }
}

impl Awaited for AwaitedJob<'_> {
    fn waits(&self) -> bool {
        self.job.header().waits_with_stack()
    }

    fn is_suspended(&self) -> bool {
        self.job.header().has_own_stack()
    }

    fn hold_limit(&self) -> &HoldLimit {
        &self.hold_limit
    }

    fn take_pinned(&self) -> Option<Runnable> {
        take_pinned_descendant(self.number, self.shared)
    }
}

/// Whether the root fork of `fork_deque` descends from the steal, or the scope, with this number.
fn descends(fork_deque: &ForkDeque, number: u64) -> bool {
    let ancestry = fork_deque.ancestry();
    ancestry.is_some_and(|ancestry| ancestry.contains(&number))
}

/// Takes a job whose root fork descends from the steal, or the scope, with this number out of the calling thread's
/// pinned queue, if one is runnable there.
pub(super) fn take_pinned_descendant(number: u64, shared: &Shared) -> Option<Runnable> {
    let here = context::again();
    let pinned = here.pinned_here()?;
    if !pinned.has_runnable() {
        return None;
    }
    let deques = fork_deques::of(shared).iter();
    let descendants: Vec<_> = deques.filter(|other| descends(other, number)).collect();
    if descendants.is_empty() {
        return None;
    }
    // A job in this queue began its root fork before, so that fork's deque is still the job's.
    pinned.take_first(|job| descendants.iter().any(|deque| deque.is_run_by(job)))
}
