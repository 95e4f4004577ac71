//! The end of a job that nobody knows except its joiner: without the steps by which others would learn of it.
//!
//! A thread that its joiner runs to its end at once has two references, its own and that of the join handle. If both
//! are given up in one exchange, nobody can reach the job any longer, and its block is the joiner's. That costs one
//! locked operation in place of three: the completion, and the end of each reference.
//!
//! # Safety
//! **alone**: a count of zero says that a block holds no job, so a walk over all blocks, which is the only other way to
//! a job, passes it over. The block is free for others only when this file frees it.

#![allow(unsafe_code)]

use crate::{
    job::{reference, runnable::Runnable},
    sys::{AtomicU32, Ordering},
};

/// The references of a job that nobody knows except its joiner: the job's own, and that of the join handle.
const OWN_AND_HANDLE: u32 = 2;

impl Runnable {
    /// Whether nobody knows the job except its joiner at this moment, and it has left nothing that its end must tell
    /// of.
    #[inline(always)]
    pub(crate) fn is_unseen(&self) -> bool {
        // Relaxed: `end_unseen` decides.
        self.header().refs.load(Ordering::Relaxed) == OWN_AND_HANDLE && self.header().is_untouched()
    }

    /// Ends the job, whose output its joiner has taken, if nobody knows it except the joiner: gives up both references,
    /// and frees the block.
    ///
    /// # Errors
    /// The runnable, if another thread has a reference, or has left something that the end must tell of.
    ///
    /// # Safety
    /// The caller has the job's join handle, which is not dropped after this, and whose reference it forgets if the job
    /// has ended here. The body holds nothing.
    #[inline(always)]
    pub(crate) unsafe fn end_unseen(self) -> Result<(), Runnable> {
        if !give_up_both(&self.header().refs, || self.header().is_untouched()) {
            return Err(self);
        }
        // SAFETY: alone; the caller's promise; an untouched job has no extensions.
        unsafe { reference::give_back(self.into_ptr()) };
        Ok(())
    }
}

/// Gives up both references, if there is no other one, and none that is gone has left anything. False: nothing has
/// happened.
#[inline(always)]
pub(crate) fn give_up_both(refs: &AtomicU32, is_untouched: impl FnOnce() -> bool) -> bool {
    // Acquire: the free comes after the last accesses of those that had a reference. Release: as in the drop of one.
    let alone = refs.compare_exchange(OWN_AND_HANDLE, 0, Ordering::AcqRel, Ordering::Relaxed);
    if alone.is_err() {
        return false;
    }
    if !is_untouched() {
        // A walk had a reference for a moment, and has left something. Release: as in `create::new`.
        refs.store(OWN_AND_HANDLE, Ordering::Release);
        return false;
    }
    true
}
