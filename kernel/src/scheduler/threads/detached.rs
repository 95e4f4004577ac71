//! The threads that lost their right, with the job that each is in, until that poll ends.
//!
//! One that computes is lowered in the system's priority as soon as cores are short: when more threads compute than
//! there are cores, counting those that serve workers ([`priority`]). The monitor looks each round. One that is in a
//! fork counts, but keeps its priority: no more of these compute than there are workers, and they wait for each other.

use crate::{
    job::JobRef,
    report::JobName,
    scheduler::threads::priority,
    sys::{Mutex, lock},
};

/// All of a runtime.
pub(crate) struct DetachedThreads {
    threads: Mutex<Vec<DetachedThread>>,
    /// How many cores the runtime may use.
    cores: usize,
    /// The priority that its threads begin with.
    normal: i32,
}

struct DetachedThread {
    number: u32,
    job: JobRef,
    activity: Activity,
}

/// What a relieved thread does, as far as the system said when it was relieved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Block,
    /// It is in a fork, and keeps its priority.
    Fork,
    Compute,
    /// It computes, and was lowered.
    ComputeLowered,
}

impl DetachedThreads {
    pub(crate) fn new(cores: usize) -> DetachedThreads {
        DetachedThreads {
            threads: Mutex::new(Vec::new()),
            cores,
            normal: priority::of_this_thread(),
        }
    }

    /// A thread is relieved, and does not know it yet or has announced it.
    pub(crate) fn add(&self, number: u32, job: JobRef, activity: Activity) {
        lock(&self.threads).push(DetachedThread {
            number,
            job,
            activity,
        });
    }

    /// The calling thread, which has this number, has ended its poll. False if it has to be raised again and the
    /// system does not allow it.
    pub(crate) fn end(&self, number: u32) -> bool {
        // First out of the list: from then on nobody lowers it.
        lock(&self.threads).retain(|thread| thread.number != number);
        priority::restore(self.normal)
    }

    /// Lowers those that compute, if cores are short while so many workers are busy.
    pub(crate) fn lower_if_crowded(&self, busy_workers: usize) {
        let mut threads = lock(&self.threads);
        let computing = threads
            .iter()
            .filter(|thread| thread.activity != Activity::Block);
        if computing.count() + busy_workers <= self.cores {
            return;
        }
        for thread in &mut *threads {
            if thread.activity == Activity::Compute {
                priority::lower(thread.number, self.normal);
                thread.activity = Activity::ComputeLowered;
            }
        }
    }

    /// Whether a job holds a thread otherwise than in `wait()`.
    pub(crate) fn is_any_stuck(&self) -> bool {
        let threads = lock(&self.threads);
        let mut jobs = threads.iter().map(|thread| &thread.job);
        jobs.any(|job| !job.header().state.is_waiting())
    }

    /// The jobs that hold a thread at this moment, by name.
    pub(crate) fn jobs(&self) -> Vec<JobName> {
        let threads = lock(&self.threads);
        let jobs = threads.iter().map(|thread| &thread.job);
        jobs.map(|job| JobName::of(job.header())).collect()
    }
}
