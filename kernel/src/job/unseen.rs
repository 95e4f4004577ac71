//! The end of a job that nobody knows except its joiner: without the steps by which others would learn of it.
//!
//! A thread that its joiner runs to its end at once has two references, its own and that of the join handle. If both are
//! given up in one exchange, nobody can reach the job any longer, and its output and its block are the joiner's. That costs
//! one locked operation in place of three: the completion, and the end of each reference.
//!
//! # Safety
//! **alone**: a count of zero says that a block holds no job, so a walk over all blocks, which is the only other way to a
//! job, passes it over. The block is free for others only when this file frees it.

#![allow(unsafe_code)]

use std::mem;

use crate::{
    job::{JobPtr, JobRef, body::Outcome, reference, runnable::Runnable},
    sys::{AtomicU32, Ordering},
};

/// The references of a job that nobody knows except its joiner: the job's own, and that of the join handle.
const OWN_AND_HANDLE: u32 = 2;

/// A job that has ended unseen, with its output. No reference to it is left.
pub(crate) struct Unseen(JobPtr);

impl Runnable {
    /// Whether nobody seems to know the job except its joiner, so that [`end_unseen`](Runnable::end_unseen) is worth an
    /// attempt.
    #[inline(always)]
    pub(crate) fn is_unseen(&self) -> bool {
        let header = self.header();
        // Relaxed: `end_unseen` looks again.
        header.refs.load(Ordering::Relaxed) == OWN_AND_HANDLE && header.is_untouched()
    }

    /// Ends the job, whose output is in place, if nobody knows it except its joiner. Gives up both references.
    ///
    /// # Errors
    /// The runnable, if another thread has a reference, or has left something that the end must tell of.
    ///
    /// # Safety
    /// The caller has the job's join handle, which is not dropped after this, and whose reference it forgets if the job has
    /// ended here.
    #[inline(always)]
    pub(crate) unsafe fn end_unseen(self) -> Result<Unseen, Runnable> {
        match give_up_both(&self.header().refs, || self.header().is_untouched()) {
            true => Ok(Unseen(self.into_ptr())),
            false => Err(self),
        }
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

impl Unseen {
    /// The output.
    ///
    /// # Safety
    /// `T` is the type of the job's output.
    #[inline(always)]
    pub(crate) unsafe fn into_output<T>(self) -> Outcome<T> {
        // Not a reference: nothing is counted.
        // SAFETY: alone: the block is still the job's.
        let job = mem::ManuallyDrop::new(unsafe { JobRef::from_ptr(self.0) });
        // SAFETY: alone, and the caller's promise.
        unsafe { job.take_output() }
    }
}

impl Drop for Unseen {
    #[inline(always)]
    fn drop(&mut self) {
        // Not a reference: nothing is counted.
        // SAFETY: alone: the block is still the job's.
        let job = mem::ManuallyDrop::new(unsafe { JobRef::from_ptr(self.0) });
        // SAFETY: alone. If the output was taken, nothing is dropped.
        unsafe { job.drop_output() };
        // SAFETY: alone.
        unsafe { reference::free(self.0) };
    }
}
