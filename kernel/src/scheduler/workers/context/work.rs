//! What the running job works for: its unit, the deadline of the caller whose request it serves, and whether others
//! must be told if it survives a panic.

#![allow(unsafe_code)]

use std::{ptr, time::Instant};

use weald_sync::unit::{self, Obstacle, Unit};

use crate::{
    job::{JobPtr, JobRef},
    scheduler::workers::context::{Context, PollNotes},
};

impl Context {
    /// The job that the thread's code is a part of: the running one; or the one that forked, while the running job is a
    /// part of a fork. None in a part of a fork that began outside of jobs.
    pub(crate) fn unit_job(&self) -> Option<JobPtr> {
        let job = self.job()?;
        // SAFETY: the thread that runs a job keeps it alive.
        let is_part = unsafe { job.header() }.is_part();
        match self.thread_fork() {
            Some(fork) if is_part => fork.root_job(),
            _ => Some(job),
        }
    }

    /// As [`unit_job`](Context::unit_job), as a counted reference.
    pub(crate) fn unit_ref(&self) -> Option<JobRef> {
        // SAFETY: the thread that runs a job keeps it alive, and a job that forked waits for the parts.
        self.unit_job().map(|job| unsafe { JobRef::new_for(job) })
    }

    /// The deadline of the caller on whose behalf the running job works.
    pub(crate) fn wanted_until(&self) -> Option<Instant> {
        self.wanted_until.get()
    }

    /// Sets the deadline of the caller on whose behalf the running job works; returns what was set before.
    pub(crate) fn set_wanted_until(&self, deadline: Option<Instant>) -> Option<Instant> {
        // SAFETY: the numbers of units are those of `begin_run`.
        unsafe { self.unit().set_obstacle(Obstacle::KEPT, deadline.is_some()) };
        self.wanted_until.replace(deadline)
    }

    /// The running job unwinds, or drops its mailbox, and its attachment wants to know if the job continues after that.
    pub(crate) fn note_panic(&self) {
        self.note(PollNotes::PANICKED);
    }

    /// A wait with the stack polls what it waits for.
    #[inline(always)]
    pub(crate) fn begin_poll_of_wait(&self) {
        self.note(PollNotes::WAITS);
    }

    /// The running job has noted what it waits for.
    #[inline(always)]
    pub(crate) fn note_reason(&self) {
        if self.noted().waits() {
            self.note(PollNotes::HAS_REASON);
        }
    }

    /// As [`note_reason`](Context::note_reason), for code that does not wait between a look at a thread-local and this.
    #[inline(always)]
    pub(crate) fn note_reason_here(&self) {
        unit::with(|unit| {
            let noted = PollNotes::of_bits(unit.notes());
            if noted.waits() {
                // SAFETY: `WAITS` is not taken back.
                unsafe { unit.set_notes(noted.and(PollNotes::HAS_REASON).to_bits()) };
            }
        });
    }

    /// That poll has ended.
    #[inline(always)]
    pub(crate) fn end_poll_of_wait(&self) {
        self.set_noted(self.noted().without_wait());
    }

    /// The running job has survived what it noted, or another job will tell.
    pub(crate) fn forget_panic(&self) {
        self.set_noted(self.noted().without_panic());
    }

    /// The unit of the context's thread. A fiber that migrates finds the right one with its new context, where the
    /// compiler might keep the address of a thread-local over a switch.
    #[inline(always)]
    pub(super) fn unit(&self) -> &Unit {
        // SAFETY: it was set to the unit of this thread, which has no destructor and lives as long as the context.
        match unsafe { self.unit.get().as_ref() } {
            Some(unit) => unit,
            None => self.find_unit(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_unit(&self) -> &Unit {
        self.unit.set(unit::with(ptr::from_ref));
        self.unit()
    }
}
