//! The lazy jobs of a worker ([`crate::queue::sharing::lazy_jobs`]). What changes them is called inside the worker's
//! lock.

#![allow(unsafe_code)]

use crate::{
    biased_lock::{Lease, Revoked},
    queue::sharing::lazy_jobs::{LazyJob, MakeJob, TakenLazyJobs},
    scheduler::workers::{worker::Worker, worker_core::WorkerCore},
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

    /// For a thief: a few of the oldest, in proportion to their number.
    fn take_some_lazy(&self, core: &mut WorkerCore) -> TakenLazyJobs {
        let count = self.lazy_count.load(Ordering::Relaxed);
        // The oldest of a recursion is as large as all the others.
        self.take_lazy(core, count.div_ceil(32))
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
    pub(crate) fn make_all_lazy(&self, lease: Lease) -> Result<(), Revoked> {
        // SAFETY: *owner*: the caller's worker.
        let mut core = unsafe { self.core.enter(lease) }?;
        let taken = self.take_lazy(&mut core, usize::MAX);
        drop(core);
        make(taken);
        Ok(())
    }

    /// Makes jobs of some of them, on the calling thread's worker. True if there were any. Outside of any lock.
    #[cold]
    pub(crate) fn steal_lazy(&self) -> bool {
        let mut core = self.core.enter_foreign();
        let taken = self.take_some_lazy(&mut core);
        drop(core);
        make(taken) > 0
    }

    /// Makes jobs of some of another worker from which thieves may take, though this one has jobs of its own: while all
    /// are busy, those of a worker that computes would wait for its end, since the monitor sends only jobs to the
    /// injector. By its owner, outside of any lock.
    pub(crate) fn steal_lazy_of(&self, workers: &[Worker]) {
        for distance in 1..workers.len() {
            let victim = &workers[(self.index + distance) % workers.len()];
            if victim.has_lazy_jobs() && victim.sharing.begin_steal() && victim.steal_lazy() {
                return;
            }
        }
    }
}

fn make(taken: TakenLazyJobs) -> usize {
    let make_one = |lazy: *const LazyJob| {
        // SAFETY: the promise to `push_lazy`: it stays until a job was made of it.
        if let Some(make) = unsafe { &*lazy }.make() {
            // SAFETY: as above: it was taken out once.
            unsafe { make(lazy) };
        }
    };
    taken.map(make_one).count()
}
