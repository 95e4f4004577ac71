//! Shields: for a while, a cancel of the running job ends none of its waits.

#![allow(unsafe_code)]

use std::mem;

use crate::{job::JobRef, scheduler::workers::context};

/// While it lives, a cancel unwinds no wait of the running job.
pub(crate) struct Shield(Option<JobRef>);

impl Shield {
    pub(super) fn begin() -> Shield {
        // If there are two shields, the outer one counts.
        let job = context::again().job_ref();
        Shield(
            job.filter(|job| !mem::replace(&mut job.header().extensions.lock().is_shielded, true)),
        )
    }
}

/// A shield, if the running job is cancelled already.
pub(crate) fn shield_if_cancelled() -> Option<Shield> {
    let is_cancelled = context::again().job().is_some_and(|job| {
        // SAFETY: the caller runs the job.
        unsafe { job.header() }.state.is_cancelled()
    });
    is_cancelled.then(Shield::begin)
}

impl Drop for Shield {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.header().extensions.lock().is_shielded = false;
        }
    }
}
