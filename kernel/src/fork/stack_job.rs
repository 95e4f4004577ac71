//! A stack job: a closure in the stack frame of its join, which the owner or a thief runs.
//!
//! The thread that may touch it, by situation:
//! - *owner*: the join that created it, before the push and after it was popped or given back;
//! - *thief*: the thread that stole it, until the stolen job is done;
//! - *after*: the owner again, once the stolen job is done.
//!
//! The [`Deque`](crate::fork::deque::Deque) and the end of the stolen job pass the stack job on from one to the
//! next. It never moves in between, and its frame stays until the join has it back, even if the join unwinds.

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::UnsafeCell,
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// What a closure left: its result, or the payload of its panic.
pub(super) type ClosureResult<B> = Result<B, Box<dyn Any + Send>>;

/// What thieves see of a stack job.
pub(super) struct EntryHeader {
    /// Runs the closure, and keeps its outcome in the stack job. Returns whether it returned. SAFETY: only the thief
    /// calls it, once, with the header that it is in.
    run: unsafe fn(*const EntryHeader) -> bool,
}

/// A stack job whose closure is `G`.
#[repr(C)]
pub(super) struct StackJob<G, B> {
    header: EntryHeader,
    func: UnsafeCell<MaybeUninit<G>>,
    outcome: UnsafeCell<MaybeUninit<ClosureResult<B>>>,
}

impl<G: FnOnce() -> B, B> StackJob<G, B> {
    #[inline(always)]
    pub(super) fn new(func: G) -> StackJob<G, B> {
        StackJob {
            header: EntryHeader { run: Self::run },
            func: UnsafeCell::new(MaybeUninit::new(func)),
            outcome: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The address that thieves get.
    #[inline(always)]
    pub(super) fn as_entry(&self) -> *mut EntryHeader {
        std::ptr::from_ref(self).cast::<EntryHeader>().cast_mut()
    }

    /// Takes the closure out.
    ///
    /// # Safety
    /// Owner; the closure has not been taken.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> G {
        // SAFETY: owner: nobody else touches the stack job.
        let func = unsafe { &*self.func.get() };
        // SAFETY: the caller's promise: the closure is still there, and is read once.
        unsafe { func.assume_init_read() }
    }

    /// Takes the outcome out.
    ///
    /// # Safety
    /// After: the thief has run the stack job, and the stolen job is done.
    pub(super) unsafe fn take_outcome(&self) -> ClosureResult<B> {
        // SAFETY: after: nobody else touches the stack job.
        let outcome = unsafe { &*self.outcome.get() };
        // SAFETY: `run` wrote the outcome, and it is read once.
        unsafe { outcome.assume_init_read() }
    }

    unsafe fn run(entry: *const EntryHeader) -> bool {
        // SAFETY: `entry` came from `as_entry` of a stack job of this very type, whose frame stays.
        let stack_job = unsafe { &*entry.cast::<StackJob<G, B>>() };
        // SAFETY: thief: the closure is its own.
        let func = unsafe { stack_job.take() };
        let outcome = catch_unwind(AssertUnwindSafe(func));
        let has_returned = outcome.is_ok();
        // SAFETY: thief: nobody else touches the stack job.
        unsafe { (*stack_job.outcome.get()).write(outcome) };
        has_returned
    }
}

/// A stack job as its thief holds it.
pub(super) struct StolenEntry(*const EntryHeader);

// SAFETY: thief: the closure and its result may move between threads: `join` requires `Send` of both.
unsafe impl Send for StolenEntry {}

impl StolenEntry {
    /// # Safety
    /// The caller has just stolen `entry`.
    pub(super) unsafe fn new(entry: *mut EntryHeader) -> StolenEntry {
        StolenEntry(entry)
    }

    /// Runs the closure; a panic is kept in the stack job. Returns whether it returned.
    pub(super) fn run(self) -> bool {
        // SAFETY: thief: the stack job is alive, because its join waits for the stolen job.
        let run = unsafe { (*self.0).run };
        // SAFETY: thief, once: `self` is consumed.
        unsafe { run(self.0) }
    }
}
