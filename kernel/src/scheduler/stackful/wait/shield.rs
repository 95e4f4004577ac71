//! Shields: for a while, a cancel of the running job ends none of its waits.

#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::{job::JobRef, scheduler::workers::context};

/// While it lives, a cancel unwinds no wait of the running job.
pub(crate) struct Shield(Option<JobRef>);

impl Shield {
    pub(super) fn begin() -> Shield {
        let job = context::again().job_ref();
        if let Some(job) = &job {
            // Counted: they may end in any order.
            job.header().extensions.lock().shields += 1;
        }
        Shield(job)
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
            job.header().extensions.lock().shields -= 1;
        }
    }
}

/// While it lives, a cancel ends no wait with the stack of the job that created it: each such wait lasts to its end.
/// The cancel is not lost: the first such wait after that, or [`cancel_point`](crate::cancel_point()), unwinds the job.
/// Outside of jobs it does nothing. It stays on the thread that created it.
#[must_use = "a shield that is dropped at once shields nothing"]
pub struct CancelShield {
    _shield: Shield,
    _of_this_thread: PhantomData<*const ()>,
}

impl CancelShield {
    /// Begins to shield the running job. With several, the job is shielded until the last has ended.
    pub fn begin() -> CancelShield {
        CancelShield {
            _shield: Shield::begin(),
            _of_this_thread: PhantomData,
        }
    }
}

impl std::fmt::Debug for CancelShield {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelShield").finish_non_exhaustive()
    }
}
