//! The job at the root of forks: the one that forked first, and waits through its joins for all of them.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::job::{Header, JobPtr};

/// Marks a root whose cancel does not reach the forks.
const CUT_OFF: usize = 1;

/// A root, as an address and no more; null on a foreign thread.
#[derive(Clone, Copy)]
pub(super) struct RootJob(*mut Header);

// SAFETY: an address, which is followed only while something runs or waits that was forked, for which the root
// waits.
unsafe impl Send for RootJob {}
// SAFETY: as above.
unsafe impl Sync for RootJob {}

impl RootJob {
    pub(super) fn new(job: Option<JobPtr>) -> RootJob {
        RootJob(job.map_or(ptr::null_mut(), |job| job.as_raw().as_ptr()))
    }

    /// The same one, whose cancel does not reach the forks: a destructor that forks while its job unwinds is not
    /// to be unwound by the same cancel once more.
    pub(super) fn cut_off(self) -> RootJob {
        RootJob(self.0.map_addr(|address| address | CUT_OFF))
    }

    /// The word, for an atomic.
    pub(super) fn into_raw(self) -> *mut Header {
        self.0
    }

    pub(super) fn from_raw(raw: *mut Header) -> RootJob {
        RootJob(raw)
    }

    /// The job; none on a foreign thread.
    pub(super) fn job(self) -> Option<JobPtr> {
        NonNull::new(self.0.map_addr(|address| address & !CUT_OFF)).map(JobPtr::from_raw)
    }

    /// The job whose cancel is one of the forks, too.
    pub(super) fn canceller(self) -> Option<JobPtr> {
        self.job().filter(|_| self.0.addr() & CUT_OFF == 0)
    }
}
