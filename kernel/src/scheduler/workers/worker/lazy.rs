//! The lazy jobs of a worker ([`crate::queue::sharing::lazy_jobs`]). What changes them is called inside the worker's
//! lock.

#![allow(unsafe_code)]

use crate::{
    biased_lock::{Lease, Revoked},
    queue::sharing::lazy_jobs::{LazyJob, MakeJob, TakenLazyJobs},
    scheduler::workers::{
        shared::Shared,
        worker::{Worker, WorkerLoop},
        worker_core::WorkerCore,
    },
    sys::Ordering,
};

impl Worker {
    /// Whether there are some. Any thread, a moment old.
    #[inline(always)]
    pub(crate) fn has_lazy_jobs(&self) -> bool {
        self.lazy_count.load(Ordering::Relaxed) > 0
    }

    /// Adds one to its own, as the newest.
    ///
    /// # Safety
    /// As [`LazyJobs::push`](crate::queue::sharing::lazy_jobs::LazyJobs::push).
    #[inline(always)]
    pub(crate) unsafe fn push_lazy(&self, core: &mut WorkerCore, lazy: &LazyJob, make: MakeJob) {
        // SAFETY: the caller's promise.
        unsafe { core.lazy.push(lazy, make, self.index) };
        self.count_lazy(1);
    }

    /// Takes one back, if it is here.
    #[inline(always)]
    pub(crate) fn remove_lazy(&self, core: &mut WorkerCore, lazy: &LazyJob) -> bool {
        let is_here = lazy.place() == Some(self.index);
        if is_here {
            // SAFETY: it is here.
            unsafe { core.lazy.remove(lazy) };
            self.count_lazy(-1);
        }
        is_here
    }

    /// Takes the `most` oldest.
    fn take_lazy(&self, core: &mut WorkerCore, most: usize) -> TakenLazyJobs {
        let (taken, count) = core.lazy.take_oldest(most);
        self.count_lazy(-count.cast_signed());
        taken
    }

    #[inline(always)]
    fn count_lazy(&self, by: isize) {
        let count = self.lazy_count.load(Ordering::Relaxed);
        self.lazy_count
            .store(count.wrapping_add_signed(by), Ordering::Relaxed);
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
            false => amount(self.lazy_count.load(Ordering::Relaxed)),
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

    /// Makes jobs of some of another worker that computes, though this one has jobs of its own: while all are busy,
    /// those of a worker that computes would wait for its end, since the monitor sends only jobs to the injector. A
    /// ring that is lent is left to whoever searches.
    fn steal_lazy_of_others(&self) {
        let (workers, own) = (&self.shared.workers, self.worker().index);
        for distance in 1..workers.len() {
            let victim = &workers[(own + distance) % workers.len()];
            if victim.has_lazy_jobs()
                && victim.sharing.is_shared()
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
