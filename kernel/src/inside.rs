//! What a worker owns behind its gate: next slot, ring, wheel; and the rules by which they are emptied.

#![allow(unsafe_code)]

use crate::{
    injector::Batch,
    job::{Header, JobPtr},
    ring,
    runnable::Runnable,
    timer::wheel::Wheel,
};

/// What only the holder, or an outsider inside the gate, may touch.
pub(crate) struct Inside {
    /// The job just woken by the running one.
    pub(crate) next: Option<JobPtr>,
    pub(crate) ring: ring::Owner<Header>,
    pub(crate) wheel: Wheel,
    /// Places under the process limit that this worker has in hand.
    pub(crate) places: usize,
    /// Jobs that ended here, for the metrics.
    pub(crate) ended: u64,
    /// Polls that began here before the last look, for the metrics.
    polls: u64,
    /// How many jobs in a row came from the next slot.
    streak: u32,
    /// How many jobs may still run before the next look around.
    until_look: u32,
    /// What that was at the last look.
    allowed: u32,
}

/// What the gate hands out.
pub(crate) enum Next {
    /// The job to run next.
    Job(Runnable),
    /// A look around is due first.
    Look,
    /// Nothing is at hand.
    Empty,
}

impl Inside {
    /// Empty queues; a look around is due.
    pub(crate) fn new(ring: ring::Owner<Header>) -> Inside {
        Inside {
            next: None,
            ring,
            wheel: Wheel::new(),
            places: 0,
            ended: 0,
            polls: 0,
            streak: 0,
            until_look: 0,
            allowed: 0,
        }
    }

    /// Puts `job` at the end of the ring. If that is full, its older half comes back, with the job,
    /// for the injector.
    #[inline]
    #[must_use]
    pub(crate) fn push_last(&mut self, job: JobPtr) -> Option<Batch<Header>> {
        let job = job.as_raw().as_ptr();
        match self.ring.push(job) {
            Ok(()) => None,
            Err(job) => Some(self.overflow(job)),
        }
    }

    #[cold]
    fn overflow(&mut self, job: *mut Header) -> Batch<Header> {
        let mut place = [std::ptr::null_mut(); ring::CAPACITY / 2];
        let count = self.ring.take_half(&mut place);
        let mut batch = Batch::new();
        for job in place[..count].iter().copied().chain([job]) {
            // SAFETY: the ring gave up the right to these jobs; the batch takes it.
            unsafe { batch.push(job) };
        }
        batch
    }

    /// The next job, by the rules of order: the next slot, but not for ever; then the ring.
    #[inline(always)]
    pub(crate) fn take(&mut self, streak_limit: u32) -> Next {
        if self.until_look == 0 {
            return Next::Look;
        }
        let job = match self.next.take() {
            Some(job) if self.streak < streak_limit => {
                self.streak += 1;
                job
            }
            slot => match self.take_after_streak(slot) {
                Some(job) => job,
                None => return Next::Empty,
            },
        };
        self.until_look -= 1;
        // SAFETY: the queue held the job's right to run.
        Next::Job(unsafe { Runnable::new(job) })
    }

    #[inline(never)]
    fn take_after_streak(&mut self, slot: Option<JobPtr>) -> Option<JobPtr> {
        self.streak = 0;
        let from_ring = self
            .ring
            .pop()
            .and_then(std::ptr::NonNull::new)
            .map(JobPtr::from_raw);
        let (Some(waiting), Some(woken)) = (from_ring, slot) else {
            return from_ring.or(slot);
        };
        // The ring has just lost a job, and only its owner fills it: there is room.
        let kept = self.push_last(woken);
        debug_assert!(kept.is_none());
        Some(waiting)
    }

    /// Sets how many jobs may run before the next look.
    pub(crate) fn set_until_look(&mut self, jobs: u32) {
        self.polls += u64::from(self.allowed - self.until_look);
        self.until_look = jobs;
        self.allowed = jobs;
    }

    /// Polls that began here.
    pub(crate) fn polls(&self) -> u64 {
        self.polls + u64::from(self.allowed - self.until_look)
    }

    /// In a test runtime: changes the order by chance, within what a real one could show.
    pub(crate) fn shuffle(&mut self, chance: &mut impl FnMut(usize) -> usize) {
        if let Some(woken) = self.next.take_if(|_| chance(2) == 0) {
            let overflow = self.push_last(woken);
            debug_assert!(overflow.is_none() || self.ring.len() == 0);
        }
        for _ in 0..chance(self.ring.len().max(1)) {
            if let Some(job) = self.ring.pop() {
                let _room = self.ring.push(job);
            }
        }
    }
}
