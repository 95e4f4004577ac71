//! Made-up jobs for the models of queues.
//!
//! Invariant: a job is queued once and taken once. Its stage is in a cell that loom watches, so a model also fails
//! if the thread that takes a job does not see what the thread that queued it wrote before.

#![allow(unsafe_code)]

use std::ptr;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::cell::Cell;

use crate::{
    queue::injector::{JobBatch, Linked},
    sys::AtomicPtr,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Queued,
    Taken,
}

/// A job that knows whether it was taken.
pub(super) struct Job {
    next: AtomicPtr<Job>,
    stage: Cell<Stage>,
}

impl Linked for Job {
    fn next(&self) -> &AtomicPtr<Job> {
        &self.next
    }
}

/// The jobs of one model, by number.
pub(super) struct Jobs(Vec<Job>);

impl Jobs {
    pub(super) fn new(count: usize) -> Jobs {
        let job = |_| Job {
            next: AtomicPtr::new(ptr::null_mut()),
            stage: Cell::new(Stage::New),
        };
        Jobs((0..count).map(job).collect())
    }

    /// A runnable of job `number`, for a queue. Handed out once.
    pub(super) fn queue(&self, number: usize) -> *mut Job {
        let job = &self.0[number];
        assert_eq!(job.stage.replace(Stage::Queued), Stage::New);
        ptr::from_ref(job).cast_mut()
    }

    /// As [`Jobs::queue`], for several.
    pub(super) fn batch(&self, numbers: impl IntoIterator<Item = usize>) -> JobBatch<Job> {
        let mut batch = JobBatch::new();
        for number in numbers {
            // SAFETY: the job lives until the end of the model and was in no queue.
            unsafe { batch.push(self.queue(number)) };
        }
        batch
    }

    /// Notes that a queue returned the runnable of `job`. Returns the job's number.
    pub(super) fn take(&self, job: *mut Job) -> usize {
        let number = self.number(job);
        let before = self.0[number].stage.replace(Stage::Taken);
        assert_eq!(
            before,
            Stage::Queued,
            "job {number} was taken twice, or before it was queued"
        );
        number
    }

    /// As [`Jobs::take`], for several, in their order.
    pub(super) fn take_all(&self, jobs: &[*mut Job]) -> Vec<usize> {
        jobs.iter().map(|job| self.take(*job)).collect()
    }

    /// As [`Jobs::take_all`], for a batch.
    pub(super) fn take_batch(&self, mut batch: JobBatch<Job>) -> Vec<usize> {
        std::iter::from_fn(|| batch.pop())
            .map(|job| self.take(job))
            .collect()
    }

    /// Puts queued jobs into a batch, to move them from one queue to another.
    pub(super) fn rebatch(&self, jobs: &[*mut Job]) -> JobBatch<Job> {
        let mut batch = JobBatch::new();
        for job in jobs {
            assert_eq!(self.0[self.number(*job)].stage.get(), Stage::Queued);
            // SAFETY: the job lives until the end of the model, and the caller took it from its queue.
            unsafe { batch.push(*job) };
        }
        batch
    }

    /// The address of job `number` in queues.
    pub(super) fn address(&self, number: usize) -> *mut Job {
        ptr::from_ref(&self.0[number]).cast_mut()
    }

    fn number(&self, job: *mut Job) -> usize {
        let place = self.0.iter().position(|other| ptr::eq(other, job));
        place.expect("queues return only what was pushed")
    }

    /// Asserts that every job was taken. Called after all other threads were joined.
    pub(super) fn assert_all_taken(&self) {
        for (number, job) in self.0.iter().enumerate() {
            assert_eq!(job.stage.get(), Stage::Taken, "job {number} was lost");
        }
    }
}
