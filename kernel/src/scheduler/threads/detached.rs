//! Detached threads: those that are in a job and no longer own a worker, each with its job, until that poll ends.
//!
//! A thread is detached when the monitor retakes its worker, or when it hands its worker off because it blocks.
//!
//! The monitor looks at them each round. When more threads compute than there are cores, counting those that serve
//! workers, it lowers the priority of the detached ones that compute ([`priority`]). A thread in a fork counts, but
//! keeps its priority: no more of these compute than there are workers, and they wait for each other.

use crate::{
    job::JobRef,
    report::JobName,
    scheduler::threads::priority,
    sys::{Mutex, lock},
};

/// The detached threads of a runtime.
pub(crate) struct DetachedThreads {
    threads: Mutex<Vec<DetachedThread>>,
    /// How many cores the runtime may use.
    cores: usize,
    /// The priority that its threads start with.
    normal: i32,
}

struct DetachedThread {
    number: u32,
    job: JobRef,
    activity: Activity,
}

/// What a detached thread does, according to the system when it was detached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Block,
    /// It is in a fork, and keeps its priority.
    Fork,
    Compute,
    /// It computes, at a lower priority.
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

    /// Adds a thread whose worker was just retaken or handed off.
    pub(crate) fn add(&self, number: u32, job: JobRef, activity: Activity) {
        lock(&self.threads).push(DetachedThread {
            number,
            job,
            activity,
        });
    }

    /// The calling thread, which has this number, has ended its poll. False if its priority was lowered and the system
    /// does not allow to raise it.
    pub(crate) fn end(&self, number: u32) -> bool {
        // Out of the list first: the monitor can no longer lower it.
        lock(&self.threads).retain(|thread| thread.number != number);
        priority::restore(self.normal)
    }

    /// Lowers the priority of those that compute, if with `busy_workers` they are more than the cores.
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

    /// The names of the jobs that hold a thread at this moment.
    pub(crate) fn jobs(&self) -> Vec<JobName> {
        let threads = lock(&self.threads);
        let jobs = threads.iter().map(|thread| &thread.job);
        jobs.map(|job| JobName::of(job.header())).collect()
    }
}
