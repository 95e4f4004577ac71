//! All fork deques of a runtime: where thieves look, and how sleepers and cancels reach threads that fork.
//!
//! A fork deque is created when a thread needs one and none is free. It is freed with the runtime only, but a walk sees
//! those that threads have claimed: of a thousand parts that waited at one time nothing is left for later walks.
//!
//! At most as many root forks compute at once as there are workers ([`ForkDeques::may_start`]). Without this bound
//! there could be more: a detached thread continues with its root fork, and the spare thread that replaces it would
//! begin another. A root fork whose thread waits, or is blocked, does not count. What it has pushed may be stolen
//! whatever the others do ([`ForkDeques::admits`]): the thief replaces its thread, which may be waiting for that very
//! half.
//!
//! A thread says itself when it begins to wait. The monitor finds out whether a thread is blocked in the system
//! ([`Forks::find_blocked`]), but only while a worker sleeps and the bound holds something back. A push that the
//! bound keeps from all workers wakes the monitor (`respond` in `join.rs`).

use std::{any::Any, collections::HashSet};

use crate::fork::{fork_deque::ForkDeque, in_use::InUse, thief};
use crate::{
    job::{JobRef, runnable::Runnable},
    scheduler::services::{Forks, HeldBackFork, ThreadFork},
    scheduler::workers::cancel,
    scheduler::workers::shared::Shared,
    sys::{AtomicU64, Ordering, barrier},
};

/// The fork deques of `shared`.
pub(super) fn of(shared: &Shared) -> &ForkDeques {
    let fork_deques = shared.forks.as_any().downcast_ref();
    fork_deques.expect("the crate root creates them")
}

/// See the head of this file.
pub(crate) struct ForkDeques {
    in_use: InUse<ForkDeque>,
    /// How many steals there were; each gets a number.
    steals: AtomicU64,
}

impl ForkDeques {
    pub(crate) fn new() -> ForkDeques {
        ForkDeques {
            in_use: InUse::new(),
            steals: AtomicU64::new(0),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ForkDeque> {
        self.in_use.iter()
    }

    /// A fork deque for the calling thread: a free one, else a new one.
    pub(super) fn claim(&self, shared: &Shared) -> &ForkDeque {
        let fork_deque = self.in_use.claim(|number| ForkDeque::new(shared, number));
        // A thread that alerted all a moment ago has not seen this one.
        fork_deque.deque.alert();
        fork_deque
    }

    /// The calling thread gives back the fork deque with this number.
    pub(super) fn unclaim(&self, number: usize) {
        self.in_use.give_back(number);
    }

    /// The number of a new steal.
    pub(super) fn number(&self) -> u64 {
        self.steals.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether any thread forks at this moment.
    fn any_active(&self) -> bool {
        self.iter().any(ForkDeque::is_active)
    }

    /// Whether a further root fork may compute.
    fn may_start(&self, shared: &Shared) -> bool {
        let computing = self.iter().filter(|fork_deque| fork_deque.computes());
        computing.count() < shared.workers.len()
    }

    /// Whether a worker may steal from `fork_deque`.
    pub(super) fn admits(&self, shared: &Shared, fork_deque: &ForkDeque) -> bool {
        !fork_deque.computes() || self.may_start(shared)
    }

    /// The fork deques that have something to steal.
    fn with_entries(&self) -> impl Iterator<Item = &ForkDeque> {
        self.iter()
            .filter(|fork_deque| fork_deque.deque.has_entries())
    }

    /// Whether `fork_deque` has a stack job from which the bound keeps the workers.
    fn lacks_thief(&self, shared: &Shared, fork_deque: &ForkDeque) -> bool {
        fork_deque.deque.has_entries() && !self.admits(shared, fork_deque)
    }

    /// Whether a worker has nothing to do, although something is held back, or a scope has parts that nobody has begun.
    fn is_held_back(&self, shared: &Shared) -> bool {
        let lacks_runner = |fork_deque: &ForkDeque| fork_deque.has_parts() && fork_deque.computes();
        shared.sleepers.sleeping() > 0
            && self
                .iter()
                .any(|fork_deque| self.lacks_thief(shared, fork_deque) || lacks_runner(fork_deque))
    }
}

impl Forks<Shared> for ForkDeques {
    fn steal_stack_job(&self, shared: &Shared) -> Option<Runnable> {
        self.with_entries()
            .filter(|fork_deque| self.admits(shared, fork_deque))
            .find_map(|fork_deque| thief::steal_from(shared, fork_deque, |_| true))
    }

    fn steal_for_driver(&self, shared: &Shared) -> Option<Runnable> {
        self.with_entries()
            .find_map(|fork_deque| thief::steal_from(shared, fork_deque, |_| true))
    }

    fn sees_work(&self, shared: &Shared) -> bool {
        self.with_entries()
            .any(|fork_deque| self.admits(shared, fork_deque))
    }

    fn wants_helpers(&self, shared: &Shared) -> bool {
        self.iter()
            .any(|fork_deque| fork_deque.is_active() && self.admits(shared, fork_deque))
    }

    fn must_find_blocked(&self, shared: &Shared) -> bool {
        self.is_held_back(shared)
    }

    fn find_blocked(&self, shared: &Shared, is_blocked: &dyn Fn(u32) -> bool) {
        for fork_deque in self.iter().filter(|noted| noted.is_noted_as_blocked()) {
            if !is_blocked(fork_deque.thread_number()) {
                fork_deque.note_running();
            }
        }
        if !self.is_held_back(shared) {
            return;
        }
        let mut found = false;
        for fork_deque in self.iter().filter(|fork_deque| fork_deque.computes()) {
            if is_blocked(fork_deque.thread_number()) {
                fork_deque.note_blocked();
                found = true;
            }
        }
        if found {
            // Pairs with the fence of a worker that is about to sleep.
            barrier::full();
            wake_for_room(shared);
        }
    }

    fn held_back(&self, shared: &Shared) -> Vec<HeldBackFork> {
        let mut scopes = HashSet::new();
        // A scope has one such root fork for each of its runners.
        let mut is_new_scope = |fork_deque: &ForkDeque| {
            let scope = fork_deque.scope_with_parts();
            scope.is_some_and(|scope| scopes.insert(scope))
        };
        let is_held_back = |fork_deque: &&ForkDeque| {
            self.lacks_thief(shared, fork_deque)
                || !self.admits(shared, fork_deque) && is_new_scope(fork_deque)
        };
        let forks = self.iter().filter(is_held_back);
        let named = forks.map(|fork_deque| HeldBackFork {
            site: fork_deque.site(),
            job: fork_deque.job(),
        });
        named.collect()
    }

    fn alert_all(&self) {
        let mut alerted = false;
        for fork_deque in self.iter() {
            fork_deque.deque.alert();
            alerted = true;
        }
        if alerted {
            // Pairs with the light fence of a push: either the push sees the alert, or the caller sees the pushed
            // entry.
            barrier::heavy();
        }
    }

    fn cancel_forks_of(&self, job: &JobRef) {
        // Pairs with the fence in `RootFork::enter`: either a root fork that begins now sees the cancel, or this
        // loop sees the root fork.
        barrier::full();
        for fork_deque in self.iter() {
            if fork_deque.is_run_by(job) {
                fork_deque.deque.alert();
            } else if fork_deque.is_cancelled_with(job)
                && let Some(descendant) = fork_deque.job()
                && fork_deque.is_cancelled_with(job)
            {
                fork_deque.deque.alert();
                cancel::cancel_alone(&descendant);
            }
        }
    }

    fn is_forking(&self, job: &JobRef) -> bool {
        self.iter()
            .any(|fork_deque| fork_deque.is_active() && fork_deque.is_run_by(job))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A root fork no longer computes, so another one may. Wakes a worker that sleeps because there was no room: no
/// push woke it meanwhile.
pub(super) fn wake_for_room(shared: &Shared) {
    let fork_deques = of(shared);
    if shared.sleepers.sleeping() == 0 || !fork_deques.any_active() {
        return;
    }
    for fork_deque in fork_deques.iter() {
        fork_deque.deque.alert();
    }
    if fork_deques.sees_work(shared) {
        shared.wake_one();
    }
}
