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
//! An owner that waits for a stolen job holds an OS thread. Once a family of forks, those that descend from one root
//! job, holds a quarter as many threads in this way as there are spare ones, workers steal no more of what its
//! computing threads have pushed ([`ForkDeques::has_threads_for`]). Without this bound a recursion in second halves
//! took thousands of threads: each steal leaves one more owner that waits, and nothing gets faster. The owners may
//! still steal from those that they wait for.
//!
//! A line of the program whose parts block is a suspect ([`suspects`](crate::scheduler::threads::suspects)): what a
//! thief takes of such a fork runs in quarantine, so it holds no worker. While the quarantine has no room, nothing is
//! stolen from such a fork, and its owner runs the parts. If the owner cannot, because it waits, one part after the
//! other is begun nevertheless ([`relief`]). A thief that leaves a part for this reason notes it, and the
//! monitor wakes a worker once it may steal ([`Forks::find_blocked`]).
//!
//! A thread says itself when it begins to wait. The monitor finds out whether a thread is blocked in the system
//! ([`Forks::find_blocked`]), but only while a worker sleeps and the bound holds something back. A push that the
//! bound keeps from all workers wakes the monitor (`respond` in `join.rs`).

mod admission;
pub(in crate::fork) mod relief;

use std::{
    any::Any,
    cell::{Cell, LazyCell},
    collections::HashSet,
    iter, ptr,
    sync::Arc,
    time::Instant,
};

use self::{
    admission::{Admission, Judgement},
    relief::Reliefs,
};
use crate::fork::{
    fork_deque::ForkDeque,
    in_use::InUse,
    thief::{self, Admitted},
};
use crate::{
    job::{JobRef, runnable::Runnable},
    scheduler::services::{Forks, HeldBackFork, RoomForParts, ThreadFork, ThreadsLeft},
    scheduler::workers::cancel,
    scheduler::workers::shared::Shared,
    sys::{AtomicBool, AtomicU64, AtomicUsize, Ordering, barrier},
};

/// The fork deques of `shared`.
pub(super) fn of(shared: &Shared) -> &ForkDeques {
    let fork_deques = shared.forks.as_any().downcast_ref();
    fork_deques.expect("the crate root creates them")
}

/// How many threads that were found blocked are checked again in a round of the monitor.
const RECHECKED_PER_ROUND: usize = 2;

/// A family may hold as many threads that wait for stolen jobs as this part of the spare threads.
const SHARE_OF_FAMILY: usize = 4;

/// See the head of this file.
pub(crate) struct ForkDeques {
    in_use: InUse<ForkDeque>,
    /// How many steals there were; each gets a number.
    steals: AtomicU64,
    /// So many jobs may wait in quarantine before no part of a suspect line is stolen. Zero until the monitor knows.
    room_for_parts: AtomicUsize,
    /// So many jobs may wait there to be tried before no part of a line that is to be tried is stolen.
    room_for_trials: AtomicUsize,
    /// Whether the lack of room has kept a thief from a part.
    lacked_room: AtomicBool,
    reliefs: Reliefs,
    /// How many fork deques were noted as blocked and checked again.
    rechecked: AtomicUsize,
}

impl ForkDeques {
    pub(crate) fn new() -> ForkDeques {
        ForkDeques {
            in_use: InUse::new(),
            steals: AtomicU64::new(0),
            room_for_parts: AtomicUsize::new(0),
            room_for_trials: AtomicUsize::new(0),
            lacked_room: AtomicBool::new(false),
            reliefs: Reliefs::new(),
            rechecked: AtomicUsize::new(0),
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

    pub(super) fn reliefs(&self) -> &Reliefs {
        &self.reliefs
    }

    /// Whether any thread forks at this moment.
    fn any_active(&self) -> bool {
        self.iter().any(ForkDeque::is_active)
    }

    /// Whether a further root fork may compute.
    fn may_start(&self, shared: &Shared) -> bool {
        let most = shared.workers.len();
        let computing = self.iter().filter(|fork_deque| fork_deque.computes());
        computing.take(most).count() < most
    }

    /// Whether the family of `fork_deque` may hold one more thread that waits for a stolen job. All forks of threads
    /// outside of the runtime are one family.
    fn has_threads_for(&self, shared: &Shared, fork_deque: &ForkDeque) -> bool {
        let share = shared.config.spare_threads / SHARE_OF_FAMILY;
        let most = share.max(shared.workers.len());
        let holding = self
            .iter()
            .filter(|it| it.holds_thread_in_family_of(fork_deque));
        holding.take(most).count() < most
    }

    /// Whether a worker may steal from `fork_deque`, in which a root fork has begun.
    pub(super) fn admits(&self, shared: &Shared, fork_deque: &ForkDeque) -> bool {
        self.admission(shared).admits(fork_deque)
    }

    /// As [`admits`](ForkDeques::admits), for a worker that is about to steal: takes the relief that this takes.
    fn admit(&self, shared: &Shared, fork_deque: &ForkDeque) -> Option<Admitted> {
        match self.admission(shared).judge(fork_deque, fork_deque.site()) {
            Judgement::Admitted => Some(Admitted::Plainly),
            Judgement::ByRelief => {
                let relief = self.reliefs.take(fork_deque.number(), shared.id());
                relief.map(Admitted::ByRelief)
            }
            Judgement::Kept => None,
        }
    }

    fn admission<'a>(&'a self, shared: &'a Shared) -> Admission<'a> {
        Admission {
            fork_deques: self,
            shared,
            has_room: self.has_room(shared),
            last_asked: Cell::new((ptr::null(), false)),
        }
    }

    /// Whether no line is suspect, or the quarantine has a thread for a part of one. Relaxed: what it asks changes at
    /// any time, and the monitor looks again in each round.
    fn has_room(&self, shared: &Shared) -> bool {
        !shared.suspects.is_any()
            || shared.quarantine.len() < self.room_for_parts.load(Ordering::Relaxed)
    }

    /// Whether the quarantine has a thread for a part of a line that is to be tried.
    fn has_room_for_trials(&self, shared: &Shared) -> bool {
        shared.quarantine.tried() < self.room_for_trials.load(Ordering::Relaxed)
    }

    /// The fork deques that have something to steal.
    fn with_entries(&self) -> impl Iterator<Item = &ForkDeque> {
        self.iter()
            .filter(|fork_deque| fork_deque.deque.has_entries())
    }

    /// Takes back the notes of threads that run again. Not of all in one round: hundreds may be blocked, and to ask the
    /// system about one takes 10 µs.
    fn recheck_blocked(&self, is_blocked: &dyn Fn(u32) -> bool) {
        let noted = || self.iter().filter(|noted| noted.is_noted_as_blocked());
        let count = noted().count();
        // Relaxed: only the monitor uses it.
        let first = self.rechecked.load(Ordering::Relaxed) % count.max(1);
        let checked = RECHECKED_PER_ROUND.min(count);
        for fork_deque in noted().skip(first).chain(noted()).take(checked) {
            if !is_blocked(fork_deque.thread_number()) {
                fork_deque.note_running();
            }
        }
        self.rechecked.store(first + checked, Ordering::Relaxed);
    }

    /// Whether a worker has nothing to do, although there is a stack job that no worker may steal, or a scope has parts
    /// that nobody has begun.
    fn is_held_back(&self, shared: &Shared) -> bool {
        if shared.sleepers.sleeping() == 0 {
            return false;
        }
        let admission = self.admission(shared);
        // Its own scopes, too: their owner may block for a part, which no runner would tell.
        let lacks_runner = |fork_deque: &ForkDeque| {
            let has_parts = || {
                fork_deque.has_parts()
                    || fork_deque.last_scope_that(|it| it.lacks_runner()).is_some()
            };
            fork_deque.computes() && has_parts()
        };
        self.iter()
            .any(|fork_deque| lacks_thief(&admission, fork_deque) || lacks_runner(fork_deque))
    }
}

/// Whether `fork_deque` has a stack job that no worker may steal.
fn lacks_thief(admission: &Admission<'_>, fork_deque: &ForkDeque) -> bool {
    fork_deque.deque.has_entries() && !admission.admits(fork_deque)
}

/// The monitor's part of a [relief].
impl ForkDeques {
    /// Offers one to an owner that lacks one, if so many threads are left.
    fn offer_relief(&self, shared: &Shared, left: ThreadsLeft) {
        let admission = self.admission(shared);
        // The owner of a stolen part is active.
        let is_queued = LazyCell::new(|| {
            self.iter().any(ForkDeque::is_active)
                && shared.quarantine.has(thief::is_stolen_without_relief)
        });
        let lacking = || {
            let lacking = self.iter().filter(|it| admission.lacks_relief(it));
            let queue = iter::once(relief::QUEUE).filter(|_| *is_queued);
            lacking.map(ForkDeque::number).chain(queue)
        };
        let offered = self.reliefs.offer(left, lacking, Instant::now());
        if offered == Some(relief::QUEUE) {
            shared.quarantine.put_first(thief::is_stolen_without_relief);
            self.reliefs.end_offer_to_queue();
            return;
        }
        let owner = offered.and_then(|number| self.iter().find(|it| it.number() == number));
        let Some(owner) = owner else { return };
        if owner.deque.has_entries() {
            // Pairs with the fence of a worker that is about to sleep.
            barrier::full();
            wake_for_room(shared);
        } else if let Some(scope) = admission.scope_without_runner(owner)
            && let Some(relief) = self.reliefs.take(owner.number(), shared.id())
        {
            scope.start_relief(shared, relief);
        }
    }
}

impl Forks<Shared> for ForkDeques {
    fn steal_stack_job(&self, shared: &Shared) -> Option<Runnable> {
        let admission = self.admission(shared);
        self.with_entries()
            .filter(|fork_deque| admission.admits(fork_deque))
            .find_map(|fork_deque| {
                // Once more, because the deque may have passed to another root fork, and the room to another thief.
                thief::steal_from(shared, fork_deque, |it| self.admit(shared, it))
            })
    }

    fn threads(&self) -> usize {
        self.in_use.count()
    }

    fn steal_for_driver(&self, shared: &Shared) -> Option<Runnable> {
        self.with_entries().find_map(|fork_deque| {
            thief::steal_from(shared, fork_deque, |_| Some(Admitted::Plainly))
        })
    }

    fn sees_work(&self, shared: &Shared) -> bool {
        let admission = self.admission(shared);
        self.with_entries()
            .any(|fork_deque| admission.admits(fork_deque))
    }

    fn wants_helpers(&self, shared: &Shared) -> bool {
        let admission = self.admission(shared);
        self.iter()
            .any(|fork_deque| fork_deque.is_active() && admission.admits(fork_deque))
    }

    fn must_find_blocked(&self, shared: &Shared) -> bool {
        self.is_held_back(shared)
    }

    fn find_blocked(&self, shared: &Shared, is_blocked: &dyn Fn(u32) -> bool) {
        self.recheck_blocked(is_blocked);
        if self.lacked_room.swap(false, Ordering::Relaxed) {
            // A thief that lacks room after this notes it again. One that has noted it before is seen asleep below, or
            // looks once more: pairs with the fence of a worker that is about to sleep.
            barrier::full();
            // Wakes nobody as long as there is no room and no line is trusted.
            wake_for_room(shared);
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

    fn set_room_for_parts(&self, shared: &Shared, room: RoomForParts) {
        self.room_for_parts.store(room.queued, Ordering::Relaxed);
        self.room_for_trials.store(room.tried, Ordering::Relaxed);
        self.offer_relief(shared, room.left);
    }

    fn is_relieving(&self) -> bool {
        self.reliefs.is_taken()
    }

    fn held_back(&self, shared: &Shared) -> Vec<HeldBackFork> {
        let mut scopes = HashSet::new();
        // A scope has one such root fork for each of its runners.
        let mut is_new_scope = |fork_deque: &ForkDeque| {
            let scope = fork_deque.scope_with_parts();
            scope.is_some_and(|scope| scopes.insert(scope))
        };
        let admission = self.admission(shared);
        let is_held_back = |fork_deque: &&ForkDeque| {
            lacks_thief(&admission, fork_deque)
                || !admission.admits(fork_deque) && is_new_scope(fork_deque)
        };
        let active = || self.iter().filter(|fork_deque| fork_deque.is_active());
        let forks = active().filter(is_held_back);
        let named = forks.map(|fork_deque| HeldBackFork {
            site: fork_deque.site(),
            job: fork_deque.job(),
        });
        let mut named: Vec<_> = named.collect();
        named.extend(active().filter_map(|fork_deque| {
            let scope = admission.scope_without_runner(fork_deque)?;
            let is_new = scopes.insert(Arc::as_ptr(&scope).addr());
            is_new.then(|| HeldBackFork {
                site: scope.site(),
                job: fork_deque.job(),
            })
        }));
        named
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
            if fork_deque.is_run_by(job.ptr()) {
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
            .any(|fork_deque| fork_deque.is_active() && fork_deque.is_run_by(job.ptr()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A root fork no longer computes, so another one may; or the quarantine has a thread for a part, or a line is trusted.
/// Wakes a worker that sleeps because it might steal nothing: no push woke it meanwhile.
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

#[cfg(all(test, not(loom)))]
mod tests;
