//! What a foreign thread in `block_on` runs: one word that the monitor reads, and may set a bit in.
//!
//! The word names the job that the thread runs, and in which run, from before the run until after it. To put the thread
//! into the list of the detached ones, the monitor sets the bit `LISTED`, under the lock of that list. So the bit says
//! whether the run is in the list. [`visits`](crate::scheduler::threads::visits) says what for.

pub(crate) mod main_poll;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{
    job::JobPtr,
    scheduler::{
        stackful::visit_run::main_poll::{MainFuture, MainPoll},
        workers::run_word::RunWord,
    },
};

/// The run is in the list of the detached threads. An address of a job has the bit clear.
const LISTED: usize = 1;

/// See the head of this file.
pub(crate) struct VisitRun {
    /// The system's number of the thread.
    pub(crate) thread: u32,
    pub(crate) main: MainPoll,
    word: AtomicUsize,
    /// How many runs there were. Changed by the thread only.
    runs: AtomicU64,
    /// The word of the run that was renewed last. Changed by the thread only.
    renewed: AtomicUsize,
}

/// What the thread ran at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenRun(usize);

impl SeenRun {
    pub(crate) const NONE: SeenRun = SeenRun(RunWord::NONE.0);

    /// Whether it is a run, and not in the list.
    pub(crate) fn is_unlisted(self) -> bool {
        self != SeenRun::NONE && self.0 & LISTED == 0
    }

    /// Its job. None if there is none, or the run is in the list.
    pub(crate) fn job(self) -> Option<JobPtr> {
        RunWord(self.0).job().filter(|_| self.is_unlisted())
    }
}

impl VisitRun {
    /// The calling thread is in `block_on` of this future.
    pub(crate) fn here(main: MainFuture) -> VisitRun {
        let number = rustix::thread::gettid().as_raw_nonzero().get();
        VisitRun {
            thread: number.unsigned_abs(),
            main: MainPoll::new(main),
            word: AtomicUsize::new(RunWord::NONE.0),
            runs: AtomicU64::new(0),
            renewed: AtomicUsize::new(RunWord::NONE.0),
        }
    }

    /// A run of `job` begins. The thread only.
    pub(crate) fn begin(&self, job: JobPtr) {
        let run = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(run, Ordering::Relaxed);
        // SeqCst: pairs with the fence of the monitor's sleep. It sees the run, or the caller sees that it sleeps.
        self.word.swap(RunWord::new(job, run).0, Ordering::SeqCst);
    }

    /// What the run goes on with counts as another run, unless it does already. False if the run is in the list, or
    /// there is none. The thread only.
    pub(crate) fn renew(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let Some(job) = SeenRun(word).job() else {
            return false;
        };
        if word == self.renewed.load(Ordering::Relaxed) {
            return true;
        }
        let run = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(run, Ordering::Relaxed);
        let (renewed, failure) = (RunWord::new(job, run).0, Ordering::Relaxed);
        // SeqCst: as in `begin`. It fails if the monitor has set `LISTED`.
        let exchanged = self
            .word
            .compare_exchange(word, renewed, Ordering::SeqCst, failure);
        self.renewed.store(renewed, Ordering::Relaxed);
        exchanged.is_ok()
    }

    /// The run has ended, if there was one. Returns its job if the run is in the list. The thread only.
    pub(crate) fn end(&self) -> Option<JobPtr> {
        // Only the thread sets it to another run.
        if self.word.load(Ordering::Relaxed) == RunWord::NONE.0 {
            return None;
        }
        // AcqRel, as where `LISTED` is set: the run and the bit are of one thread each. What the list has of the run is
        // behind the list's lock.
        let ended = self.word.swap(RunWord::NONE.0, Ordering::AcqRel);
        RunWord(ended & !LISTED)
            .job()
            .filter(|_| ended & LISTED != 0)
    }

    /// What the thread runs. SeqCst: as in [`begin`](VisitRun::begin).
    pub(crate) fn seen(&self) -> SeenRun {
        SeenRun(self.word.load(Ordering::SeqCst))
    }

    /// Whether the thread is in a run of `job`: not if that is a part of a fork, which the thread runs while it waits.
    /// The thread only.
    pub(crate) fn is_run_of(&self, job: JobPtr) -> bool {
        RunWord(self.word.load(Ordering::Relaxed) & !LISTED).job() == Some(job)
    }

    /// Sets `LISTED` for the run that the thread is in. False if it is set already. The thread only.
    pub(crate) fn list_own(&self) -> bool {
        self.word.fetch_or(LISTED, Ordering::AcqRel) & LISTED == 0
    }

    /// Sets `LISTED` for the run, if the thread is still in it, and the bit is clear.
    pub(crate) fn list(&self, seen: SeenRun) -> bool {
        let (listed, failure) = (seen.0 | LISTED, Ordering::Relaxed);
        let exchanged = self
            .word
            .compare_exchange(seen.0, listed, Ordering::AcqRel, failure);
        exchanged.is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::job::testing;

    #[test]
    fn a_run_that_has_ended_or_is_listed_is_not_listed() {
        let main = MainFuture {
            site: Location::caller(),
            type_name: "",
        };
        let (visit, job) = (VisitRun::here(main), testing::job());
        assert!(visit.end().is_none() && visit.seen().job().is_none());
        assert!(!visit.renew(), "there is no run");
        assert!(!visit.is_run_of(job.ptr()));
        visit.begin(job.ptr());
        let first = visit.seen();
        assert!(first.job() == Some(job.ptr()));
        assert!(visit.end().is_none());
        visit.begin(job.ptr());
        assert!(!visit.list(first), "another run of the same job");
        let second = visit.seen();
        assert!(visit.renew() && !visit.list(second), "renewed");
        let third = visit.seen();
        assert!(visit.renew() && visit.seen() == third, "only once");
        assert!(third.job() == Some(job.ptr()));
        assert!(visit.list(third) && !visit.list(third) && !visit.list_own());
        assert!(visit.seen().job().is_none());
        assert!(visit.is_run_of(job.ptr()), "also when it is listed");
        assert!(!visit.renew(), "it is in the list");
        assert!(visit.end() == Some(job.ptr()) && visit.end().is_none());
    }
}
