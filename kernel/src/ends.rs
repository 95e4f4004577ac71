//! The list of things that end with a job.
//!
//! An end is told once, when the job is done in whichever way (value, panic, cancel) and its future is
//! gone, and so is an output that nobody will take. Ends are told in the order in which they were
//! attached, on the thread that ended the job; then whoever joins the job is woken.

use crate::{extras::End, job::JobRef};

/// Takes an end off again.
pub(crate) struct Attached {
    job: JobRef,
    number: u64,
}

/// Attaches `end` to `job`. If the job is done, `end` is told at once.
pub(crate) fn attach(job: JobRef, end: End) -> Attached {
    let number = {
        let mut parts = job.header().extras.parts();
        let number = parts.next_end;
        parts.next_end += 1;
        parts.ends.push((number, end));
        number
    };
    let attached = Attached { job, number };
    // After the push: a completion that looked at the list before it had set `DONE` before that.
    if attached.job.header().state.is_done()
        && let Some(end) = attached.take()
    {
        end();
    }
    attached
}

impl Attached {
    /// Takes the end off, if it was not told yet.
    pub(crate) fn detach(self) -> bool {
        self.take().is_some()
    }

    fn take(&self) -> Option<End> {
        let mut parts = self.job.header().extras.existing()?;
        let place = parts
            .ends
            .iter()
            .position(|(number, _)| *number == self.number)?;
        Some(parts.ends.remove(place).1)
    }
}
