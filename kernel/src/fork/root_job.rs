//! The root job: the job that forked first, and waits through its joins for all its forks.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::job::{Header, JobPtr};

/// Set if the cancel of the root job does not reach the forks.
const SHIELDED: usize = 1;
/// Set beside `SHIELDED` if no other cancel may reach the forks either: a destructor forked them.
const OF_DESTRUCTOR: usize = 2;
const BITS: usize = SHIELDED | OF_DESTRUCTOR;

const _: () = assert!(align_of::<Header>() > BITS, "addresses leave the bits free");

/// A root job, as a bare address; null on a foreign thread.
#[derive(Clone, Copy)]
pub(super) struct RootJob(*mut Header);

// SAFETY: an address, which is followed only while something that was forked runs or waits. The root job waits for
// that.
unsafe impl Send for RootJob {}
// SAFETY: as above.
unsafe impl Sync for RootJob {}

impl RootJob {
    pub(super) fn new(job: Option<JobPtr>) -> RootJob {
        RootJob(job.map_or(ptr::null_mut(), |job| job.as_raw().as_ptr()))
    }

    /// The same root job, whose cancel does not reach the forks: a destructor that forks while its job unwinds must
    /// not be unwound again by the same cancel.
    pub(super) fn shielded(self) -> RootJob {
        RootJob(self.0.map_addr(|address| address | SHIELDED))
    }

    /// As [`shielded`](RootJob::shielded), for good: by a destructor, not by a shield that may end before the forks do.
    pub(super) fn of_destructor(self) -> RootJob {
        RootJob(self.0.map_addr(|address| address | BITS))
    }

    /// The address with its bits, for an atomic.
    pub(super) fn into_raw(self) -> *mut Header {
        self.0
    }

    pub(super) fn from_raw(raw: *mut Header) -> RootJob {
        RootJob(raw)
    }

    /// The job; none on a foreign thread.
    pub(super) fn job(self) -> Option<JobPtr> {
        NonNull::new(self.0.map_addr(|address| address & !BITS)).map(JobPtr::from_raw)
    }

    /// The job whose cancel also cancels the forks; none if shielded.
    pub(super) fn canceller(self) -> Option<JobPtr> {
        self.job().filter(|_| self.0.addr() & SHIELDED == 0)
    }

    /// Whether a destructor forked them. Also on a foreign thread, where there is no job.
    pub(super) fn is_of_destructor(self) -> bool {
        self.0.addr() & OF_DESTRUCTOR != 0
    }
}
