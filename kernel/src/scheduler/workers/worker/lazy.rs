//! The lazy jobs of a worker ([`crate::queue::sharing::lazy_jobs`]). What changes them is called inside the worker's
//! lock.

#![allow(unsafe_code)]

use std::time::Duration;

pub(crate) use crate::queue::sharing::lazy_watch::{LazyCounts, SeenLazy};

use crate::{
    biased_lock::{Lease, OwnerGuard, Revoked},
    queue::sharing::{
        lazy_jobs::{LazyJob, MakeJob, TakenLazyJobs},
        lazy_watch::{OLDEST, ONE},
    },
    scheduler::workers::{
        ready,
        shared::Shared,
        worker::{Worker, WorkerLoop},
        worker_core::{Behind, WorkerCore},
    },
};

/// How long a lazy job must have been the oldest before its owner makes a job of it for another worker. The half that
/// its creator runs meanwhile mostly takes as long as it would.
const GIFT: Duration = Duration::from_micros(10);
/// The same before another worker takes it, which costs the owner as much as the thief: if the owner adds none.
const STEAL: Duration = Duration::from_micros(30);
/// With so many, the oldest is taken at once: its creator started a row of threads that it joins one after the other,
/// or it is the first half of a deep recursion.
const MANY: usize = 16;

impl Worker {
    /// Whether there are some. Any thread, a moment old.
    #[inline(always)]
    pub(crate) fn has_lazy_jobs(&self) -> bool {
        self.lazy_counts.count() > 0
    }

    /// Whether there is more for a thief than a few lazy jobs, which come and go too soon to keep it awake: a search
    /// that found nothing else has watched them. Their owner wakes one for those that stay, or the monitor. Any thread.
    pub(crate) fn has_work_for_sleepers(&self) -> bool {
        self.sharing.is_open() && (self.thief.len() > 0 || self.lazy_counts.count() >= MANY)
    }

    /// Whether a thief that works as `by` takes some. It watches one oldest lazy job at a time, until that is gone.
    fn has_old_lazy_jobs(&self, by: &WorkerLoop<'_>) -> bool {
        if !self.has_lazy_jobs() || self.lazy_counts.count() >= MANY {
            return self.has_lazy_jobs();
        }
        let watches_another = || by.watched_lazy().is_some_and(|it| it != self.oldest_lazy());
        let is_old = || {
            let now = by.shared.clock.now();
            by.seen_lazy.has_been_for(STEAL, self.oldest_lazy(), now)
        };
        by.shared.is_driven() || !watches_another() && is_old()
    }

    /// Which lazy job is the oldest: the worker, and the number of it.
    fn oldest_lazy(&self) -> (usize, usize) {
        (self.index, self.lazy_counts.oldest())
    }

    /// The owner has added one, and it is time to ask whether the oldest has waited for long. If so, and another worker
    /// has nothing to do, a job is made of it, which that one takes from the ring without a heavy fence.
    #[cold]
    #[inline(never)]
    fn watch_lazy(&self, shared: &Shared, mut core: OwnerGuard<'_, WorkerCore>, lease: Lease) {
        let watch = &mut core.lazy_watch;
        if !shared.sleepers.are_any_idle() {
            watch.asks_as_before();
            return;
        }
        let now = shared.clock.now();
        watch.asks_next_after(now);
        if !watch.seen.has_been_for(GIFT, self.oldest_lazy(), now) {
            return;
        }
        let given = (core.ring.len() == 0).then(|| self.take_lazy(&mut core, 1));
        drop(core);
        if let Some(given) = given {
            // SAFETY: it was taken out above; the promise to `push_lazy`.
            let _made = unsafe { make(shared, given) };
            // SAFETY: *owner*: the caller's worker.
            if let Ok(mut core) = unsafe { self.core.enter(lease) }
                && let Some(job) = core.next.take()
            {
                let full = core.push_last(job, Behind::Ring);
                drop(core);
                if let Some(full) = full {
                    ready::inject_quietly(shared, full);
                }
            }
        }
        self.share_lazy(shared);
    }

    /// There have been lazy jobs for a while: they are worth the journey to another worker. By the owner.
    pub(crate) fn share_lazy(&self, shared: &Shared) {
        let sleeper = match self.sharing.is_shared() {
            true => shared.sleepers.take_for_own_ring(),
            false => {
                self.sharing.share();
                shared.sleepers.take_one()
            }
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake_on_other_core(shared);
        }
    }

    /// Adds one to its own, as the newest.
    ///
    /// # Safety
    /// As [`LazyJobs::push`](crate::queue::sharing::lazy_jobs::LazyJobs::push).
    #[inline(always)]
    pub(crate) unsafe fn push_lazy(
        &self,
        (shared, mut core, lease): (&Shared, OwnerGuard<'_, WorkerCore>, Lease),
        lazy: &LazyJob,
        make: MakeJob,
    ) {
        let oldest = if core.lazy.is_empty() { OLDEST } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { core.lazy.push(lazy, make, self.index) };
        self.lazy_counts.add(ONE + oldest);
        if core.lazy_watch.counts() {
            self.watch_lazy(shared, core, lease);
        }
    }

    /// Takes one back, if it is here.
    #[inline(always)]
    pub(crate) fn remove_lazy(&self, core: &mut WorkerCore, lazy: &LazyJob) -> bool {
        let is_here = lazy.place() == Some(self.index);
        if is_here {
            let oldest = if core.lazy.is_oldest(lazy) { OLDEST } else { 0 };
            // SAFETY: it is here.
            unsafe { core.lazy.remove(lazy) };
            self.lazy_counts.add(oldest.wrapping_sub(ONE));
        }
        is_here
    }

    /// Takes the `most` oldest.
    fn take_lazy(&self, core: &mut WorkerCore, most: usize) -> TakenLazyJobs {
        let (taken, count) = core.lazy.take_oldest(most);
        self.lazy_counts.add(OLDEST.wrapping_sub(count));
        taken
    }

    /// Makes jobs of all. By its owner, outside of the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_all_lazy(&self, shared: &Shared, lease: Lease) -> Result<(), Revoked> {
        // SAFETY: *owner*: the caller's worker.
        let mut core = unsafe { self.core.enter(lease) }?;
        let taken = self.take_lazy(&mut core, usize::MAX);
        drop(core);
        // SAFETY: they were taken out above; the promise to `push_lazy`.
        let _made = unsafe { make(shared, taken) };
        Ok(())
    }

    /// For a worker that searches: [`steal_lazy`](Worker::steal_lazy), if the oldest has waited for a while.
    pub(crate) fn steal_old_lazy(&self, by: &WorkerLoop<'_>) -> bool {
        self.has_old_lazy_jobs(by) && self.sharing.begin_steal() && self.steal_lazy(by.shared)
    }

    /// For a thief: makes jobs of a few of the oldest, in proportion to their number, on the calling thread's worker.
    /// True if it has made any. Outside of any lock.
    #[cold]
    pub(crate) fn steal_lazy(&self, shared: &Shared) -> bool {
        // The oldest of a recursion is as large as all the others.
        self.steal_oldest_lazy(shared, |count| count.div_ceil(32))
    }

    /// The same of one.
    #[cold]
    pub(crate) fn steal_one_lazy(&self, shared: &Shared) -> bool {
        self.steal_oldest_lazy(shared, |_| 1)
    }

    fn steal_oldest_lazy(&self, shared: &Shared, amount: impl FnOnce(usize) -> usize) -> bool {
        if !self.has_lazy_jobs() {
            return false;
        }
        let mut core = self.core.enter_foreign();
        let most = match shared.refused_lazy.is_any() {
            // None is made of them either, so that they need not be looked at again and again.
            true => usize::MAX,
            false => amount(self.lazy_counts.count()),
        };
        let taken = self.take_lazy(&mut core, most);
        drop(core);
        // SAFETY: they were taken out above; the promise to `push_lazy`.
        unsafe { make(shared, taken) > 0 }
    }
}

impl WorkerLoop<'_> {
    /// What a look does with lazy jobs: makes jobs of the worker's own, tries again those that were refused what they
    /// need, and takes some of a worker that computes.
    #[inline(always)]
    pub(crate) fn make_lazy_jobs(&self) -> Result<(), Revoked> {
        let (shared, worker) = (self.shared, self.worker());
        if worker.has_lazy_jobs() {
            worker.make_all_lazy(shared, self.lease())?;
        }
        if shared.refused_lazy.is_any() {
            // SAFETY: the promise to `push_lazy`.
            unsafe { shared.refused_lazy.retry(shared.clock.now()) };
        }
        self.steal_lazy_of_others();
        Ok(())
    }

    /// The oldest lazy job that this thread watches, if it still waits and can be stolen.
    fn watched_lazy(&self) -> Option<(usize, usize)> {
        let seen = self.seen_lazy.seen()?;
        let victim = &self.shared.workers[seen.0];
        let waits = seen == victim.oldest_lazy()
            && victim.has_lazy_jobs()
            && victim.thief.len() == 0
            && victim.sharing.is_open();
        waits.then_some(seen)
    }

    /// Whether there still is the oldest lazy job that this thread watched when it first called this, with None.
    pub(crate) fn still_watches(&self, watched: &mut Option<(usize, usize)>) -> bool {
        self.watched_lazy()
            .is_some_and(|now| now == *watched.get_or_insert(now))
    }

    /// Makes jobs of some of another worker that computes, though this one has jobs of its own: while all are busy,
    /// those of a worker that computes would wait for its end, since the monitor sends only jobs to the injector. A
    /// ring that is lent is left to whoever searches.
    fn steal_lazy_of_others(&self) {
        let (workers, own) = (&self.shared.workers, self.worker().index);
        for distance in 1..workers.len() {
            let victim = &workers[(own + distance) % workers.len()];
            if victim.has_lazy_jobs()
                && victim.sharing.is_shared()
                && victim.has_old_lazy_jobs(self)
                && victim.steal_lazy(self.shared)
            {
                return;
            }
        }
    }
}

/// Makes jobs of some that were taken out, or leaves them to a later try. Returns how many it has made.
///
/// # Safety
/// As for [`TakenLazyJobs::make`].
unsafe fn make(shared: &Shared, taken: TakenLazyJobs) -> usize {
    let (made, rest) = match shared.refused_lazy.is_any() {
        // In their order, and without a call of the system for each.
        true => (0, taken),
        // SAFETY: the caller's promise.
        false => unsafe { taken.make() },
    };
    if !rest.is_empty() {
        // SAFETY: as above; nothing was made of them.
        unsafe { refuse(shared, rest) };
    }
    made
}

/// Leaves some that were taken out to a later try, by any worker. If the runtime ends, nobody tries.
///
/// # Safety
/// Each stays where it is until a job was made of it. The caller has taken it out.
#[cold]
pub(crate) unsafe fn refuse(shared: &Shared, refused: TakenLazyJobs) {
    if shared.is_closing() {
        return;
    }
    // SAFETY: the caller's promise.
    if unsafe { shared.refused_lazy.add(refused) } {
        shared.wake_one();
    }
}
