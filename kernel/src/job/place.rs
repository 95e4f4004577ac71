//! Where a job may run: anywhere, or on one thread, because it is not `Send` or because its stack stands there.
//!
//! The argument for the safety of what is done here is made at the head of [`crate::job`].

#![allow(unsafe_code)]

use std::{ptr, sync::Arc};

use super::{Header, LOCAL, stage};
use crate::{local::Home, strand::Strand, sys::Ordering};

impl Header {
    /// Where the job must run, if it may run on one thread only. Only the holder of the runnable.
    pub(crate) fn home(&self) -> Option<Arc<Home>> {
        if self.runtime_if_not_local() & LOCAL == 0 {
            return None;
        }
        if !self.stands() {
            return self.extras.parts().home.clone();
        }
        // SAFETY: stands: the strand lives, and with it the thread and its home.
        let home = unsafe { (*self.strand()).home() };
        // SAFETY: it came from an `Arc` that the thread keeps.
        unsafe { Arc::increment_strong_count(home) };
        // SAFETY: the count was just taken.
        Some(unsafe { Arc::from_raw(home) })
    }

    /// As [`home`](Header::home), if that is the calling thread's, `here`, and the job's stack stands.
    #[inline(always)]
    pub(crate) fn stands_at(&self, here: *const Home) -> bool {
        self.runtime_if_not_local() & LOCAL != 0
            && self.stands()
            // SAFETY: stands: as above.
            && ptr::eq(unsafe { (*self.strand()).home() }, here)
    }

    /// Whether the job was spawned as one that may run at `home` only. Anyone.
    pub(crate) fn is_local_to(&self, home: &Arc<Home>) -> bool {
        let is_it = |other: &Arc<Home>| Arc::ptr_eq(other, home);
        self.runtime_if_not_local() & LOCAL != 0
            && self
                .extras
                .existing()
                .is_some_and(|parts| parts.home.as_ref().is_some_and(is_it))
    }

    /// Whether a stack with the job's frames stands, bound to a thread.
    #[inline(always)]
    pub(crate) fn stands(&self) -> bool {
        matches!(self.stage(), stage::LEFT | stage::STARTED)
    }

    /// The strand of a job whose stack stands. Only the holder of the runnable.
    #[inline(always)]
    pub(crate) fn strand(&self) -> *const Strand {
        self.next.load(Ordering::Relaxed).cast()
    }

    /// The job's stack stands from now on, and wakes send it to the strand's home. Returns whether the job was
    /// local before. The orderings are those of the state, which gives the runnable away after this.
    pub(crate) fn set_stands(&self, stage: u8, strand: &Strand) -> bool {
        let strand = ptr::from_ref(strand).cast_mut().cast();
        self.next.store(strand, Ordering::Relaxed);
        self.set_stage(stage);
        self.runtime.fetch_or(LOCAL, Ordering::Relaxed) & LOCAL != 0
    }

    /// The job's stack no longer stands; the body is in `stage`.
    pub(crate) fn set_stands_not(&self, stage: u8, is_local: bool) {
        self.set_stage(stage);
        if !is_local {
            self.runtime.fetch_and(!LOCAL, Ordering::Relaxed);
        }
    }
}
